import {
  runWorld,
  searchBest,
  tellMatrix,
  type WorldResult,
} from "../simulation/goodput-matrix.js";
import {
  type TableRow,
  tableSeeds,
  tableWorld,
  writeGoodputTable,
} from "../simulation/goodput-table.js";
import { drawMatrixWorld } from "../simulation/goodput-worlds.js";

/** Which worlds are run. */
export interface GoodputOrder {
  readonly first: number;
  readonly count: number;
  /** Requests of a world; more than in the tests let larger and faster services take part. */
  readonly arrivalCountMax: number;
}

/** Worlds of the goodput matrix by their seeds, each next to its best static limit. */
export function tellGoodput({ first, count, arrivalCountMax }: GoodputOrder): string {
  const results: WorldResult[] = [];
  for (let seed = first; seed < first + count; seed += 1) {
    const one = drawMatrixWorld(seed, arrivalCountMax);
    results.push(runWorld(one, searchBest(one)));
    if (results.length % 20 === 0) process.stderr.write(`${results.length} worlds ...\n`);
  }
  return `seeds from ${first}: ${tellMatrix(results)}`;
}

/** Searches the best static limits of the tests' worlds anew, and writes them down. */
export async function recordGoodput(): Promise<void> {
  const rows: TableRow[] = [];
  for (const seed of tableSeeds) {
    const one = tableWorld(seed);
    rows.push({ one, best: searchBest(one) });
  }
  await writeGoodputTable(rows);
}
