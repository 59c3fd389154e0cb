import { describe, expect, it } from "vitest";
import type { QuotaChange, QuotaHolder, QuotaUsage } from "../../src/core/quota/quota.js";
import { QuotaHolders } from "../../src/core/quota/quota-holders.js";
import { QuotaPool } from "../../src/core/quota/quota-pool.js";
import { type LeaseRecords, takeClaim } from "../../src/store/coordination/quota-lease-law.js";
import { QuotaStore } from "./quota-store.js";

const limitHz = 100;
const microHz = 1_000_000;
const leaseMs = 15_000;
const limit = { hits: limitHz, periodUs: 1_000_000, burst: limitHz };

/** What replicas share. */
interface Shared {
  readonly records: LeaseRecords;
  readonly store: QuotaStore;
}

/** A replica that divides a pool with others, and streams of who lies to it. */
class LiedToReplica {
  readonly reported = new Map<QuotaHolder, number>();
  readonly #id: string;
  readonly #shared: Shared;
  readonly #liars: readonly QuotaHolder[];
  readonly #pool = new QuotaPool({
    settings: {
      mode: "limited",
      limits: [limit],
      ttlMs: 10_000,
      callsShare: 0,
    },
    holders: new QuotaHolders(),
    nowMs: 0,
  });
  #beat = 0;

  constructor(id: string, shared: Shared, liarCount: number) {
    this.#id = id;
    this.#shared = shared;
    this.#liars = Array.from({ length: liarCount }, () => this.join("1a"));
  }

  join(identity: string): QuotaHolder {
    const holder = this.#pool.join({ weight: 1, identity }, 0);
    if (holder === undefined) throw new Error("no room");
    return holder;
  }

  lie(nowMs: number): void {
    const lie = { allowedHits: 1_000_000, deniedHits: 1_000_000, elapsedMs: 5_000 };
    for (const holder of this.#liars) this.report(holder, lie, nowMs);
  }

  report(holder: QuotaHolder, usage: QuotaUsage, nowMs: number): void {
    this.#pool.report(holder, usage, nowMs);
    const assignment = this.#pool.answer(holder, nowMs);
    if (assignment !== undefined) this.#hear({ kind: "assign", holder, assignment });
  }

  exchange(nowMs: number): void {
    this.#beat += 1;
    const claim = this.#pool.claim(nowMs);
    const order = { replica: this.#id, beat: this.#beat, claim, leaseMs };
    const taken = takeClaim(this.#shared.records, order, nowMs);
    if (taken !== undefined) this.#pool.lease({ ...taken, untilMs: nowMs + leaseMs }, nowMs);
  }

  divide(nowMs: number): void {
    const hits = this.#pool.dueHits(nowMs);
    const levels = [this.#shared.store.settle(hits, nowMs)];
    this.#pool.charged({ hits, levels }, nowMs);
    for (const change of this.#pool.rebalance(nowMs)) this.#hear(change);
  }

  #hear(change: QuotaChange): void {
    if (change.kind !== "assign") return;
    const { assignment } = change;
    const hz = assignment.kind === "bucket" ? assignment.rateMicroHz / microHz : 0;
    this.reported.set(change.holder, hz);
  }
}

describe("one identity at several replicas", () => {
  // Streams to several replicas once weighed as one identity at each of them.
  it.each([
    [20, 0],
    [0, 20],
    [10, 10],
    [19, 1],
    [7, 7, 6],
    [1, 1, 1, 1, 1, 1],
  ])("leaves an honest Envoy its half beside streams of one that lies: %j, %j", (...counts) => {
    const shared = { records: new Map(), store: new QuotaStore(limit) };
    const replicas = counts.map((count, i) => new LiedToReplica(`r${i}`, shared, count));
    const last = replicas.at(-1);
    if (last === undefined) throw new Error("one at least");
    const honest = last.join("2b");
    const honestHz = (): number => last.reported.get(honest) ?? 0;
    for (let nowMs = 0; nowMs <= 120_000; nowMs += 250) {
      for (const replica of replicas) {
        if (nowMs % 1_000 === 0) replica.exchange(nowMs);
        if (nowMs % 5_000 === 0) replica.lie(nowMs);
        if (replica === last && nowMs % 5_000 === 0) {
          const allowedHits = Math.floor(5 * honestHz());
          replica.report(honest, { allowedHits, deniedHits: 500, elapsedMs: 5_000 }, nowMs);
        }
        replica.divide(nowMs);
      }
    }
    expect(honestHz()).toBeGreaterThan(0.4 * limitHz);
  });
});
