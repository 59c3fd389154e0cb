import type { ReservedEntry } from "../../src/core/budgets/account.js";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import { systemClock } from "../../src/host/clock.js";
import type { BudgetOperation } from "../../src/store/coordination/budget-store.js";
import { RedisBudgets } from "../../src/store/redis/coordination/redis-budgets.js";
import { testAccount, testEntry } from "../support/budgets.js";
import { testCharge } from "../support/charges.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { layOut } from "./report.js";
import { type Cost, type CostWorld, measure } from "./room-cost.js";

/** Accounts, and keys of limits, that calls are spread over. */
const keyCount = 20_000;

/** Calls of one batch. */
const batchSize = 16;

interface Bench extends CostWorld {
  readonly opened: TestRedisStore;
  readonly budgets: RedisBudgets;
  next: number;
}

/**
 * What budgets cost Redis and a replica: reservations and settlements in batches of 16, measured
 * over the store's own connections, next to plain decisions of as many limits in this run.
 */
export async function tellBudgetScript(measureMs: number): Promise<string> {
  const server = await RedisServer.start({ engine: "redis" });
  try {
    const opened = await openTestStore(server);
    const { decision: decisions, fleet: heartbeats, background: bulk } = opened.connections;
    const budgets = new RedisBudgets({ decisions, heartbeats, bulk, keyPrefix: "headgate:" });
    const bench: Bench = { server, measureMs, opened, budgets, next: 0 };
    const rows: (readonly string[])[] = [];
    for (const count of [1, 3]) {
      const plain = await measure(bench, batchSize, () => decide(bench, count));
      rows.push(row(`decision of ${count}`, plain, plain));
      for (const kind of ["window", "drain", "inFlight"] as const) {
        // All accounts exist before any is measured.
        for (let i = 0; i < keyCount; i += batchSize) await reserveAndSettle(bench, kind, count);
        const cost = await measure(bench, batchSize, () => reserveAndSettle(bench, kind, count));
        rows.push(row(`reserve + settle of ${count}, ${kind}`, cost, plain));
      }
    }
    await opened.store.close();
    const head = ["batches of 16", "Redis us", "own us", "of a decision"];
    return layOut([head, ...rows]);
  } finally {
    await server.stop();
  }
}

function row(name: string, { redisUs, ownUs }: Cost, plain: Cost): readonly string[] {
  const ratio = redisUs / plain.redisUs;
  return [name, redisUs.toFixed(2), ownUs.toFixed(2), `${ratio.toFixed(2)}x`];
}

async function decide(bench: Bench, count: number): Promise<void> {
  const batch = Array.from({ length: batchSize }, () => {
    const charges = Array.from({ length: count }, (_, i) => {
      bench.next += 1;
      const user = String((bench.next * 7_919) % keyCount).padStart(12, "0");
      const key = `2g5:bench4:user20:user-${user}n${i}:3600s`;
      return testCharge({ key, hits: 1_000, burst: 1_000, periodUs: 3_600_000_000 });
    });
    return { charges, multiplicity: 1 };
  });
  await bench.opened.store.take(batch, soon());
}

async function reserveAndSettle(
  bench: Bench,
  kind: ReservedEntry["law"]["kind"],
  count: number,
): Promise<void> {
  const calls = Array.from({ length: batchSize }, () => {
    bench.next += 1;
    const user = String((bench.next * 7_919) % keyCount).padStart(12, "0");
    const entries = Array.from({ length: count }, (_, i) => {
      const account = testAccount(`budget-${kind}-${i}`, `user-${user}`);
      return testEntry({ account, law: lawOf(kind), capacity: 1_000_000_000, estimate: 400 });
    });
    return { id: reservationId("a1", bench.next), entries };
  });
  const apply = (operations: readonly BudgetOperation[]) => {
    return bench.budgets.apply({ holder: "a1", leaseMs: 60_000, operations }, soon());
  };
  await apply(calls.map(({ id, entries }) => ({ kind: "reserve", id, entries })));
  await apply(
    calls.map(({ id, entries }) => ({ kind: "settle", id, costs: entries.map(() => 321) })),
  );
}

const monthUs = 30 * 86_400_000_000;

function lawOf(kind: ReservedEntry["law"]["kind"]): ReservedEntry["law"] {
  if (kind === "drain") return { kind, periodUs: 3_600_000_000 };
  if (kind === "inFlight") return { kind };
  const nowUs = systemClock.epochUs();
  const startUs = nowUs - (nowUs % monthUs);
  const endUs = startUs + monthUs;
  return { kind, windows: { startUs, endUs, nextEndUs: endUs + monthUs } };
}
