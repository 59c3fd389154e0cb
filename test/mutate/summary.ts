import { type Folder, folderOf, folders, type Mutant } from "./sample.js";

/** What came of a mutant that was drawn. */
export type Outcome = "killed" | "survived" | "noCoverage" | "timedOut" | "error" | "notRun";

/** A mutant and what came of it. */
export interface Judged {
  readonly mutant: Mutant;
  readonly outcome: Outcome;
}

/** What came of the mutants of one folder. */
export interface FolderSummary {
  readonly folder: Folder;
  readonly counts: Readonly<Record<Outcome, number>>;
  /** Caught mutants of those that tests could catch, 0 to 1; NaN where there was none. */
  readonly caughtRatio: number;
}

const outcomes: readonly Outcome[] = [
  "killed",
  "survived",
  "noCoverage",
  "timedOut",
  "error",
  "notRun",
];

const titles: Readonly<Record<Outcome, string>> = {
  killed: "killed",
  survived: "survived",
  noCoverage: "no coverage",
  timedOut: "timed out",
  error: "errors",
  notRun: "not run",
};

/** Counts by folder, for those folders that have mutants. */
export function summarize(judged: readonly Judged[]): readonly FolderSummary[] {
  return folders.flatMap((folder) => {
    const own = judged.filter(({ mutant }) => folderOf(mutant.path) === folder);
    if (own.length === 0) return [];
    const countOf = (wanted: Outcome) => own.filter(({ outcome }) => outcome === wanted).length;
    const counts = {
      killed: countOf("killed"),
      survived: countOf("survived"),
      noCoverage: countOf("noCoverage"),
      timedOut: countOf("timedOut"),
      error: countOf("error"),
      notRun: countOf("notRun"),
    };
    const caught = counts.killed + counts.timedOut;
    return [
      { folder, counts, caughtRatio: caught / (caught + counts.survived + counts.noCoverage) },
    ];
  });
}

/** The table of a run, a line for each folder. */
export function tableLines(summaries: readonly FolderSummary[]): readonly string[] {
  const heads = ["folder", ...outcomes.map((outcome) => titles[outcome]), "caught"];
  const rows = summaries.map(({ folder, counts, caughtRatio }) => [
    folder,
    ...outcomes.map((outcome) => String(counts[outcome])),
    percent(caughtRatio),
  ]);
  const widths = heads.map((head, i) =>
    Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)),
  );
  return [heads, ...rows].map((cells) =>
    cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join("  "),
  );
}

/** The folders of which less was caught than their floor says, each as a line for a person. */
export function belowFloors(
  summaries: readonly FolderSummary[],
  floorRatios: Readonly<Record<Folder, number>>,
): readonly string[] {
  return summaries
    .filter(({ folder, caughtRatio }) => caughtRatio < floorRatios[folder])
    .map(
      ({ folder, caughtRatio }) =>
        `${folder}: ${percent(caughtRatio)} caught, wanted ${percent(floorRatios[folder])} or more`,
    );
}

/** What no test noticed, a line each: those that tests run, then those that none runs. */
export function survivorLines(judged: readonly Judged[]): readonly string[] {
  const linesOf = (wanted: Outcome) =>
    judged.filter(({ outcome }) => outcome === wanted).map(({ mutant }) => survivorLine(mutant));
  const uncovered = linesOf("noCoverage");
  return [
    ...linesOf("survived"),
    ...(uncovered.length === 0 ? [] : ["", "No test runs these:", ...uncovered]),
  ];
}

function survivorLine({ path, start, mutatorName, original, replacement }: Mutant): string {
  return `${path}:${start.line + 1} ${mutatorName}  ${oneLine(original)} → ${oneLine(replacement)}`;
}

/** The beginning of a piece of code, without its line breaks. */
function oneLine(code: string): string {
  const text = code.replace(/\s+/g, " ");
  return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`;
}
