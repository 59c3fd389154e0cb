/** How a wanted value is read. */
export interface JsonLeaf<Slot extends string> {
  /**
   * `scalar`: a number, a literal or a text, when it is complete, cut to `jsonScalarBytesMax`
   * bytes. `pieces`: a text as it arrives, with its escapes.
   */
  readonly kind: "scalar" | "pieces";
  /** The meaning of the value for the reader. */
  readonly slot: Slot;
}

/** A wanted path: keys of objects, and `*` for any item of a list. */
export interface WantedPath<Slot extends string> {
  readonly steps: readonly string[];
  readonly leaf: JsonLeaf<Slot>;
}

/** Paths that share their first steps, as a tree. */
export interface JsonNode<Slot extends string> {
  readonly leaf: JsonLeaf<Slot> | undefined;
  /** The fields of an object, by the number of bytes of their keys. */
  readonly fields: readonly (readonly JsonField<Slot>[])[];
  /** The items of a list: `*`. */
  readonly items: JsonNode<Slot> | undefined;
}

/** One key of a node. */
export interface JsonField<Slot extends string> {
  readonly key: string;
  /** The key in UTF-8, as it is in JSON without escapes. */
  readonly bytes: Uint8Array;
  readonly node: JsonNode<Slot>;
}

/** Maximum number of steps of a path. */
export const jsonStepsMax = 16;

/**
 * Creates the tree of paths. If two lead to the same value, the later one counts. A list of
 * documents, as some servers stream them, is read like one document after the other.
 *
 * @param paths each of 1 to `jsonStepsMax` steps; longer ones are never found
 */
export function createJsonTree<Slot extends string>(
  paths: readonly WantedPath<Slot>[],
): JsonNode<Slot> {
  const root = createNode<Slot>();
  root.items = root;
  for (const { steps, leaf } of paths) {
    let node = root;
    for (const step of steps) node = childOf(node, step);
    node.leaf = leaf;
  }
  return root;
}

interface MutableNode<Slot extends string> extends JsonNode<Slot> {
  leaf: JsonLeaf<Slot> | undefined;
  fields: (JsonField<Slot> & { readonly node: MutableNode<Slot> })[][];
  items: MutableNode<Slot> | undefined;
}

function createNode<Slot extends string>(): MutableNode<Slot> {
  return { leaf: undefined, fields: [], items: undefined };
}

function childOf<Slot extends string>(parent: MutableNode<Slot>, step: string): MutableNode<Slot> {
  if (step === "*") {
    parent.items ??= createNode<Slot>();
    return parent.items;
  }
  const bytes = encodeUtf8(step);
  while (parent.fields.length <= bytes.length) parent.fields.push([]);
  const fields = parent.fields[bytes.length] ?? [];
  const known = fields.find(({ key }) => key === step);
  if (known !== undefined) return known.node;
  const node = createNode<Slot>();
  fields.push({ key: step, bytes, node });
  return node;
}

/** Source: RFC 3629, section 3. */
function encodeUtf8(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), rest(point, 0));
    else if (point < 0x10000) bytes.push(0xe0 | (point >> 12), rest(point, 6), rest(point, 0));
    else bytes.push(0xf0 | (point >> 18), rest(point, 12), rest(point, 6), rest(point, 0));
  }
  return Uint8Array.from(bytes);
}

function rest(point: number, bits: number): number {
  return 0x80 | ((point >> bits) & 0x3f);
}
