/** Collects the values of a repeatable option, in order. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
