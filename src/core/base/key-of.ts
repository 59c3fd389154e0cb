/** Returns the own names of a table, in its order. */
export function keysOf<Table extends object>(
  table: Table,
): readonly Extract<keyof Table, string>[] {
  return Object.keys(table).filter((name) => isKeyOf(table, name));
}

/** Reports whether a table has a name itself, not inherited. */
export function isKeyOf<Table extends object>(
  table: Table,
  name: string,
): name is Extract<keyof Table, string> {
  return Object.hasOwn(table, name);
}
