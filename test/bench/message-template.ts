/** A message, or a part of one, with the places of the numbers in it that change. */
export interface Template {
  readonly bytes: Buffer;
  readonly slots: readonly TemplateSlot[];
}

/** A number that is written over in place. */
export interface TemplateSlot {
  readonly name: string;
  readonly at: number;
}

/** A field of a text. */
export function textField(field: number, text: string): Template {
  return wrapped(field, { bytes: Buffer.from(text), slots: [] });
}

/** A field of bytes that are there. */
export function bytesField(field: number, bytes: Uint8Array): Template {
  return wrapped(field, { bytes: Buffer.from(bytes), slots: [] });
}

/** A field of a message of these parts. */
export function messageField(field: number, parts: readonly Template[]): Template {
  return wrapped(field, joined(parts));
}

/** A field of 64 bits. @param name of its slot; absent: it does not change */
export function doubleField(field: number, value: number, name?: string): Template {
  const bytes = Buffer.alloc(9);
  bytes[0] = field * 8 + 1;
  bytes.writeDoubleLE(value, 1);
  return { bytes, slots: slotAt(1, name) };
}

/**
 * A whole number of always so many bytes: any other of up to seven bits a byte fits in its place.
 *
 * @param name of its slot; absent: it does not change
 */
export function wholeField(
  field: number,
  { value, byteCount, name }: { value: number; byteCount: number; name?: string },
): Template {
  const bytes = Buffer.alloc(1 + byteCount);
  bytes[0] = field * 8;
  writeWhole(bytes, { at: 1, byteCount }, value);
  return { bytes, slots: slotAt(1, name) };
}

/** Parts one after the other. */
export function joined(parts: readonly Template[]): Template {
  const slots: TemplateSlot[] = [];
  let at = 0;
  for (const part of parts) {
    for (const slot of part.slots) slots.push({ name: slot.name, at: at + slot.at });
    at += part.bytes.length;
  }
  return { bytes: Buffer.concat(parts.map(({ bytes }) => bytes)), slots };
}

/** Writes a whole number over one of the same length. */
export function writeWhole(
  bytes: Buffer,
  { at, byteCount }: { readonly at: number; readonly byteCount: number },
  value: number,
): void {
  let rest = value;
  for (let i = 0; i < byteCount - 1; i += 1) {
    bytes[at + i] = 128 + (rest % 128);
    rest = Math.floor(rest / 128);
  }
  if (rest > 127) throw new Error(`${value} does not fit into ${byteCount} bytes`);
  bytes[at + byteCount - 1] = rest;
}

/** Where the numbers of a name stand, in order. */
export function slotsNamed({ slots }: Template, name: string): readonly number[] {
  return slots.filter((slot) => slot.name === name).map(({ at }) => at);
}

function wrapped(field: number, part: Template): Template {
  const length: number[] = [];
  let rest = part.bytes.length;
  for (; rest > 127; rest = Math.floor(rest / 128)) length.push(128 + (rest % 128));
  const head = { bytes: Buffer.from([field * 8 + 2, ...length, rest]), slots: [] };
  return joined([head, part]);
}

function slotAt(at: number, name: string | undefined): readonly TemplateSlot[] {
  return name === undefined ? [] : [{ name, at }];
}
