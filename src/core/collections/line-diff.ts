/** A line of the comparison of two texts. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
  /** Its number in its text, from 1. If it is in both texts, the number in the later one. */
  readonly line: number;
}

/** Number of lines that are shown around a difference. */
const contextLines = 3;

/** Maximum pairs of lines that are compared. Above, the middle of both is shown as replaced. */
export const comparedPairsMax = 4_000_000;

/** Compares two texts by lines, with a few lines of context around each difference. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail += 1;
  }
  const middle = diffMiddle(
    old.slice(head, old.length - tail),
    now.slice(head, now.length - tail),
    head,
  );
  if (middle.length === 0) return [];
  const same = (text: string, i: number): DiffLine => ({ kind: "same", text, line: i + 1 });
  return fold([
    ...now.slice(0, head).map(same),
    ...middle,
    ...now.slice(now.length - tail).map((text, i) => same(text, now.length - tail + i)),
  ]);
}

function diffMiddle(
  old: readonly string[],
  now: readonly string[],
  head: number,
): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  const removed = (i: number): void => {
    lines.push({ kind: "removed", text: old[i] ?? "", line: head + i + 1 });
  };
  const added = (j: number): void => {
    lines.push({ kind: "added", text: now[j] ?? "", line: head + j + 1 });
  };
  if (old.length * now.length > comparedPairsMax) {
    for (const i of old.keys()) removed(i);
    for (const j of now.keys()) added(j);
    return lines;
  }
  // Length of the longest common subsequence of both from (i, j) on.
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        old[i] === now[j]
          ? (common[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
    }
  }
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ kind: "same", text: now[j] ?? "", line: head + j + 1 });
      i += 1;
      j += 1;
    } else if (
      i < old.length &&
      (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0)
    ) {
      removed(i);
      i += 1;
    } else if (j < now.length) {
      added(j);
      j += 1;
    } else {
      removed(i);
      i += 1;
    }
  }
  return lines;
}

/** Leaves out equal lines that are far from a difference. */
function fold(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = lines.map(() => false);
  for (const [i, { kind }] of lines.entries()) {
    if (kind === "same") continue;
    for (let k = i - contextLines; k <= i + contextLines; k += 1) isNear[k] = true;
  }
  const folded: DiffLine[] = [];
  for (const [i, line] of lines.entries()) {
    if (isNear[i] === true) folded.push(line);
    else if (folded.at(-1)?.kind !== "gap") folded.push({ ...line, kind: "gap", text: "" });
  }
  return folded;
}
