/** A part of the policy's JSON Schema, with the fields that completion needs. */
export interface SchemaPart {
  readonly description?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, SchemaPart>>;
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly items?: SchemaPart;
  readonly additionalProperties?: SchemaPart | boolean;
  readonly anyOf?: readonly SchemaPart[];
  readonly oneOf?: readonly SchemaPart[];
  readonly enum?: readonly (string | number | boolean)[];
}

/** A step into a document: a key, or an item of a list. */
export type PathPart = string;

const item = "[]";

/** Returns the possible parts of a schema at a path; several if there is a choice. */
export function schemasAt(root: SchemaPart, path: readonly PathPart[]): readonly SchemaPart[] {
  let parts = resolve(root, root);
  for (const step of path) {
    parts = parts.flatMap((part) => {
      const next = step === item ? part.items : (part.properties?.[step] ?? ownName(part));
      return next === undefined ? [] : resolve(root, next);
    });
  }
  return parts;
}

/** Returns the schema of user-defined names in a map, if it allows any name. */
function ownName({ additionalProperties: values }: SchemaPart): SchemaPart | undefined {
  return typeof values === "object" ? values : undefined;
}

/** Follows references and choices, up to a depth that ends cycles. */
function resolve(root: SchemaPart, part: SchemaPart, depth = 0): readonly SchemaPart[] {
  if (depth > 8) return [];
  const name = part.$ref?.replace("#/$defs/", "");
  const named = name === undefined ? undefined : root.$defs?.[name];
  const choices = [...(part.anyOf ?? []), ...(part.oneOf ?? []), ...(named ? [named] : [])];
  const isMap = part.properties || ownName(part);
  const own = isMap || part.items || part.enum || part.description ? [part] : [];
  return [...own, ...choices.flatMap((one) => resolve(root, one, depth + 1))];
}

/** Position in a document: the path to it, and the key whose value it is in. */
export interface TextPlace {
  /** Path of the mapping that contains the position. */
  readonly path: readonly PathPart[];
  /** Key whose value contains the position; undefined while a key is written. */
  readonly key: string | undefined;
}

/** Finds a position in a YAML text, by indentation and by braces in the line. */
export function placeAt(lines: readonly string[], line: number, column: number): TextPlace {
  const text = (lines[line] ?? "").slice(0, column);
  const opened = openBrace(text);
  const head = opened < 0 ? text : text.slice(0, opened);
  const inside = opened < 0 ? text.replace(/^[\s-]*/, "") : text.slice(opened + 1);
  const outer = pathAbove(lines, line, indentOfLine(lines[line] ?? "", text));
  const own = opened < 0 ? [] : [...itemsOf(head), ...keyOf(head)];
  const path = [...outer, ...(opened < 0 ? itemsOf(text) : own)];
  const key = /(?:^|,)\s*([\w$.-]+):\s[^,]*$/.exec(inside)?.[1];
  return { path, key };
}

/** The indent of an empty line is the text before the cursor. */
function indentOfLine(line: string, before: string): number {
  const body = line.trim() === "" ? before : line;
  return body.length - body.trimStart().length;
}

function itemsOf(text: string): readonly PathPart[] {
  const marks = /^\s*((?:-\s+)*)/.exec(text)?.[1] ?? "";
  return [...marks.matchAll(/-/g)].map(() => item);
}

function keyOf(text: string): readonly PathPart[] {
  const key = /([\w$.-]+):\s*$/.exec(text)?.[1];
  return key === undefined ? [] : [key];
}

/** Returns the index of the last brace open at the end; -1 if there is none. */
function openBrace(text: string): number {
  let depth = 0;
  for (let i = text.length - 1; i >= 0; i -= 1) {
    const character = text.charAt(i);
    if (character === "}") depth += 1;
    else if (character === "{") {
      if (depth === 0) return i;
      depth -= 1;
    }
  }
  return -1;
}

/** Returns the keys of the less indented lines above. */
function pathAbove(lines: readonly string[], line: number, indent: number): readonly PathPart[] {
  const path: PathPart[] = [];
  let depth = indent;
  for (let i = line - 1; i >= 0 && depth > 0; i -= 1) {
    const text = lines[i] ?? "";
    if (/^\s*(?:#.*)?$/.test(text)) continue;
    const own = text.length - text.trimStart().length;
    const marks = itemsOf(text);
    const keyColumn = own + (/^\s*((?:-\s+)*)/.exec(text)?.[1]?.length ?? 0);
    const key = /^\s*(?:-\s+)*([\w$.-]+):/.exec(text)?.[1];
    if (keyColumn < depth && key !== undefined) {
      path.unshift(key);
      depth = keyColumn;
    }
    if (marks.length > 0 && own < depth) {
      path.unshift(...marks);
      depth = own;
    } else if (marks.length > 0 && keyColumn === depth) {
      // A key after the first one of its item.
      path.unshift(...marks);
      depth = own;
    }
  }
  return path;
}
