import { takeOne, testCharge } from "../support/charges.js";
import { openTestStore, soon } from "../support/redis-store.js";

/** What a hammering process is told, as JSON on its command line. */
export interface HammerOrder {
  readonly port: number;
  readonly keys: readonly string[];
  readonly hits: number;
  readonly periodUs: number;
  readonly burst: number;
  /** It asks until it has asked this often. */
  readonly askCount: number;
}

/** What it prints when it is done: hits admitted, by key. */
export type HammerTally = Readonly<Record<string, number>>;

/** Asks as fast as it can, several requests at a time, and prints what it was granted. */
async function hammer({ port, keys, hits, periodUs, burst, askCount }: HammerOrder): Promise<void> {
  const { store } = await openTestStore({ port });
  const admitted = new Map<string, number>();
  let askedCount = 0;
  const worker = async (): Promise<void> => {
    while (askedCount < askCount) {
      const key = keys[askedCount % keys.length] ?? "";
      askedCount += 1;
      const cost = 1 + (askedCount % 3);
      const ask = [testCharge({ key, hits, periodUs, burst, cost })];
      const { isDenied } = await takeOne(store, ask, soon());
      if (!isDenied) admitted.set(key, (admitted.get(key) ?? 0) + cost);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  process.stdout.write(`${JSON.stringify(Object.fromEntries(admitted))}\n`);
  await store.close();
}

await hammer(JSON.parse(process.argv[2] ?? "{}") as HammerOrder);
