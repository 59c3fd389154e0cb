/** For an option that may be given several times: its values in their order. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
