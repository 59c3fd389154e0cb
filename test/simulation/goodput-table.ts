import { readFile, writeFile } from "node:fs/promises";
import type { BestStatic } from "./goodput-matrix.js";
import { drawMatrixWorld, type MatrixWorld, titleOf, zoneEvent } from "./goodput-worlds.js";

/** What the best static limits of worlds do, a line each, since the search takes minutes. */
const tablePath = "test/simulation/goodput-best.jsonl";

/** Requests of a world of the table: more take too long for every run of the tests. */
export const tableArrivalCountMax = 20_000;

/** Worlds by whose misses laws may be tuned. */
export const tuningSeeds = seedsFrom(1);

/** Worlds that nobody looked at when laws were tuned. */
export const validationSeeds = seedsFrom(1_001);

/** Worlds in which one of two zones is lost, with its workers and one of two replicas. */
export const zoneSeeds = seedsFrom(2_001, 30);

/** Seeds of the table's worlds. */
export const tableSeeds = [...tuningSeeds, ...validationSeeds, ...zoneSeeds];

/** A world of the table by its seed. */
export function tableWorld(seed: number): MatrixWorld {
  const event = zoneSeeds.includes(seed) ? zoneEvent : undefined;
  return drawMatrixWorld(seed, tableArrivalCountMax, event);
}

/** A world with the best that a static limit does in it. */
export interface TableRow {
  readonly one: MatrixWorld;
  readonly best: BestStatic;
}

/** Reads the table; fails where a world is another one than when it was recorded. */
export async function readGoodputTable(): Promise<readonly TableRow[]> {
  const text = await readFile(tablePath, "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const { title, ...best }: BestStatic & { readonly title: string } = JSON.parse(line);
      const seed = Number(/^seed ([0-9]+):/.exec(title)?.[1]);
      const one = tableWorld(seed);
      if (titleOf(one) !== title)
        throw new Error(`record the table again: ${title} is ${titleOf(one)}`);
      return { one, best };
    });
}

/** Writes the table. */
export async function writeGoodputTable(rows: readonly TableRow[]): Promise<void> {
  const lines = rows.map(({ one, best }) => JSON.stringify({ title: titleOf(one), ...best }));
  await writeFile(tablePath, `${lines.join("\n")}\n`);
}

function seedsFrom(first: number, count = 150): readonly number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}
