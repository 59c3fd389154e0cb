/** Maximum length of a text that gets a suggestion. Longer texts are not misspelt names. */
export const nearestCharsMax = 64;

/**
 * Returns the known name that a misspelt one probably meant: the one with the fewest edits (insert,
 * delete, replace, swap of neighbours), ignoring case, at most a third of its length; the first of
 * equals. Undefined if none is near. Example: `reqests_per_unit` is near `requests_per_unit`.
 */
export function findNearestName(text: string, names: readonly string[]): string | undefined {
  if (text.length > nearestCharsMax) return undefined;
  const wanted = text.toLowerCase();
  let nearest: string | undefined;
  let nearestEdits = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const editsMax = Math.max(1, Math.floor(name.length / 3));
    if (Math.abs(name.length - text.length) > editsMax) continue;
    const edits = editDistance(wanted, name.toLowerCase());
    if (edits > editsMax || edits >= nearestEdits) continue;
    nearest = name;
    nearestEdits = edits;
  }
  return nearest;
}

/**
 * Counts the edits that turn one text into another. A swap of neighbours is one edit.
 *
 * Source: the optimal string alignment distance (Damerau, 1964; Wagner and Fischer, 1974).
 */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const cost = from[i - 1] === to[j - 1] ? 0 : 1;
      const replaced = (previous[j - 1] ?? 0) + cost;
      let edits = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isSwap) edits = Math.min(edits, (beforePrevious[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    beforePrevious = previous;
    previous = row;
  }
  return previous[to.length] ?? 0;
}
