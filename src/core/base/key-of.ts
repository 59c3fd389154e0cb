/** The names that a table declares, in its order. */
export function keysOf<Table extends object>(
  table: Table,
): readonly Extract<keyof Table, string>[] {
  return Object.keys(table).filter((name) => isKeyOf(table, name));
}

/** Whether a name is one that a table declares itself. */
export function isKeyOf<Table extends object>(
  table: Table,
  name: string,
): name is Extract<keyof Table, string> {
  return Object.hasOwn(table, name);
}
