/** Lines of agreement that are shown around a difference. */
const contextLines = 3;

/** Most lines that a difference shows. */
export const shownLinesMax = 200;

/** Most pairs of lines that are compared; above, all between the first and last is different. */
export const comparedPairsMax = 4_000_000;

interface DiffLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/**
 * What changes from one text to another, as lines that begin with `-`, `+` or a space; `...` stands
 * where lines that agree are left out. Empty where nothing does.
 */
export function diffTexts(before: string, after: string): readonly string[] {
  const lines = compareLines(before.split("\n"), after.split("\n"));
  const isNear = markNear(lines);
  const shown: string[] = [];
  let isSkipping = false;
  for (const [i, { sign, text }] of lines.entries()) {
    if (isNear[i] === true) shown.push(`${sign} ${text}`.trimEnd());
    else if (!isSkipping) shown.push("...");
    isSkipping = isNear[i] !== true;
  }
  if (shown.length <= 1) return [];
  const more = shown.length - shownLinesMax;
  return more > 0 ? [...shown.slice(0, shownLinesMax), `... and ${more} more lines`] : shown;
}

function markNear(lines: readonly DiffLine[]): readonly boolean[] {
  const isNear = lines.map(() => false);
  for (const [i, { sign }] of lines.entries()) {
    if (sign === " ") continue;
    for (let at = i - contextLines; at <= i + contextLines; at += 1) {
      if (at >= 0 && at < isNear.length) isNear[at] = true;
    }
  }
  return isNear;
}

function compareLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) {
    start += 1;
  }
  let end = 0;
  const endMax = Math.min(before.length, after.length) - start;
  while (end < endMax && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (text: string): DiffLine => ({ sign: " ", text });
  return [
    ...before.slice(0, start).map(same),
    ...compareMiddle(
      before.slice(start, before.length - end),
      after.slice(start, after.length - end),
    ),
    ...before.slice(before.length - end).map(same),
  ];
}

/** By the longest common subsequence. */
function compareMiddle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const removed = before.map((text): DiffLine => ({ sign: "-", text }));
  const added = after.map((text): DiffLine => ({ sign: "+", text }));
  if (before.length * after.length > comparedPairsMax) return [...removed, ...added];
  const width = after.length + 1;
  // Lengths of the longest common part of what follows line i of the one and j of the other.
  const lengths = new Uint32Array((before.length + 1) * width);
  const lengthAt = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        before[i] === after[j]
          ? lengthAt(i + 1, j + 1) + 1
          : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, young] = [removed[i], added[j]];
    if (old !== undefined && young !== undefined && old.text === young.text) {
      lines.push({ sign: " ", text: old.text });
      [i, j] = [i + 1, j + 1];
    } else if (
      old !== undefined &&
      (young === undefined || lengthAt(i + 1, j) >= lengthAt(i, j + 1))
    ) {
      lines.push(old);
      i += 1;
    } else if (young !== undefined) {
      lines.push(young);
      j += 1;
    }
  }
  return lines;
}
