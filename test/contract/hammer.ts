import { Redis } from "ioredis";
import { takeOne, testCharge } from "../support/charges.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

/** A limit that processes ask about together. */
export interface HammerRound {
  readonly name: string;
  readonly keys: readonly string[];
  readonly hits: number;
  readonly periodUs: number;
  readonly burst: number;
}

/** What a hammering process is told, as JSON on its command line. */
export interface HammerOrder {
  readonly port: number;
  /** Processes that begin each round together. */
  readonly processCount: number;
  readonly rounds: readonly HammerRound[];
  /** In each round it asks until it has asked this often. */
  readonly askCount: number;
}

/** What it prints of a round, in the order of the rounds. */
export interface HammerTally {
  /** By the store's clock. */
  readonly startUs: number;
  readonly endUs: number;
  /** Hits admitted, by key. */
  readonly admitted: Readonly<Record<string, number>>;
}

/** Asks as fast as it can, several requests at a time, and tells what it was granted. */
async function hammer(
  store: TestRedisStore["store"],
  { keys, hits, periodUs, burst }: HammerRound,
  askCount: number,
): Promise<HammerTally["admitted"]> {
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
  return Object.fromEntries(admitted);
}

async function run(order: HammerOrder): Promise<readonly HammerTally[]> {
  const { port, processCount, rounds, askCount } = order;
  const { store } = await openTestStore({ port });
  const control = new Redis({ host: "127.0.0.1", port });
  const nowUs = async (): Promise<number> => {
    const [seconds, micros] = await control.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  };
  const tallies: HammerTally[] = [];
  for (const round of rounds) {
    const ready = `ready ${round.name}`;
    await control.incr(ready);
    const isReady = async (): Promise<boolean> => Number(await control.get(ready)) === processCount;
    await waitFor("all are ready", isReady, { withinMs: 40_000, everyMs: 1 });
    const startUs = await nowUs();
    const admitted = await hammer(store, round, askCount);
    tallies.push({ startUs, endUs: await nowUs(), admitted });
  }
  control.disconnect();
  await store.close();
  return tallies;
}

const tallies = await run(JSON.parse(process.argv[2] ?? "{}") as HammerOrder);
process.stdout.write(`${JSON.stringify(tallies)}\n`);
