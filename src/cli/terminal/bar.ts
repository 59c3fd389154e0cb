/** Draws a bar: full for 1 and above, and at least one column for anything above 0. */
export function drawBar(ratio: number, columns: number): string {
  const part = Number.isFinite(ratio) ? Math.min(1, Math.max(0, ratio)) : 0;
  const full = part === 0 ? 0 : Math.max(1, Math.round(part * columns));
  return "█".repeat(full) + "░".repeat(columns - full);
}

/** Draws a bar of two parts, the second one lighter, for spent and reserved amounts. */
export function drawSplitBar(
  { first, second }: { readonly first: number; readonly second: number },
  columns: number,
): string {
  const full = drawBar(first, columns).replaceAll("░", "").length;
  const both = Math.max(drawBar(first + second, columns).replaceAll("░", "").length, full);
  return "█".repeat(full) + "▒".repeat(both - full) + "░".repeat(columns - both);
}
