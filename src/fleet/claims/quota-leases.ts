import type { Clock, Random } from "../../core/base/clock.js";
import { toServiceError } from "../../core/base/errors.js";
import {
  type LeasesQuotas,
  leaseAsksPerCallMax,
  type QuotaLeaseAnswer,
  type QuotaLeaseAsk,
} from "../../core/quota/quota-leases.js";
import type { StoreConnection } from "../../store/connection.js";
import { parseNumbers } from "../loop/reply-numbers.js";
import { type LeaseRecords, takeClaim } from "./quota-lease-law.js";
import { quotaLeaseScript } from "./quota-lease-script.js";

/** The longest that a claim waits for its answer, in milliseconds; the next one says more. */
const leaseCallMsMax = 750;

/**
 * Hash tags that pools are spread over: so many calls a second at least where there are many
 * pools, and so many places of a cluster that do the work.
 */
const leaseTagCount = 16;

/** What `QuotaLeases` are made of. */
export interface QuotaLeasesParts {
  /** The fleet connection: claims may be repeated, and never wait behind decisions. */
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  /** The store's key prefix; replicas with the same one on the same store share quotas. */
  readonly keyPrefix: string;
}

/**
 * Divides pools among the replicas of a store. A lease counts by this replica's own monotonic
 * clock from before it was asked for, which is before the store gives it to others.
 *
 * Who stops says nothing: what its Envoys were told holds on, and so does its lease.
 */
export class QuotaLeases implements LeasesQuotas {
  readonly #parts: QuotaLeasesParts;
  readonly #id: string;
  #beatCount = 0;

  constructor(parts: QuotaLeasesParts) {
    this.#parts = parts;
    this.#id = parts.random.id();
  }

  async exchange(asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]> {
    const byTag = new Map<string, number[]>();
    asks.forEach(({ pool }, i) => {
      const tag = tagOf(pool);
      const places = byTag.get(tag);
      if (places === undefined) byTag.set(tag, [i]);
      else places.push(i);
    });
    const answers: QuotaLeaseAnswer[] = asks.map(() => unanswered);
    const exchanges = [...byTag].map(async ([tag, places]) => {
      for (let at = 0; at < places.length; at += leaseAsksPerCallMax) {
        const part = places.slice(at, at + leaseAsksPerCallMax);
        const told = await this.#claim(tag, pick(asks, part));
        part.forEach((place, i) => {
          answers[place] = told[i] ?? unanswered;
        });
      }
    });
    await Promise.all(exchanges);
    return answers;
  }

  async #claim(tag: string, asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]> {
    const { connection, clock, keyPrefix } = this.#parts;
    const sentMs = clock.monotonicMs();
    this.#beatCount += 1;
    const call = {
      script: quotaLeaseScript,
      keys: asks.map(({ pool }) => `${keyPrefix}{quota-${tag}}:${pool}`),
      args: [this.#id, String(this.#beatCount), ...asks.flatMap(argsOf)],
      deadlineMs: sentMs + leaseCallMsMax,
    };
    try {
      const crowdCount = asks.reduce((sum, { claim }) => sum + claim.crowds.length, 0);
      const told = parseNumbers(await connection.run(call), asks.length + crowdCount);
      let at = 0;
      return asks.map(({ claim: { crowds }, leaseMs }): QuotaLeaseAnswer => {
        const [rateMicroHz = overtaken, ...counts] = told.slice(at, at + 1 + crowds.length);
        at += 1 + crowds.length;
        if (rateMicroHz === overtaken) return { kind: "overtaken" };
        const elsewhere = crowds.map(({ identity }, i) => ({ identity, count: counts[i] ?? 0 }));
        return { kind: "leased", lease: { rateMicroHz, untilMs: sentMs + leaseMs, elsewhere } };
      });
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      return asks.map((): QuotaLeaseAnswer => ({ kind: "failed", code }));
    }
  }
}

/** The records of pools that replicas of one process share: tests, simulations. */
export class QuotaLeaseTable {
  readonly #pools = new Map<string, LeaseRecords>();

  recordsOf(pool: string): LeaseRecords {
    const known = this.#pools.get(pool);
    if (known !== undefined) return known;
    const made: LeaseRecords = new Map();
    this.#pools.set(pool, made);
    return made;
  }

  /** Forgets pools that nobody has claimed in time. */
  forgetEnded(nowMs: number): void {
    for (const [pool, records] of this.#pools) {
      if ([...records.values()].every(({ untilMs }) => untilMs <= nowMs)) this.#pools.delete(pool);
    }
  }
}

/** What `MemoryQuotaLeases` are made of. */
export interface MemoryQuotaLeasesParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Default: one of its own, as for a replica that shares its store with nobody. */
  readonly table?: QuotaLeaseTable;
}

/** How often a table is looked through for pools that are over, in exchanges. */
const sweepEveryCount = 64;

/** Divides pools within this process, by the same law. */
export class MemoryQuotaLeases implements LeasesQuotas {
  readonly #clock: Clock;
  readonly #table: QuotaLeaseTable;
  readonly #id: string;
  #beatCount = 0;

  constructor({ clock, random, table }: MemoryQuotaLeasesParts) {
    this.#clock = clock;
    this.#table = table ?? new QuotaLeaseTable();
    this.#id = random.id();
  }

  async exchange(asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]> {
    const nowMs = this.#clock.monotonicMs();
    this.#beatCount += 1;
    if (this.#beatCount % sweepEveryCount === 0) this.#table.forgetEnded(nowMs);
    const beat = this.#beatCount;
    return asks.map(({ pool, claim, leaseMs }): QuotaLeaseAnswer => {
      const records = this.#table.recordsOf(pool);
      const taken = takeClaim(records, { replica: this.#id, beat, claim, leaseMs }, nowMs);
      if (taken === undefined) return { kind: "overtaken" };
      return { kind: "leased", lease: { ...taken, untilMs: nowMs + leaseMs } };
    });
  }
}

/** What the script answers to a claim that was overtaken by a later one. */
const overtaken = -1;

const unanswered: QuotaLeaseAnswer = { kind: "failed", code: "STORE_PROTOCOL" };

function argsOf({ claim, leaseMs }: QuotaLeaseAsk): readonly string[] {
  const { metMicroHz, hungryMicroHz, hungryWeight, weight, heldMicroHz, ceilingMicroHz } = claim;
  const metWeight = Math.max(0, weight - hungryWeight);
  const numbers = [leaseMs, metMicroHz, metWeight, hungryMicroHz, hungryWeight];
  const crowds = claim.crowds.map(({ identity, count }) => `${identity}:${count}`);
  return [...[...numbers, heldMicroHz, ceilingMicroHz].map(String), crowds.join(" ")];
}

/** One of `leaseTagCount`, by the first two digits of a pool's name in hexadecimal. */
function tagOf(pool: string): string {
  return String(Number.parseInt(pool.slice(0, 2), 16) % leaseTagCount || 0);
}

function pick(asks: readonly QuotaLeaseAsk[], places: readonly number[]): readonly QuotaLeaseAsk[] {
  return places.flatMap((place) => asks[place] ?? []);
}
