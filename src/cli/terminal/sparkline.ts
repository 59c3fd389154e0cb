const blocks = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * Draws amounts as blocks, the largest one full; zero is a blank. If there are more amounts than
 * columns, adjacent ones are added up.
 *
 * @param most amount of a full block; default the largest amount
 */
export function sparkline(amounts: readonly number[], columnsMax: number, most?: number): string {
  const perColumn = Math.max(1, Math.ceil(amounts.length / columnsMax));
  const columns: number[] = [];
  for (let i = 0; i < amounts.length; i += perColumn) {
    columns.push(amounts.slice(i, i + perColumn).reduce((sum, one) => sum + one, 0));
  }
  const full = most === undefined ? Math.max(...columns, 0) : most * perColumn;
  return columns
    .map((amount) => {
      if (amount <= 0 || full <= 0) return " ";
      const level = Math.min(blocks.length, Math.ceil((amount / full) * blocks.length));
      return blocks[level - 1] ?? " ";
    })
    .join("");
}
