import { Breaker, type StoreBreakerOptions } from "../../core/base/breaker.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { Charge } from "../../core/limits/bucket.js";
import {
  apportion,
  borrowingWindow,
  creditCharge,
  type GlobalDemand,
  isWithin,
  lendableHits,
  lendingCharge,
  type RegionalLimits,
  type RegionShare,
  wantedHits,
} from "../../core/limits/lending.js";
import type { Window } from "../../core/limits/window.js";
import type { LimitStore, StoreOutcome, StoreRequest } from "../../store/limit-store.js";
import { type DemandedKey, DemandTable } from "./demand-table.js";

/** Another region, and the store of its limits. */
export interface RegionPeer {
  /** Its name, unique among all regions. */
  readonly name: string;
  readonly store: LimitStore;
}

/** A change of what can be borrowed. Sent once for each change. */
export type LendingEvent =
  /** Calls to a region fail. Nothing is borrowed from it until a probe succeeds. */
  | { readonly kind: "regionLost"; readonly region: string; readonly code: ErrorCode }
  | { readonly kind: "regionFound"; readonly region: string }
  /** This region's store did not confirm credits: their hits may be lost. */
  | { readonly kind: "creditsLost"; readonly code: ErrorCode }
  | { readonly kind: "creditsFound" };

/** What a replica borrowed from one region so far. All counts only rise. */
export interface RegionLending {
  readonly region: string;
  /** False while calls to it fail. */
  readonly isReachable: boolean;
  /** Calls that asked for hits, and those of them that failed. */
  readonly callCount: number;
  readonly failedCallCount: number;
  readonly askedHits: number;
  /** Hits that were charged there and given to buckets here. */
  readonly borrowedHits: number;
  /**
   * Hits that were charged there, or may have been, and never reached a bucket here: a reply or a
   * credit was lost, or the window had ended there.
   */
  readonly lostHits: number;
  /** The duration of the last successful call, in milliseconds. Absent: none succeeded yet. */
  readonly roundTripMs?: number;
}

/** The dependencies of a `Lender`. */
export interface LenderParts {
  /** This region's name, unique among all regions. */
  readonly region: string;
  /** This region's store. */
  readonly store: LimitStore;
  /** All other regions, at most `regionsMax` - 1. Every region must name the same ones. */
  readonly peers: readonly RegionPeer[];
  readonly clock: Clock;
  readonly random: Random;
  /** The current number of replicas in this region, at least 1. */
  readonly replicaCount: () => number;
  readonly onEvent?: (event: LendingEvent) => void;
}

/** The shortest time between two rounds, in milliseconds; the longest one is half as much more. */
const lendingIntervalMs = 100;

/** How long a call to another region may take, in milliseconds. */
const lendingCallMsMax = 500;

/** How long a credit to this region's store may take, in milliseconds. */
const creditMsMax = 250;

/** How long nothing is borrowed after a credit was lost, in milliseconds. */
const restMsAfterLoss = 1_000;

/** How long a region that had nothing to lend is not asked for a key, in milliseconds, at most. */
const restMsMax = 1_000;

/** One failure opens it: calls are rare, and each that is lost loses hits. */
const breakerOptions: StoreBreakerOptions = {
  failureCountToOpen: 1,
  failingMsToOpen: 0,
  probeAfterMs: 250,
  probeAfterMsMax: 250,
};

/** Hits to ask one region for, for one key. */
interface Ask {
  readonly key: DemandedKey;
  /** The charge there: once for each hit, or once for all hits in a window. 0 hits: only looks. */
  readonly request: StoreRequest;
  readonly hits: number;
  /** The window of this region. Undefined for a limit that drains. */
  readonly window: Window | undefined;
}

interface Loan {
  readonly key: DemandedKey;
  readonly hits: number;
  readonly window: Window | undefined;
}

/**
 * Borrows hits of global limits from other regions. `core/limits/lending` has the rules and the
 * guarantee.
 *
 * Each round asks every other region in one call for the keys with the most demand. A region has at
 * most one call in flight, so a slow one delays nothing but itself. What a call granted is credited
 * when its reply arrives. Calls and credits are sent once: a failure loses hits, and never admits
 * any twice.
 */
export class Lender implements RegionalLimits {
  readonly share: RegionShare;
  readonly denialMsMax = lendingIntervalMs;
  readonly #parts: LenderParts;
  readonly #peers: readonly PeerRegion[];
  readonly #table = new DemandTable();
  readonly #calls = new Set<Promise<void>>();
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  #areCreditsLost = false;
  #isClosed = false;
  #cancelNext: Cancel | undefined;

  /** Starts at once, until `close`. It does not close any store. */
  constructor(parts: LenderParts) {
    this.#parts = parts;
    const { region, peers } = parts;
    const names = [region, ...peers.map(({ name }) => name)].sort();
    const shareOf = (name: string): RegionShare => ({
      index: names.indexOf(name),
      count: names.length,
    });
    this.share = shareOf(region);
    this.#peers = peers
      .map((peer) => new PeerRegion(peer, shareOf(peer.name)))
      .sort((one, other) => one.share.index - other.share.index);
    this.#schedule();
  }

  note(demand: GlobalDemand): void {
    this.#table.note(demand, this.#parts.clock.monotonicMs());
  }

  /** What was borrowed from each other region, sorted by name. */
  regions(): readonly RegionLending[] {
    return this.#peers.map((peer) => peer.lending());
  }

  /** Keys for which this replica borrows now. */
  get keyCount(): number {
    return this.#table.keyCount;
  }

  /** Times that a key was not borrowed for, because too many others had more demand. */
  get droppedKeyCount(): number {
    return this.#table.droppedKeyCount;
  }

  /** Ends after the calls in flight, which end by their time budgets. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelNext?.();
    await Promise.all(this.#calls);
  }

  #schedule(): void {
    const { clock, random } = this.#parts;
    const delayMs = lendingIntervalMs * (1 + random.next() / 2);
    this.#cancelNext = clock.schedule(delayMs, () => {
      this.#round();
      this.#schedule();
    });
  }

  #round(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const keys = this.#table.hottest(nowMs);
    for (const peer of this.#peers) {
      if (!peer.isBusy && peer.wantsProbe(nowMs)) this.#track(peer, this.#probe(peer));
    }
    if (nowMs < this.#restsUntilMs) return;
    const idle = this.#peers.filter((peer) => peer.isIdle(nowMs));
    const asks = idle.map((): Ask[] => []);
    for (const key of keys) this.#plan(key, idle, asks);
    for (const [i, peer] of idle.entries()) {
      const own = asks[i];
      if (own !== undefined && own.length > 0) this.#track(peer, this.#borrow(peer, own));
    }
  }

  /** A call that took longer than the time between two rounds is followed by the next at once. */
  #track(peer: PeerRegion, call: Promise<void>): void {
    const { clock } = this.#parts;
    peer.isBusy = true;
    peer.sentMs = clock.monotonicMs();
    const ended = call.finally(() => {
      peer.isBusy = false;
      this.#calls.delete(ended);
      if (!this.#isClosed && peer.isIdle(clock.monotonicMs())) this.#round();
    });
    this.#calls.add(ended);
  }

  /** Divides the hits that a key needs among the idle regions. */
  #plan(key: DemandedKey, idle: readonly PeerRegion[], asks: readonly Ask[][]): void {
    const { clock, replicaCount } = this.#parts;
    const nowMs = clock.monotonicMs();
    const { charge, limit } = key;
    const nowUs = key.nowUs + Math.max(0, Math.floor((nowMs - key.seenMs) * 1_000));
    const { windows } = charge;
    const window = windows === undefined ? undefined : borrowingWindow(windows, nowUs);
    if (windows !== undefined && window === undefined) return;
    const wanted = wantedHits(key, replicaCount(), nowUs);
    if (wanted === 0) return;
    const lendings = idle.map(({ share }) => lendingCharge(charge, limit, share));
    const lendable = idle.map((peer, i) =>
      expectedHits(key, { peer, lending: lendings[i], window, nowMs }),
    );
    const parts = apportion(wanted, lendable);
    let askedHits = 0;
    for (const [i, peer] of idle.entries()) {
      const lending = lendings[i];
      if (lending === undefined) continue;
      const isKnown = isFresh(key.lenders[peer.share.index], nowMs);
      if (window !== undefined && !isKnown) {
        asks[i]?.push({ key, request: once(lending, 0), hits: 0, window });
        continue;
      }
      const hits = parts[i] ?? 0;
      if (hits === 0) continue;
      // A window grants all or nothing.
      const request = window === undefined ? times(lending, hits) : once(lending, hits);
      asks[i]?.push({ key, request, hits, window });
      askedHits += hits;
    }
    if (askedHits === 0) return;
    key.inTransitHits += askedHits;
    key.refusedHits = 0;
  }

  async #borrow(peer: PeerRegion, asks: readonly Ask[]): Promise<void> {
    const { clock } = this.#parts;
    const sentMs = clock.monotonicMs();
    const askedHits = asks.reduce((sum, { hits }) => sum + hits, 0);
    peer.noteCall(askedHits);
    let outcomes: readonly StoreOutcome[];
    try {
      const batch = asks.map(({ request }) => request);
      outcomes = await peer.store.take(batch, sentMs + lendingCallMsMax);
    } catch (thrown) {
      for (const { key, hits } of asks) key.inTransitHits -= hits;
      peer.noteLostCall(askedHits);
      this.#noteFailure(peer, toServiceError(thrown).code);
      return;
    }
    const receivedMs = clock.monotonicMs();
    peer.noteReply(receivedMs - sentMs);
    const loans: Loan[] = [];
    for (const [i, ask] of asks.entries()) {
      const loan = noteOutcome(ask, outcomes[i], { peer, receivedMs });
      ask.key.inTransitHits -= ask.hits - (loan?.hits ?? 0);
      if (loan !== undefined) loans.push(loan);
    }
    if (loans.length > 0) await this.#credit(peer, loans);
  }

  async #credit(peer: PeerRegion, loans: readonly Loan[]): Promise<void> {
    const { clock, store } = this.#parts;
    const hits = loans.reduce((sum, loan) => sum + loan.hits, 0);
    const batch = loans.map(
      ({ key, hits: cost, window }): StoreRequest => ({
        charges: [creditCharge(key.charge, cost, window)],
        multiplicity: 1,
      }),
    );
    try {
      const outcomes = await store.take(batch, clock.monotonicMs() + creditMsMax);
      const nowMs = clock.monotonicMs();
      for (const [i, { key }] of loans.entries()) noteCredit(key, outcomes[i], nowMs);
      peer.noteBorrowed(hits);
      if (this.#areCreditsLost) this.#parts.onEvent?.({ kind: "creditsFound" });
      this.#areCreditsLost = false;
    } catch (thrown) {
      peer.noteLost(hits);
      this.#restsUntilMs = clock.monotonicMs() + restMsAfterLoss;
      const { code } = toServiceError(thrown);
      if (!this.#areCreditsLost) this.#parts.onEvent?.({ kind: "creditsLost", code });
      this.#areCreditsLost = true;
    } finally {
      for (const { key, hits: credited } of loans) key.inTransitHits -= credited;
    }
  }

  /** A probe charges a key of its own, so that a lost reply loses no hits. */
  async #probe(peer: PeerRegion): Promise<void> {
    try {
      await peer.store.ping(this.#parts.clock.monotonicMs() + lendingCallMsMax);
      if (peer.breaker.succeeded()) {
        this.#parts.onEvent?.({ kind: "regionFound", region: peer.name });
      }
    } catch (thrown) {
      this.#noteFailure(peer, toServiceError(thrown).code);
    }
  }

  #noteFailure(peer: PeerRegion, code: ErrorCode): void {
    const isOpened = peer.breaker.failed(this.#parts.clock.monotonicMs());
    if (isOpened) this.#parts.onEvent?.({ kind: "regionLost", region: peer.name, code });
  }
}

/** Another region, as this replica sees it. */
class PeerRegion {
  readonly name: string;
  readonly store: LimitStore;
  readonly share: RegionShare;
  readonly breaker = new Breaker(breakerOptions);
  /** Whether a call to it is in flight. */
  isBusy = false;
  /** When the last call was sent, monotonic. */
  sentMs = Number.NEGATIVE_INFINITY;
  #callCount = 0;
  #failedCallCount = 0;
  #askedHits = 0;
  #borrowedHits = 0;
  #lostHits = 0;
  #roundTripMs: number | undefined;

  constructor({ name, store }: RegionPeer, share: RegionShare) {
    this.name = name;
    this.store = store;
    this.share = share;
  }

  get isReachable(): boolean {
    return !this.breaker.isOpen;
  }

  /** Whether to ask it for hits now. */
  isIdle(nowMs: number): boolean {
    return this.isReachable && !this.isBusy && nowMs - this.sentMs >= lendingIntervalMs;
  }

  /** Whether to send a probe now, which must then be reported to the breaker. */
  wantsProbe(nowMs: number): boolean {
    return this.breaker.isOpen && this.breaker.admits(nowMs);
  }

  noteCall(hits: number): void {
    this.#callCount += 1;
    this.#askedHits += hits;
  }

  /** Its store may have charged all hits of the call. */
  noteLostCall(hits: number): void {
    this.#failedCallCount += 1;
    this.#lostHits += hits;
  }

  noteReply(roundTripMs: number): void {
    this.#roundTripMs = roundTripMs;
    this.breaker.succeeded();
  }

  noteBorrowed(hits: number): void {
    this.#borrowedHits += hits;
  }

  noteLost(hits: number): void {
    this.#lostHits += hits;
  }

  lending(): RegionLending {
    const roundTripMs = this.#roundTripMs;
    return {
      region: this.name,
      isReachable: this.isReachable,
      callCount: this.#callCount,
      failedCallCount: this.#failedCallCount,
      askedHits: this.#askedHits,
      borrowedHits: this.#borrowedHits,
      lostHits: this.#lostHits,
      ...(roundTripMs === undefined ? {} : { roundTripMs }),
    };
  }
}

function isFresh(seen: { readonly receivedMs: number } | undefined, nowMs: number): boolean {
  return seen !== undefined && nowMs - seen.receivedMs < restMsMax;
}

interface Expected {
  readonly peer: PeerRegion;
  readonly lending: Charge | undefined;
  readonly window: Window | undefined;
  readonly nowMs: number;
}

/** Returns what a region may lend: by its last reply, or its maximum if that is too old. */
function expectedHits({ lenders }: DemandedKey, { peer, lending, window, nowMs }: Expected) {
  if (lending === undefined) return 0;
  const seen = lenders[peer.share.index];
  if (seen === undefined || !isFresh(seen, nowMs)) return window === undefined ? lending.burst : 0;
  return lendableHits(lending, seen, { nowMs, window });
}

/** Keeps what the reply says about the other region's bucket. @returns what it granted */
function noteOutcome(
  { key, request, hits, window }: Ask,
  outcome: StoreOutcome | undefined,
  { peer, receivedMs }: { readonly peer: PeerRegion; readonly receivedMs: number },
): Loan | undefined {
  if (outcome?.kind !== "decided") return undefined;
  const { grantedCount, results, nowUs } = outcome.result;
  const bucket = results[0]?.bucket;
  if (bucket !== undefined) key.lenders[peer.share.index] = { bucket, nowUs, receivedMs };
  const granted = grantedCount * (request.charges[0]?.cost ?? 0);
  // Whatever another store replies, at most what was asked for is credited.
  if (!Number.isInteger(granted) || granted <= 0 || granted > hits) return undefined;
  if (window === undefined || isWithin(window, nowUs)) return { key, hits: granted, window };
  peer.noteLost(granted);
  return undefined;
}

function noteCredit(key: DemandedKey, outcome: StoreOutcome | undefined, nowMs: number): void {
  if (outcome?.kind !== "decided" || outcome.result.nowUs < key.nowUs) return;
  const bucket = outcome.result.results[0]?.bucket;
  if (bucket === undefined) return;
  key.bucket = bucket;
  key.nowUs = outcome.result.nowUs;
  key.seenMs = nowMs;
}

function times(charge: Charge, multiplicity: number): StoreRequest {
  return { charges: [charge], multiplicity };
}

function once(charge: Charge, cost: number): StoreRequest {
  return { charges: [{ ...charge, cost }], multiplicity: 1 };
}
