import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { QuotaClaim } from "../../src/core/quota.js";
import { type LeasesQuotas, leaseAsksPerCallMax } from "../../src/core/quota-leases.js";
import { type LeaseRecords, takeClaim } from "../../src/fleet/quota-lease-law.js";
import { MemoryQuotaLeases, QuotaLeases, QuotaLeaseTable } from "../../src/fleet/quota-leases.js";
import type { StoreConnection } from "../../src/store/connection.js";
import { openClusterStore, type TestClusterStore } from "../support/cluster-store.js";
import { FakeRandom } from "../support/fake-random.js";
import { claimHz, leasedHz, testClaim, testPool } from "../support/quota-claims.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { RedisCluster } from "../support/redis-cluster.js";
import type { RedisServer } from "../support/redis-server.js";
import { RedisServer as Server } from "../support/redis-server.js";
import { openTestStore, type TestRedisStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";
import { type CallFate, WaywardConnection } from "../support/wayward-connection.js";

const kinds = ["memory", "redis", "valkey", "cluster"] as const;
const seedCount = 3;
const firstSeed = 20_261_122;
const hz = (hits: number): number => hits * 1_000_000;

/** Replicas of one store of a kind. */
class LeaseStore {
  readonly #table = new QuotaLeaseTable();
  #server: RedisServer | undefined;
  #cluster: RedisCluster | undefined;
  #opened: TestRedisStore | TestClusterStore | undefined;
  readonly kind: (typeof kinds)[number];

  constructor(kind: (typeof kinds)[number]) {
    this.kind = kind;
  }

  async open(): Promise<void> {
    if (this.kind === "memory") return;
    if (this.kind === "cluster") {
      this.#cluster = await RedisCluster.start("redis");
      this.#opened = await openClusterStore(this.#cluster.nodes.slice(0, 1));
    } else {
      this.#server = await Server.start({ engine: this.kind });
      this.#opened = await openTestStore(this.#server);
    }
  }

  async close(): Promise<void> {
    await this.#opened?.store.close();
    await this.#server?.stop();
    await this.#cluster?.stop();
  }

  get connection(): StoreConnection {
    if (this.#opened === undefined) throw new Error("it has no connection");
    return this.#opened.connections.fleet;
  }

  /** Another replica, on keys of one test's own. */
  join(test: string): LeasesQuotas {
    const clock = realClock;
    const random = realRandom;
    if (this.kind === "memory") {
      return new MemoryQuotaLeases({ clock, random, table: this.#table });
    }
    return new QuotaLeases({ connection: this.connection, clock, random, keyPrefix: `${test}:` });
  }
}

describe.each(kinds)("leases of quotas, %s", (kind) => {
  const store = new LeaseStore(kind);
  beforeAll(() => store.open(), 60_000);
  afterAll(() => store.close());

  /** Tests share the table in memory: each has pools of its own. */
  const poolOf = (test: string): string => Buffer.from(test.padEnd(16)).toString("hex");

  it("lends all to one who is alone, and gives it nothing above", async () => {
    const at = { pool: poolOf("alone") };
    expect(await claimHz(store.join("alone"), { metMicroHz: hz(5) }, at)).toBe(100);
  });

  it("gives the hungry what the others leave, by their weights", async () => {
    const at = { pool: poolOf("hungry") };
    const [quiet, one, three] = [1, 2, 3].map(() => store.join("hungry"));
    if (quiet === undefined || one === undefined || three === undefined) throw new Error("three");
    const claims = [
      [quiet, { metMicroHz: hz(20) }],
      [one, { hungryMicroHz: hz(500), hungryWeight: 1, weight: 1 }],
      [three, { hungryMicroHz: hz(500), hungryWeight: 3, weight: 3 }],
    ] as const;
    const told = [0, 0, 0];
    for (let round = 0; round < 3; round += 1) {
      for (const [i, [replica, claim]] of claims.entries()) {
        const heldMicroHz = hz(told[i] ?? 0);
        told[i] = await claimHz(replica, { ...claim, heldMicroHz }, at);
      }
    }
    expect(told).toEqual([20, 20, 60]);
  });

  it("gives nobody what another one's Envoys may still use", async () => {
    const at = { pool: poolOf("still") };
    const [first, second] = [store.join("still"), store.join("still")];
    expect(await claimHz(first, {}, at)).toBe(100);
    const hungry = { hungryMicroHz: hz(200), hungryWeight: 1 };
    expect(await claimHz(second, hungry, at)).toBe(0);
    // It is to give back, and has not: its Envoys hold on.
    expect(await claimHz(first, { heldMicroHz: hz(100) }, at)).toBe(0);
    expect(await claimHz(second, hungry, at)).toBe(0);
    expect(await claimHz(first, { heldMicroHz: hz(30) }, at)).toBe(0);
    expect(await claimHz(second, hungry, at)).toBe(70);
  });

  it("lets nothing grow while less may be handed out than is held", async () => {
    const at = { pool: poolOf("fallen") };
    const [first, second] = [store.join("fallen"), store.join("fallen")];
    expect(await claimHz(first, {}, at)).toBe(100);
    const fallen = { ceilingMicroHz: hz(10), hungryMicroHz: hz(50), hungryWeight: 1 };
    expect(await claimHz(second, fallen, at)).toBe(0);
    expect(await claimHz(first, { ...fallen, heldMicroHz: hz(100) }, at)).toBeLessThan(10);
  });

  it("gives what a silent replica had to others when its lease is over", async () => {
    const at = { pool: poolOf("silent") };
    const [dead, live] = [store.join("silent"), store.join("silent")];
    expect(await claimHz(dead, {}, { ...at, leaseMs: 300 })).toBe(100);
    const hungry = { hungryMicroHz: hz(90), hungryWeight: 1 };
    expect(await claimHz(live, hungry, at)).toBe(0);
    await waitFor("the lease is over", async () => (await claimHz(live, hungry, at)) === 100);
  });

  it("answers many pools at once, each its own, in order", async () => {
    const leases = store.join("many");
    const asks = Array.from({ length: 2 * leaseAsksPerCallMax + 50 }, (_, i) => ({
      pool: `${(i * 37).toString(16).padStart(2, "0")}-many-${i}`,
      claim: testClaim({ ceilingMicroHz: hz(i + 1) }),
      leaseMs: 60_000,
    }));
    const answers = await leases.exchange(asks);
    expect(answers.map(leasedHz)).toEqual(asks.map((_, i) => i + 1));
  });
});

describe.each(["redis", "valkey"] as const)("the script of leases on %s", (kind) => {
  const store = new LeaseStore(kind);
  beforeAll(() => store.open());
  afterAll(() => store.close());

  it("divides to the last micro-hit as the law does", async () => {
    const random = new FakeRandom(firstSeed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const pool = testPool;
    const { connection } = store;
    const replicas = ["a", "b", "c"].map((id) => {
      const named = { next: () => random.next(), id: () => id };
      return {
        id,
        leases: new QuotaLeases({ connection, clock: realClock, random: named, keyPrefix: "law:" }),
      };
    });
    const records: LeaseRecords = new Map();
    for (let step = 0; step < 200; step += 1) {
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
      };
      const leaseMs = 3_600_000;
      const [answer] = await replica.leases.exchange([{ pool, claim, leaseMs }]);
      const told = takeClaim(records, { replica: replica.id, beat: step, claim, leaseMs }, 1);
      expect(Math.round(leasedHz(answer) * 1_000_000), `step ${step}`).toBe(told);
    }
  });
});

describe("QuotaLeases", () => {
  const store = new LeaseStore("redis");
  beforeAll(() => store.open());
  afterAll(() => store.close());

  it("leaves aside a claim that arrives after a later one of the same replica", async () => {
    const connection = new WaywardConnection({
      connection: store.connection,
      random: new FakeRandom(1),
      onRun: () => {},
    });
    const parts = { connection, clock: realClock, random: realRandom, keyPrefix: "late:" };
    const [slow, other] = [new QuotaLeases(parts), store.join("late")];
    connection.fate = "late";
    const ask = { pool: testPool, claim: testClaim(), leaseMs: 60_000 };
    expect(await slow.exchange([ask])).toEqual([{ kind: "failed", code: "STORE_TIMEOUT" }]);
    connection.fate = "answered";
    expect(await claimHz(slow, {})).toBe(100);
    await connection.deliverOne();
    expect(await claimHz(other, { hungryMicroHz: hz(50), hungryWeight: 1 })).toBe(0);
  });

  it.each(Array.from({ length: seedCount }, (_, i) => firstSeed + i))(
    "never lets replicas hold more than there is, in a history of losses, seed %i",
    async (seed) => {
      const random = new FakeRandom(seed);
      const below = (count: number): number => Math.floor(random.next() * count);
      const fates: readonly CallFate[] = ["answered", "answered", "lost", "unanswered", "late"];
      const replicas = [0, 1, 2].map(() => {
        const connection = new WaywardConnection({
          connection: store.connection,
          random,
          onRun: () => {},
        });
        const keyPrefix = `history-${seed}:`;
        const leases = new QuotaLeases({ connection, clock: realClock, random, keyPrefix });
        return { connection, leases, held: 0 };
      });
      for (let step = 0; step < 200; step += 1) {
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
    },
  );
});
