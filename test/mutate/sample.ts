import { createHash } from "node:crypto";

/** A place in a text; both count from 0, as Stryker's instrumenter does. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** One change of the source that tests should notice. */
export interface Mutant {
  readonly path: string;
  readonly start: Place;
  readonly end: Place;
  /** The kind of change, such as `EqualityOperator`. */
  readonly mutatorName: string;
  readonly original: string;
  readonly replacement: string;
}

/** The mutated folders of src, and how many mutants of each a usual run draws. */
export const defaultCounts = { core: 250, decide: 180, store: 90 } as const;

/** A mutated folder of src. */
export type Folder = keyof typeof defaultCounts;

/** The mutated folders, in the order in which they are told. */
export const folders: readonly Folder[] = ["core", "decide", "store"];

/** The folder of a path; undefined for one that is not mutated. */
export function folderOf(path: string): Folder | undefined {
  return folders.find((folder) => path.startsWith(`src/${folder}/`));
}

/** What identifies a mutant within one state of the source. */
export function mutantKey({
  path,
  start,
  end,
  mutatorName,
  replacement,
}: Omit<Mutant, "original">) {
  const span = [start.line, start.column, end.line, end.column].join(":");
  return [path, span, mutatorName, replacement].join("|");
}

/** What to draw. */
export interface SampleOptions {
  readonly seed: number;
  readonly folders: readonly Folder[];
  /** Of all folders together, spread over them as `defaultCounts` are; without it, these. */
  readonly count?: number | undefined;
}

/**
 * Draws mutants, in the order of their places: the same ones for the same seed and source, whatever
 * the tests are. Each has a rank by a digest of the seed and of what it changes, without its line,
 * and the lowest ranks of a folder are drawn. So a larger sample holds the smaller one, and an edit
 * changes the sample in its own place only.
 */
export function drawSample(
  mutants: readonly Mutant[],
  { seed, folders, count }: SampleOptions,
): readonly Mutant[] {
  const ranks = ranksOf(mutants, seed);
  const counts = countsOf(folders, count);
  const drawn = new Set(
    folders.flatMap((folder) =>
      mutants
        .filter(({ path }) => folderOf(path) === folder)
        .sort((a, b) => ((ranks.get(a) ?? "") < (ranks.get(b) ?? "") ? -1 : 1))
        .slice(0, counts.get(folder)),
    ),
  );
  return mutants.filter((mutant) => drawn.has(mutant));
}

/** Changes that are alike in one file have different ranks by their order in it. */
function ranksOf(mutants: readonly Mutant[], seed: number): ReadonlyMap<Mutant, string> {
  const seen = new Map<string, number>();
  return new Map(
    mutants.map((mutant) => {
      const { path, mutatorName, original, replacement } = mutant;
      const change = JSON.stringify([seed, path, mutatorName, original, replacement]);
      const before = seen.get(change) ?? 0;
      seen.set(change, before + 1);
      return [mutant, createHash("sha256").update(`${change}${before}`).digest("hex")];
    }),
  );
}

/** Rounds where one folder's part ends and the next one's begins, so that the sum is the count. */
function countsOf(folders: readonly Folder[], count?: number): ReadonlyMap<Folder, number> {
  const usual = folders.reduce((sum, folder) => sum + defaultCounts[folder], 0);
  let before = 0;
  return new Map(
    folders.map((folder) => {
      const start = Math.round(((count ?? usual) * before) / usual);
      before += defaultCounts[folder];
      return [folder, Math.round(((count ?? usual) * before) / usual) - start];
    }),
  );
}
