import { readFile, writeFile } from "node:fs/promises";
import { layOut } from "./report.js";

/** The groups of rows that have targets: flags of the bench, and the order in which they print. */
export const proofGroups = ["light", "limits", "wide"] as const;

/** A group of rows. */
export type ProofGroup = (typeof proofGroups)[number];

/** One measured number beside its target. */
export interface ProofRow {
  readonly group: ProofGroup;
  /** Unique in its group: the same row of another release has the same name. */
  readonly name: string;
  /** NaN where it could not be measured, as the note says. */
  readonly value: number;
  readonly unit: "ms" | "MB" | "us" | "x" | "%" | "bytes" | "s" | "commands";
  /** In the unit of the value. */
  readonly target?: { readonly most?: number; readonly least?: number };
  /**
   * What is compared between releases: this value over a reference of the same run, such as a bare
   * node, one limit or an empty script. Absent: another machine has another value.
   */
  readonly ratio?: number;
  /** Whether it stands for all rows of a part that failed. */
  readonly isPart?: boolean;
  /** What holds the number, in one line. */
  readonly note?: string;
  /** The place of the row on a curve of the picture: so many keys, rules, ... cost so much. */
  readonly growth?: { readonly by: GrowthDimension; readonly count: number };
}

/** Parts of a group by name, each measured by itself. */
export type ProofParts = Readonly<Record<string, () => Promise<readonly ProofRow[]>>>;

/** What a cost may grow with. */
export type GrowthDimension = "keys" | "rules" | "limits" | "Envoys" | "services";

/** The rows of a release. */
export interface ReleaseRows {
  readonly version: string;
  /** Of the measurement: `2026-11-28`. */
  readonly date: string;
  /** By `group: name`. */
  readonly rows: Readonly<Record<string, ReleaseRow>>;
}

/** A ratio, which another machine has too, or the value of that machine with its unit. */
type ReleaseRow = { readonly ratio: number } | { readonly value: number; readonly unit: string };

/** The rows of the last release, as `--record` wrote them. */
const releaseFile = new URL("./last-release.json", import.meta.url);

/** Reads the rows of the last release; none before the first record. */
export async function readLastRelease(): Promise<ReleaseRows | undefined> {
  try {
    return JSON.parse(await readFile(releaseFile, "utf8")) as ReleaseRows;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Writes rows as those of the last release. Rows of groups that did not run, and those that could
 * not be measured, stay as they are.
 */
export async function recordRelease(
  rows: readonly ProofRow[],
  { version, date }: Pick<ReleaseRows, "version" | "date">,
): Promise<void> {
  // Of a group in which a part failed, no row is known to be gone.
  const failed = rows.filter(({ isPart }) => isPart).map(({ group }) => group);
  const whole = rows.map(({ group }) => group).filter((group) => !failed.includes(group));
  const measured = rows.filter(({ value }) => !Number.isNaN(value));
  const absent = new Set(rows.filter(({ value }) => Number.isNaN(value)).map(keyOf));
  const kept = Object.entries((await readLastRelease())?.rows ?? {}).filter(
    ([key]) => absent.has(key) || !whole.some((group) => key.startsWith(`${group}: `)),
  );
  const recorded = measured.map((row) => [keyOf(row), releaseRow(row)] as const);
  const release: ReleaseRows = {
    version,
    date,
    rows: Object.fromEntries([...kept, ...recorded].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  await writeFile(releaseFile, `${JSON.stringify(release, undefined, 2)}\n`);
}

/** Measures parts one by one, and says so. A part that fails becomes a row that says why. */
export async function measureParts(
  group: ProofGroup,
  parts: ProofParts,
  only: string,
): Promise<readonly ProofRow[]> {
  const rows: ProofRow[] = [];
  const wanted = Object.entries(parts).filter(([name]) => `${group}, ${name}`.includes(only));
  for (const [i, [name, measure]] of wanted.entries()) {
    process.stderr.write(`${group}, ${name} (${i + 1} of ${wanted.length}) ...\n`);
    const startMs = performance.now();
    try {
      rows.push(...(await measure()));
    } catch (error) {
      const note = reasonOf(error);
      rows.push({ group, name, value: Number.NaN, unit: "x", isPart: true, note });
    }
    const seconds = (performance.now() - startMs) / 1_000;
    process.stderr.write(`${group}, ${name}: ${seconds.toFixed(0)} s\n`);
  }
  return rows;
}

/** Why something could not be measured, in one line. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error) };
  const whole = cause === undefined ? message : `${message}: ${reasonOf(cause)}`;
  return whole.replaceAll(/\s+/g, " ").trim().slice(0, reasonLengthMax);
}

/** Of a reason, which may hold what a program has printed. */
const reasonLengthMax = 400;

/** The rows as tables, one for each group, with what they say of targets and the last release. */
export function formatProof(rows: readonly ProofRow[], last: ReleaseRows | undefined): string {
  const then = last === undefined ? "last release" : `${last.version} (${last.date})`;
  const tables = proofGroups.flatMap((group) => {
    const own = rows.filter((row) => row.group === group);
    if (own.length === 0) return [];
    const titles = [group, "measured", "target", "", "ratio", then];
    const cells = own.map((row) => [
      row.name,
      quantity(row.value, row.unit),
      tellTarget(row),
      isMet(row) === undefined ? "" : isMet(row) ? "met" : "missed",
      row.ratio === undefined ? "" : ratioText(row.ratio),
      tellThen(last?.rows[keyOf(row)]),
    ]);
    const notes = own.flatMap(({ name, note }) => (note === undefined ? [] : [`${name}: ${note}`]));
    return [[layOut([titles, ...cells]), ...notes].join("\n")];
  });
  const missed = rows.filter((row) => isMet(row) === false).length;
  const aimed = rows.filter((row) => isMet(row) !== undefined).length;
  const sum = `${aimed - missed} of ${aimed} targets met.`;
  return [
    ...tables,
    `${sum} A missed one fails nothing.\nRatios are to a row of the same run.`,
  ].join("\n\n");
}

/** The rows with the same ones of the last release, for programs. */
export function proofJson(rows: readonly ProofRow[], last: ReleaseRows | undefined): string {
  const told = rows.map((row) => ({
    ...row,
    isMet: isMet(row),
    lastRelease: last?.rows[keyOf(row)],
  }));
  const release = last && { version: last.version, date: last.date };
  return JSON.stringify({ lastRelease: release, rows: told }, undefined, 2);
}

/** Whether a row is within its target; undefined: it has none. */
export function isMet({ value, target }: Pick<ProofRow, "value" | "target">): boolean | undefined {
  if (target === undefined || Number.isNaN(value)) return undefined;
  const { most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY } = target;
  return value <= most && value >= least;
}

function keyOf({ group, name }: Pick<ProofRow, "group" | "name">): string {
  return `${group}: ${name}`;
}

function releaseRow({ ratio, value, unit }: ProofRow): ReleaseRow {
  return ratio === undefined ? { value: significant(value), unit } : { ratio: significant(ratio) };
}

function tellThen(row: ReleaseRow | undefined): string {
  if (row === undefined) return "";
  return "ratio" in row ? ratioText(row.ratio) : quantity(row.value, row.unit);
}

function tellTarget({ target = {}, unit }: ProofRow): string {
  const { most, least } = target;
  return [
    most === undefined ? [] : [`at most ${quantity(most, unit)}`],
    least === undefined ? [] : [`at least ${quantity(least, unit)}`],
  ]
    .flat()
    .join(", ");
}

function ratioText(ratio: number): string {
  return `x ${significant(ratio)}`;
}

function quantity(value: number, unit: string): string {
  if (Number.isNaN(value)) return "absent";
  return unit === "x" ? ratioText(value) : `${significant(value)} ${unit}`;
}

/** Three digits: more would be noise. */
function significant(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}
