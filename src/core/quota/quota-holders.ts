import { assert } from "../base/errors.js";
import { Tally } from "../collections/tally.js";
import type { QuotaHolder } from "./quota.js";
import type { DivisionColumns } from "./quota-division.js";
import { crowdOf, type QuotaParty } from "./quota-party.js";

interface QuotaHoldersOptions {
  /** The most at once, 1 to `quotaHoldersMax`. Default `quotaHoldersMax`. */
  readonly holdersMax?: number;
  /** The most of one identity, from 1. Default `holdersMax`. */
  readonly identityHoldersMax?: number;
  /** The most bytes that are kept of all beside the columns. Default: no bound. */
  readonly keptBytesMax?: number;
  /** The part of `keptBytesMax` that one identity may have, 1 to 100. Default 100. */
  readonly identityPercentMax?: number;
}

/** The most holders of one process: 1,000 Envoys of 1,000 buckets each. */
export const quotaHoldersMax = 1_000_000;

/** What a holder was told last. */
export const assignedNothing = 0;
/** See `assignedNothing`. */
export const assignedDeny = 1;
/** See `assignedNothing`. */
export const assignedAllow = 2;
/** A rate. */
export const assignedRate = 3;
/** One hit, and next to no rate. */
export const assignedTicket = 4;

const sizeMin = 64;

/**
 * Everything that pools know of their holders, in columns: some 140 bytes a holder, which an object
 * with as many numbers needs three times. A holder is a place in all of them.
 *
 * Columns grow by doubling; so nobody keeps one over a call of `add`. Rates are in micro-hits a
 * second, times in milliseconds of the replica's monotonic clock.
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
  /** What it would use, by its last report. */
  demand = new Float64Array(0);
  /** What it is charged with until its next report. */
  estimate = new Float64Array(0);
  rate = new Float64Array(0);
  /** The highest rate that may be active. */
  held = new Float64Array(0);
  /** When a higher rate than the present one is over in any case. */
  heldUntilMs = new Float64Array(0);
  /** The highest rate that was active since the last report. */
  top = new Float64Array(0);
  /** When it was first told what it is told now. */
  changedMs = new Float64Array(0);
  /** When what it was told is over, if it is not renewed. */
  untilMs = new Float64Array(0);
  reportedMs = new Float64Array(0);
  /** What its reports are known to cover: see `QuotaPool.report`. */
  clockMs = new Float64Array(0);
  /** Hits that it was charged with for time after `clockMs`. */
  aheadHits = new Float64Array(0);
  /** When it was last seen in use. */
  usedMs = new Float64Array(0);
  /** Its turn among those who get single hits. */
  turn = new Float64Array(0);
  /** What it is to have, while its pool is being divided. */
  target = new Float64Array(0);
  tokens = new Uint32Array(0);
  /** Hits that it may have admitted and not reported, but for what `top` has brought since. */
  unreported = new Float64Array(0);
  assigned = new Uint8Array(0);
  isLeft = new Uint8Array(0);
  isHungry = new Uint8Array(0);
  /** Its single hit is used. */
  isSpent = new Uint8Array(0);
  /** A report has told of some time, and so what it asks for. */
  isMeasured = new Uint8Array(0);
  /** Reports that may tell of time in which nothing limited it, or another replica did. */
  wasOpen = new Uint8Array(0);
  /** Its place in its pool. */
  place = new Uint32Array(0);
  /** Bytes that others keep of it: texts of its bucket, most of all. */
  readonly kept: number[] = [];
  /** With whom it shares its weight. */
  readonly party: (QuotaParty | undefined)[] = [];

  constructor({
    holdersMax = quotaHoldersMax,
    identityHoldersMax = holdersMax,
    keptBytesMax = Number.POSITIVE_INFINITY,
    identityPercentMax = 100,
  }: QuotaHoldersOptions = {}) {
    assert(holdersMax >= 1 && holdersMax <= quotaHoldersMax, "a number of holders there may be");
    this.#holdersMax = holdersMax;
    this.#identityHoldersMax = identityHoldersMax;
    this.#keptBytesMax = keptBytesMax;
    this.#identityBytesMax = (keptBytesMax * identityPercentMax) / 100;
  }

  /** Holders at present. */
  get count(): number {
    return this.#count;
  }

  /** Columns to divide a pool of so many in; whoever asks next writes over them. */
  scratch(count: number): DivisionColumns {
    if (this.#scratch.target.length < count) this.#scratch = divisionColumns(2 * count);
    return this.#scratch;
  }

  /** Whether an identity may have no more, of which so many bytes are kept. */
  isFullFor(identity: string, bytes = 0): boolean {
    const keptBytes = this.#bytesByIdentity.get(identity) + bytes;
    if (keptBytes > this.#identityBytesMax) return true;
    return this.#countByIdentity.get(identity) >= this.#identityHoldersMax;
  }

  /**
   * Makes room for one of a party; undefined where there is as much as there may be.
   *
   * @param bytes that are kept of it beside the columns
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
    this.#keep(holder, bytes);
    // The one place where a number becomes a holder.
    return holder as QuotaHolder;
  }

  /**
   * What it weighs among all of its pool: who opens more streams weighs no more for it, at whatever
   * replicas they are.
   *
   * Example: of an identity with 12 Envoys here and 8 elsewhere each weighs a twentieth of its own.
   */
  partWeight(holder: QuotaHolder): number {
    const party = this.party[holder];
    return (this.weight[holder] ?? 1) / (party === undefined ? 1 : crowdOf(party));
  }

  /** Sets everything about one to how it is for somebody new. */
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

  /** Its place may be another one's from now on. */
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

  /** What is kept of one is kept of another one of the same identity. */
  handOver(from: QuotaHolder, to: QuotaHolder): void {
    const bytes = this.kept[from] ?? 0;
    this.#keep(from, 0);
    this.#keep(to, bytes);
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
