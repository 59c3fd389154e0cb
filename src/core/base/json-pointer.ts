/** Maximum number of steps in one pointer. */
export const pointerStepsMax = 16;

/**
 * Parses a JSON pointer into its steps. Empty for the whole document. Undefined if invalid.
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

/** Returns the value that a pointer refers to in a document. Undefined if there is none. */
export function followJsonPointer(document: unknown, steps: readonly string[]): unknown {
  let at = document;
  for (const step of steps) {
    if (typeof at !== "object" || !at || !Object.hasOwn(at, step)) return undefined;
    if (Array.isArray(at) && !/^(?:0|[1-9][0-9]{0,8})$/.test(step)) return undefined;
    at = Reflect.get(at, step);
  }
  return at;
}
