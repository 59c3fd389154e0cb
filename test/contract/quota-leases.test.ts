import { describe, expect, it } from "vitest";
import type { LeasesQuotas, QuotaClaim } from "../../src/core/quota/quota.js";
import { QuotaLeases, type QuotaLeasesParts } from "../../src/fleet/claims/quota-leases.js";
import { type LeaseRecords, takeClaim } from "../../src/store/coordination/quota-lease-law.js";
import { RedisQuotas } from "../../src/store/redis/coordination/redis-quotas.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { FakeRandom } from "../support/fake-random.js";
import { claimHz, testClaim, testPool } from "../support/quota-claims.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { runSeeds, seedCount, seedsFrom } from "../support/seeds.js";
import { type CallFate, WaywardConnection } from "../support/wayward-connection.js";

const firstSeed = 20_261_122;
const hz = (hits: number): number => hits * 1_000_000;

/** One replica's leases over a connection of its own. */
function leasesOver(
  connection: StoreConnection,
  parts: Pick<QuotaLeasesParts, "random"> & { readonly keyPrefix: string },
): QuotaLeases {
  const store = new RedisQuotas({ ...parts, connection, clock: realClock });
  return new QuotaLeases({ store, random: parts.random });
}

describe.each(enginesFor.scripts)("the script of leases on %s", (engine) => {
  const store = shareTestStore(engine);

  const stepCount = seedCount(historiesOn(engine, 200));

  it("divides to the last micro-hit as the law does", async () => {
    const random = new FakeRandom(firstSeed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const pool = testPool;
    const { fleet: connection } = store.opened.connections;
    const replicas = ["a", "b", "c"].map((id) => {
      const named = { next: () => random.next(), id: () => id };
      return {
        id,
        leases: leasesOver(connection, { random: named, keyPrefix: "law:" }),
      };
    });
    const records: LeaseRecords = new Map();
    for (let step = 0; step < stepCount; step += 1) {
      const replica = replicas[below(3)];
      if (replica === undefined) throw new Error("one of three");
      const weight = 1 + below(1_000);
      const claim: QuotaClaim = {
        metMicroHz: below(2) * below(2 ** 51),
        hungryMicroHz: below(2) * below(2 ** 51),
        hungryWeight: below(weight + 1),
        weight,
        heldMicroHz: below(2 ** 49),
        ceilingMicroHz: below(2 ** 52),
        crowds: ["0a", "1b", "2c"].slice(below(4)).map((identity) => {
          return { identity, count: 1 + below(1_000_000) };
        }),
      };
      const leaseMs = 3_600_000;
      const [answer] = await replica.leases.exchange([{ pool, claim, leaseMs }]);
      const reported = takeClaim(records, { replica: replica.id, beat: step, claim, leaseMs }, 1);
      if (answer?.kind !== "leased") throw new Error("it is leased");
      const { rateMicroHz, elsewhere } = answer.lease;
      expect({ rateMicroHz, elsewhere }, `step ${step}`).toEqual(reported);
    }
  });
});

describe("QuotaLeases", () => {
  const store = shareTestStore("redis");

  const join = (test: string): LeasesQuotas => {
    const { fleet: connection } = store.opened.connections;
    return leasesOver(connection, { random: realRandom, keyPrefix: `${test}:` });
  };

  it("leaves aside a claim that arrives after a later one of the same replica", async () => {
    const connection = new WaywardConnection({
      connection: store.opened.connections.fleet,
      random: new FakeRandom(1),
      onRun: () => {},
    });
    const parts = { random: realRandom, keyPrefix: "late:" };
    const [slow, other] = [leasesOver(connection, parts), join("late")];
    connection.fate = "late";
    const ask = { pool: testPool, claim: testClaim(), leaseMs: 60_000 };
    expect(await slow.exchange([ask])).toEqual([{ kind: "failed", code: "STORE_TIMEOUT" }]);
    connection.fate = "answered";
    expect(await claimHz(slow, {})).toBe(100);
    await connection.deliverOne();
    expect(await claimHz(other, { hungryMicroHz: hz(50), hungryWeight: 1 })).toBe(0);
  });

  const seeds = seedsFrom(firstSeed, 100);

  it(`never lets replicas hold more than there is, in ${seeds.length} histories of losses`, () =>
    runSeeds(seeds, runHistory));

  async function runHistory(seed: number): Promise<void> {
    const random = new FakeRandom(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const fates: readonly CallFate[] = ["answered", "answered", "lost", "unanswered", "late"];
    const replicas = [0, 1, 2].map(() => {
      const connection = new WaywardConnection({
        connection: store.opened.connections.fleet,
        random,
        onRun: () => {},
      });
      const keyPrefix = `history-${seed}:`;
      const leases = leasesOver(connection, { random, keyPrefix });
      return { connection, leases, held: 0 };
    });
    // One of the histories is longer.
    const steps = seed === seeds[0] ? 200 : 40;
    for (let step = 0; step < steps; step += 1) {
      const replica = replicas[below(3)];
      if (replica === undefined) throw new Error("one of three");
      // Its Envoys have taken in that they are to have less.
      if (random.next() < 0.5) replica.held = below(replica.held + 1);
      replica.connection.fate = fates[below(fates.length)] ?? "answered";
      const claim = testClaim({
        hungryMicroHz: below(hz(300)),
        hungryWeight: 1,
        heldMicroHz: replica.held,
      });
      const ask = { pool: testPool, claim, leaseMs: 3_600_000 };
      const [answer] = await replica.leases.exchange([ask]);
      if (answer?.kind === "leased") {
        replica.held = Math.max(replica.held, answer.lease.rateMicroHz);
      }
      if (random.next() < 0.3) await replica.connection.deliverOne();
      const sum = replicas.reduce((all, { held }) => all + held, 0);
      expect(sum, `step ${step}`).toBeLessThanOrEqual(hz(100));
    }
  }
});
