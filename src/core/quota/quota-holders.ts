import { assert } from "../base/errors.js";
import { Tally } from "../collections/tally.js";
import type { QuotaHolder } from "./quota.js";
import type { DivisionColumns } from "./quota-division.js";
import { crowdOf, type QuotaParty } from "./quota-party.js";

interface QuotaHoldersOptions {
  /** Maximum number of holders, 1 to `quotaHoldersMax`. Default `quotaHoldersMax`. */
  readonly holdersMax?: number;
  /** Maximum number of holders of one identity, at least 1. Default `holdersMax`. */
  readonly identityHoldersMax?: number;
  /** Maximum memory for all holders besides the columns, in bytes. Default: unlimited. */
  readonly keptBytesMax?: number;
  /** The percentage of `keptBytesMax` that one identity may use, 1 to 100. Default 100. */
  readonly identityPercentMax?: number;
}

/** Maximum number of holders of one process: 1,000 Envoys with 1,000 buckets each. */
export const quotaHoldersMax = 1_000_000;

/** Values of `assigned`: the kind of the last assignment of a holder. */
export const assignedNothing = 0;
/** See `assignedNothing`. */
export const assignedDeny = 1;
/** See `assignedNothing`. */
export const assignedAllow = 2;
/** A rate. */
export const assignedRate = 3;
/** A single hit, with a negligible rate. */
export const assignedTicket = 4;

const sizeMin = 64;

/**
 * Everything that pools know of their holders, stored in columns: about 140 bytes per holder. An
 * object with as many numbers takes three times that. A holder is an index into all columns.
 *
 * Columns grow by doubling, so do not keep a reference to one across a call of `add`. Rates are in
 * micro-hits per second, times in milliseconds of the replica's monotonic clock.
 */
export class QuotaHolders {
  readonly #holdersMax: number;
  readonly #identityHoldersMax: number;
  readonly #countByIdentity = new Tally<string>();
  readonly #keptBytesMax: number;
  readonly #identityBytesMax: number;
  readonly #bytesByIdentity = new Tally<string>();
  #keptBytes = 0;
  readonly #free: number[] = [];
  #scratch = divisionColumns(0);
  #size = 0;
  #count = 0;
  weight = new Float64Array(0);
  /** The rate that it would use, by its last report. */
  demand = new Float64Array(0);
  /** The rate that it is charged with until its next report. */
  estimate = new Float64Array(0);
  rate = new Float64Array(0);
  /** The highest rate that may be active. */
  held = new Float64Array(0);
  /** When any rate above the current one has certainly ended. */
  heldUntilMs = new Float64Array(0);
  /** The highest rate that was active since the last report. */
  top = new Float64Array(0);
  /** When its current assignment was first sent. */
  changedMs = new Float64Array(0);
  /** When its assignment ends unless it is renewed. */
  untilMs = new Float64Array(0);
  reportedMs = new Float64Array(0);
  /** The time that its reports are known to cover: see `QuotaPool.report`. */
  clockMs = new Float64Array(0);
  /** Hits that it was charged with for the time after `clockMs`. */
  aheadHits = new Float64Array(0);
  /** When it was last seen in use. */
  usedMs = new Float64Array(0);
  /** Its position in the queue for single hits. */
  turn = new Float64Array(0);
  /** Its target rate while its pool is divided. */
  target = new Float64Array(0);
  tokens = new Uint32Array(0);
  /** Hits that it may have admitted and not reported, except what `top` has allowed since. */
  unreported = new Float64Array(0);
  assigned = new Uint8Array(0);
  isLeft = new Uint8Array(0);
  isHungry = new Uint8Array(0);
  /** Whether its single hit is used. */
  isSpent = new Uint8Array(0);
  /** Whether a report has covered some time, so that its demand is known. */
  isMeasured = new Uint8Array(0);
  /**
   * The number of reports that may cover time in which no assignment or another replica's was
   * active.
   */
  wasOpen = new Uint8Array(0);
  /** Its index in its pool. */
  place = new Uint32Array(0);
  /** Memory that others use for it, in bytes: mainly the texts of its bucket. */
  readonly kept: number[] = [];
  /** The part of that which all holders of its pool need. */
  readonly shared: number[] = [];
  /** The party whose weight it shares. */
  readonly party: (QuotaParty | undefined)[] = [];

  constructor({
    holdersMax = quotaHoldersMax,
    identityHoldersMax = holdersMax,
    keptBytesMax = Number.POSITIVE_INFINITY,
    identityPercentMax = 100,
  }: QuotaHoldersOptions = {}) {
    assert(
      holdersMax >= 1 && holdersMax <= quotaHoldersMax,
      "a holder bound from 1 to the maximum",
    );
    this.#holdersMax = holdersMax;
    this.#identityHoldersMax = identityHoldersMax;
    this.#keptBytesMax = keptBytesMax;
    this.#identityBytesMax = (keptBytesMax * identityPercentMax) / 100;
  }

  /** The current number of holders. */
  get count(): number {
    return this.#count;
  }

  /** Columns for dividing a pool of this size. The next call reuses them. */
  scratch(count: number): DivisionColumns {
    if (this.#scratch.target.length < count) this.#scratch = divisionColumns(2 * count);
    return this.#scratch;
  }

  /** Whether an identity cannot have another holder that uses this much memory. */
  isFullFor(identity: string, bytes = 0): boolean {
    const keptBytes = this.#bytesByIdentity.get(identity) + bytes;
    if (keptBytes > this.#identityBytesMax) return true;
    return this.#countByIdentity.get(identity) >= this.#identityHoldersMax;
  }

  /**
   * Adds a holder to a party. Returns undefined if a bound is reached.
   *
   * @param bytes memory that is used for it besides the columns
   */
  add(party: QuotaParty, bytes = 0): QuotaHolder | undefined {
    const { identity } = party;
    if (this.#count >= this.#holdersMax || this.isFullFor(identity, bytes)) return undefined;
    if (this.#keptBytes + bytes > this.#keptBytesMax) return undefined;
    this.#countByIdentity.add(identity, 1);
    const again = this.#free.pop();
    if (again === undefined && this.#count >= this.#size) this.#grow();
    const holder = again ?? this.#count;
    this.#count += 1;
    this.party[holder] = party;
    party.holderCount += 1;
    this.kept[holder] = 0;
    this.shared[holder] = 0;
    this.#keep(holder, bytes);
    // The only place where a number becomes a holder.
    return holder as QuotaHolder;
  }

  /**
   * Its weight within the whole pool. Opening more streams, at any replica, does not increase the
   * weight of an identity.
   *
   * Example: if an identity has 12 Envoys here and 8 elsewhere, each has a twentieth of its own
   * weight.
   */
  partWeight(holder: QuotaHolder): number {
    const party = this.party[holder];
    return (this.weight[holder] ?? 1) / (party === undefined ? 1 : crowdOf(party));
  }

  /** Resets all columns of a holder to the state of a new one. */
  reset(holder: QuotaHolder, weight: number, nowMs: number): void {
    this.weight[holder] = weight;
    this.demand[holder] = 0;
    this.estimate[holder] = 0;
    this.rate[holder] = 0;
    this.held[holder] = 0;
    this.heldUntilMs[holder] = 0;
    this.top[holder] = 0;
    this.changedMs[holder] = nowMs;
    this.untilMs[holder] = nowMs;
    this.reportedMs[holder] = nowMs;
    this.clockMs[holder] = nowMs;
    this.aheadHits[holder] = 0;
    this.usedMs[holder] = nowMs;
    this.turn[holder] = 0;
    this.target[holder] = 0;
    this.tokens[holder] = 0;
    this.unreported[holder] = 0;
    this.assigned[holder] = assignedNothing;
    this.isLeft[holder] = 0;
    this.isHungry[holder] = 0;
    this.isSpent[holder] = 0;
    this.isMeasured[holder] = 0;
    this.wasOpen[holder] = 1;
  }

  /** Removes a holder. Its index may be reused. */
  remove(holder: QuotaHolder): void {
    this.#free.push(holder);
    this.#count -= 1;
    const party = this.party[holder];
    if (party === undefined) return;
    this.#keep(holder, 0);
    this.party[holder] = undefined;
    party.holderCount -= 1;
    this.#countByIdentity.add(party.identity, -1);
  }

  /** Transfers the memory accounted to one holder to another one of the same identity. */
  handOver(from: QuotaHolder, to: QuotaHolder): void {
    const bytes = this.kept[from] ?? 0;
    this.#keep(from, 0);
    this.#keep(to, bytes);
    this.shared[to] = this.shared[from] ?? 0;
    this.shared[from] = 0;
  }

  /** Accounts this much of a holder's memory to its pool. `bequeath` transfers it. */
  share(holder: QuotaHolder, bytes: number): void {
    this.shared[holder] = bytes;
  }

  /** Transfers what the pool of a holder needs to another holder of it, of any identity. */
  bequeath(from: QuotaHolder, to: QuotaHolder): void {
    const bytes = this.shared[from] ?? 0;
    if (bytes === 0) return;
    this.#keep(from, (this.kept[from] ?? 0) - bytes);
    this.#keep(to, (this.kept[to] ?? 0) + bytes);
    this.shared[to] = (this.shared[to] ?? 0) + bytes;
    this.shared[from] = 0;
  }

  #keep(holder: number, bytes: number): void {
    const identity = this.party[holder]?.identity ?? "";
    const more = bytes - (this.kept[holder] ?? 0);
    this.#bytesByIdentity.add(identity, more);
    this.#keptBytes += more;
    this.kept[holder] = bytes;
  }

  #grow(): void {
    const size = Math.min(this.#holdersMax, Math.max(sizeMin, 2 * this.#size));
    this.#size = size;
    this.weight = longer(this.weight, size);
    this.demand = longer(this.demand, size);
    this.estimate = longer(this.estimate, size);
    this.rate = longer(this.rate, size);
    this.held = longer(this.held, size);
    this.heldUntilMs = longer(this.heldUntilMs, size);
    this.top = longer(this.top, size);
    this.changedMs = longer(this.changedMs, size);
    this.untilMs = longer(this.untilMs, size);
    this.reportedMs = longer(this.reportedMs, size);
    this.clockMs = longer(this.clockMs, size);
    this.aheadHits = longer(this.aheadHits, size);
    this.usedMs = longer(this.usedMs, size);
    this.turn = longer(this.turn, size);
    this.target = longer(this.target, size);
    this.unreported = longer(this.unreported, size);
    this.tokens = longerWords(this.tokens, size);
    this.place = longerWords(this.place, size);
    this.assigned = longerBytes(this.assigned, size);
    this.isLeft = longerBytes(this.isLeft, size);
    this.isHungry = longerBytes(this.isHungry, size);
    this.isSpent = longerBytes(this.isSpent, size);
    this.isMeasured = longerBytes(this.isMeasured, size);
    this.wasOpen = longerBytes(this.wasOpen, size);
  }
}

function divisionColumns(size: number): DivisionColumns {
  return {
    most: new Float64Array(size),
    least: new Float64Array(size),
    weight: new Float64Array(size),
    target: new Float64Array(size),
  };
}

function longer(column: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const copy = new Float64Array(size);
  copy.set(column);
  return copy;
}

function longerWords(column: Uint32Array, size: number): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(size);
  copy.set(column);
  return copy;
}

function longerBytes(column: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(size);
  copy.set(column);
  return copy;
}
