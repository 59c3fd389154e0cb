/** Steps of one pointer. */
export const pointerStepsMax = 16;

/**
 * Reads a JSON pointer: its steps, none for the whole document. Undefined where the text is none.
 *
 * Example: `/lag/a~1b` is `["lag", "a/b"]`.
 *
 * Source: RFC 6901.
 */
export function parseJsonPointer(text: string): readonly string[] | undefined {
  if (text === "") return [];
  if (!text.startsWith("/") || /~(?![01])/.test(text)) return undefined;
  const steps = text.slice(1).split("/");
  if (steps.length > pointerStepsMax) return undefined;
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** What a pointer leads to in a document; undefined where it leads nowhere. */
export function followJsonPointer(document: unknown, steps: readonly string[]): unknown {
  let at = document;
  for (const step of steps) {
    if (typeof at !== "object" || !at || !Object.hasOwn(at, step)) return undefined;
    if (Array.isArray(at) && !/^(?:0|[1-9][0-9]{0,8})$/.test(step)) return undefined;
    at = Reflect.get(at, step);
  }
  return at;
}
