import { assert } from "../base/errors.js";
import { Tally } from "../collections/tally.js";
import {
  type ConcurrencySettings,
  concurrencyLaws,
  createConcurrencyLimit,
  isLearning,
  isOfReplica,
} from "../concurrency/concurrency-laws.js";
import {
  type ConcurrencyLimit,
  type ConcurrencySample,
  type Demand,
  withHeadroom,
} from "../concurrency/concurrency-limit.js";
import { ServiceTime } from "../concurrency/service-time.js";
import { windowMargin } from "../concurrency/window-limit.js";
import { estimatedWaitMs, type QueueState } from "./estimated-wait.js";
import { expectedTimeMs } from "./expected-time.js";
import { LearnedShare, startsFromOthers } from "./learned-share.js";
import type { PermitHolder, PermitShare, SharesPermits } from "./permit-share.js";
import { Permits } from "./permits.js";
import type { Priority } from "./priority.js";
import { forWantOfRoom, type RefusalCause } from "./refusal.js";
import {
  type QueueCandidate,
  type QueuePlace,
  type QueueRefusal,
  type QueueSettings,
  RequestQueue,
  type RequestQueueStep,
  type Turn,
} from "./request-queue.js";
import type { RetryWait } from "./retry-after.js";

/** What limits a pool; each part may be missing. */
export interface PoolSettings {
  /** Permits of the whole fleet. */
  readonly maxInFlight: number | undefined;
  readonly concurrency: ConcurrencySettings | undefined;
  readonly queue: QueueSettings | undefined;
}

interface PoolParts {
  /** The part of a limit that one peer may have in use, 1 to 100. */
  readonly peerPercentMax: number;
  /** Names the pool among replicas. */
  readonly name: string;
  /** Names its key in metrics and logs; empty where a limit is not split. */
  readonly label: string;
  /** Told when somebody who waits may go in now. */
  readonly onGrown: () => void;
  /** Absent where this process is alone. */
  readonly shares: SharesPermits | undefined;
}

/**
 * Permits under one limit, the law that sets it, and the queue in front of it. `T` is what waits.
 *
 * A limit of the fleet (`maxInFlight`, and what a law says that does not learn) is shared among
 * replicas; a law that learns, or that `isOfReplica`, runs in each replica, within its share. One
 * that can start from what others have learned learns with them, from what all have in use. One
 * that bounds the queue does so where there is one, and bounds permits where there is none.
 */
export class PermitPool<T> implements PermitHolder, Demand {
  readonly name: string;
  readonly label: string;
  readonly #parts: PoolParts;
  readonly #permits = new Permits();
  readonly #serviceTime = new ServiceTime({ memoryCount: 30 });
  /** The time from one end of a request to the next, while any is in use: one slot for all. */
  readonly #gapTime = new ServiceTime({ memoryCount: 30 });
  /** Permits in use, by peer; nothing where one may have all. */
  readonly #inUseByPeer = new Tally<string>();
  /** Exchanges that are open although the leases of their permits have ended, by peer. */
  readonly #overdue = new Tally<string>();
  #settings: PoolSettings = nothing;
  #law: ConcurrencyLimit | undefined;
  #requests: RequestQueue<T> | undefined;
  #share: PermitShare | undefined;
  /** Its part of what the law has learned; undefined where no other replica hears of that. */
  #learned: LearnedShare | undefined;

  constructor(parts: PoolParts, settings: PoolSettings) {
    this.#parts = parts;
    this.name = parts.name;
    this.label = parts.label;
    this.configure(settings);
  }

  /** Changes settings while it runs; the law is made anew only where its own settings differ. */
  configure(settings: PoolSettings): void {
    const { concurrency, queue } = settings;
    if (!isSame(concurrency, this.#settings.concurrency)) {
      this.#law = concurrency && createConcurrencyLimit(concurrency);
      this.#openLearned();
    }
    this.#settings = settings;
    if (this.#requests !== undefined) this.#requests.configure(queue ?? closedQueue);
    else if (queue !== undefined) this.#requests = new RequestQueue(queue);
    if (this.fleetLimit() === Number.POSITIVE_INFINITY) this.#closeShare();
    else this.#share ??= this.#parts.shares?.open(this);
  }

  /** Gives its share up; who is in it stays in. */
  close(): void {
    this.#closeShare();
    this.#learned?.close();
    this.#learned = undefined;
  }

  #closeShare(): void {
    this.#share?.close();
    this.#share = undefined;
  }

  #openLearned(): void {
    this.#learned?.close();
    this.#learned = undefined;
    const { shares, name, onGrown } = this.#parts;
    const law = this.#law;
    if (shares === undefined || law === undefined || !startsFromOthers(law)) return;
    const inUseCount = (): number => this.inUseCount();
    this.#learned = new LearnedShare({ name, law, inUseCount, onGrown, shares });
  }

  /** The law that sets the limit; undefined: none. */
  get law(): ConcurrencyLimit | undefined {
    return this.#law;
  }

  get waitingCount(): number {
    return this.#requests?.waitingCount ?? 0;
  }

  /** Whether requests may wait at all. */
  get hasQueue(): boolean {
    return this.#settings.queue !== undefined;
  }

  /** The most that may wait now. */
  get waitingMax(): number {
    const { queue } = this.#settings;
    if (queue === undefined) return 0;
    return this.#law !== undefined && this.#boundsQueue
      ? Math.min(queue.sizeMax, this.#law.limit)
      : queue.sizeMax;
  }

  /** When `expire` has something to do next. */
  get nextExpiryMs(): number | undefined {
    return this.#requests?.nextExpiryMs;
  }

  inUseCount(): number {
    return this.#permits.inUseCount;
  }

  /** Permits that this replica may have in use; Infinity where nothing limits them. */
  limit(nowMs: number): number {
    const limit = this.#hardLimit(nowMs);
    return this.learnsHere ? Math.min(limit, this.#learnedLimit(nowMs)) : limit;
  }

  /** What the law has learned, and of that this replica's part. */
  #learnedLimit(nowMs: number): number {
    const own = this.#learned?.permits(nowMs);
    if (own === undefined) return this.#law?.limit ?? Number.POSITIVE_INFINITY;
    const chance = splitDeviations * Math.sqrt(own) * (1 - this.#partOfFleet(nowMs));
    return own + Math.round(chance);
  }

  /** This replica's part of what the fleet has learned, at most 1. */
  #partOfFleet(nowMs: number): number {
    const limit = this.#law?.limit ?? 1;
    return Math.min(1, (this.#learned?.permits(nowMs) ?? limit) / limit);
  }

  /** Permits that critical requests alone may have in use; `own` is the learned limit here. */
  #criticalLimit(law: ConcurrencyLimit, own: number, nowMs: number): number {
    const { limit, criticalLimit = Math.floor(withHeadroom(limit)) } = law;
    // What chance brings at once to a part of the fleet is less by the root of that part.
    return own + Math.floor((criticalLimit - limit) * Math.sqrt(this.#partOfFleet(nowMs)));
  }

  /** Permits that nobody may pass: what a policy says, and of that this replica's share. */
  #hardLimit(nowMs: number): number {
    const limit = this.fleetLimit();
    const own = isOfReplica(this.#settings.concurrency) ? this.#law?.limit : undefined;
    return Math.min(limit, own ?? limit, this.#share?.permits(nowMs) ?? limit);
  }

  /** Permits of the whole fleet; Infinity where nothing limits them there. */
  fleetLimit(): number {
    const { maxInFlight = Number.POSITIVE_INFINITY, concurrency } = this.#settings;
    const isOwn = !concurrency || isLearning(concurrency.law) || isOfReplica(concurrency);
    return isOwn ? maxInFlight : Math.min(maxInFlight, this.#law?.limit ?? maxInFlight);
  }

  takeDemand(): number {
    return this.#permits.takeDemand() + this.waitingCount;
  }

  shareGrew(): void {
    this.#parts.onGrown();
  }

  /** Someone was refused: demand, where a permit or more time would have helped. */
  noteRefused(cause: RefusalCause, priority: Priority): void {
    if (forWantOfRoom.has(cause)) {
      this.#permits.noteRefused(priority);
      this.#learned?.noteRefused();
    } else if (cause === "deadline") this.#permits.noteAsked(priority);
  }

  /** How a new request finds it. */
  state(nowMs: number): QueueState {
    return {
      waitingCount: this.waitingCount,
      inFlightCount: this.#permits.inUseCount,
      limit: Math.max(1, this.#slotCount(nowMs)),
      serviceMs: this.#serviceTime.serviceMs(nowMs),
    };
  }

  /** How long a new request must expect to take; undefined where nothing has ended. */
  expectedMs(priority: Priority, nowMs: number): number | undefined {
    const gapMs = this.#gapTime.serviceMs(nowMs);
    const serviceMs = this.#serviceTime.serviceMs(nowMs);
    if (gapMs === undefined || serviceMs === undefined) return undefined;
    const aheadCount = this.#requests?.countAhead(priority, this.#positionMax) ?? 0;
    const count = this.#permits.inUseCount + aheadCount + 1;
    return expectedTimeMs(priority, {
      count,
      gapMs,
      serviceMs,
      baselineMs: this.#law?.baselineMs,
      isFull: 2 * count > this.#slotCount(nowMs),
      partRatio: this.#partOfFleet(nowMs),
    });
  }

  /** When to come back, as far as the queue tells. */
  retryWait(nowMs: number): RetryWait {
    const ms = estimatedWaitMs(this.state(nowMs));
    return ms === undefined || ms === 0 ? unknownWait : { kind: "estimated", ms };
  }

  /**
   * How full it is: requests here over what there is room for, permits and places in the queue. So
   * without a queue it is permits in use over their limit. 0 where nothing limits it.
   *
   * Example: 10 permits, 6 in use, no queue: 0.6. All in use, and 20 of 30 places: 0.75.
   */
  occupancyRatio(nowMs: number): number {
    return this.#ratioOf(this.#permits.inUseCount + this.waitingCount, this.limit(nowMs));
  }

  /**
   * How full it is for a class, by the limits that hold for it (`isFree`): of a limit that is
   * learned, only its own requests and those of the classes above it count, and nothing is full
   * while fewer are in use than keep the service busy.
   */
  occupancyFor(priority: Priority, nowMs: number): number {
    if (!this.learnsHere || !this.#isByClass) return this.occupancyRatio(nowMs);
    const count = this.#permits.inUseFrom(priority) + (this.#requests?.countFrom(priority) ?? 0);
    const hardRatio = this.#ratioOf(
      this.#permits.inUseCount + this.waitingCount,
      this.#hardLimit(nowMs),
    );
    const busyCount = (this.#law?.busyCount ?? 0) * this.#partOfFleet(nowMs);
    if (count + 1 <= busyCount) return hardRatio;
    return Math.max(hardRatio, this.#ratioOf(count, this.limit(nowMs)));
  }

  #ratioOf(count: number, limit: number): number {
    const placeCount = limit + this.waitingMax;
    if (placeCount === 0) return 1;
    return placeCount === Number.POSITIVE_INFINITY ? 0 : count / placeCount;
  }

  /**
   * Whether a permit is free for a class.
   *
   * A limit that is learned says what keeps the service busy, so a class is held by it to what it
   * and the classes above it have in use: lower ones, who came first, keep nobody out, and are let
   * in again when there is room for all. Critical requests may go above it by what chance brings
   * at once (`withHeadroom`), and no measurement takes permits away from them. Nobody passes a
   * limit of the fleet, and a queue in another order than by class knows no class.
   */
  isFree(priority: Priority, nowMs: number): boolean {
    if (this.#permits.inUseCount >= this.#hardLimit(nowMs)) return false;
    if (!this.learnsHere || this.#law === undefined) return true;
    const limit = this.#learnedLimit(nowMs);
    if (!this.#isByClass) return this.#permits.inUseCount < limit;
    const most = priority === "critical" ? this.#criticalLimit(this.#law, limit, nowMs) : limit;
    return this.#permits.inUseFrom(priority) < most;
  }

  /** Whether somebody waits whose turn it may be. */
  hasNext(turn: Turn<T>): boolean {
    return this.#requests?.hasNext(turn) === true;
  }

  /** Whether somebody may still begin to wait, where need be in somebody else's place. */
  mayTakePlace(): boolean {
    if (this.waitingCount < this.waitingMax) return true;
    const { queue } = this.#settings;
    return queue !== undefined && queue.order !== "fifo" && !this.#boundsQueue;
  }

  /**
   * Takes a permit for a peer, whatever the limit.
   *
   * @returns permits in use with it, those of other replicas included where they tell
   */
  take(peer: string, priority: Priority, nowMs: number): number {
    this.#permits.take(priority);
    this.#learned?.noteTaken();
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, 1);
    this.#occupy(nowMs);
    return this.#permits.inUseCount + (this.#learned?.othersInUse(nowMs) ?? 0);
  }

  /** Gives a permit of a peer back. */
  giveBack(peer: string, priority: Priority, nowMs: number): void {
    this.#permits.giveBack(priority);
    this.#serviceTime.complete(nowMs);
    this.#gapTime.complete(nowMs);
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, -1);
    this.#occupy(nowMs);
  }

  /** The same of one whose caller left: the service has not ended it, which tells no pace. */
  giveBackLeft(peer: string, priority: Priority, nowMs: number): void {
    this.#permits.giveBack(priority, true);
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, -1);
    this.#occupy(nowMs);
  }

  /** The lease of a permit has ended before its exchange: it is free, but see `bears`. */
  endLease(peer: string, priority: Priority, nowMs: number): void {
    this.giveBack(peer, priority, nowMs);
    this.#overdue.add(peer, 1);
  }

  /** An exchange is over whose permit's lease had ended before. */
  forgetOverdue(peer: string): void {
    assert(this.#overdue.add(peer, -1) >= 0, "an exchange is over once");
  }

  /**
   * Whether the limit bears one more request of a peer, for which permits are still in use that it
   * has lost with their leases. So a peer that opens exchanges and falls silent has them once, and
   * not once a lease or a connection; and a fleet of one certificate before a service that is
   * slower than its leases is held to the limit all the same.
   */
  bears(peer: string, nowMs: number): boolean {
    if (this.#hasPart(peer, nowMs)) return false;
    const overdueCount = this.#overdue.get(peer);
    return overdueCount === 0 || this.#permits.inUseCount + overdueCount < this.limit(nowMs);
  }

  /**
   * Whether a request of a peer may wait: not where only the end of overdue ones could help it, or
   * of those that fill its peer's part, or one peer could fill the queue.
   */
  mayWait(peer: string, nowMs: number): boolean {
    if (this.#hasPart(peer, nowMs)) return false;
    const overdueCount = this.#overdue.get(peer);
    return overdueCount === 0 || overdueCount < this.limit(nowMs);
  }

  /** Teaches the law. */
  learn(sample: ConcurrencySample): void {
    this.#law?.record(sample);
  }

  /** What is asked of it. */
  get demand(): Demand {
    return this;
  }

  get loadRatio(): number | undefined {
    return this.#permits.loadRatio;
  }

  get criticalRatio(): number {
    return this.#permits.criticalRatio;
  }

  /** Lets a request wait; see `RequestQueue.enter`. */
  enter(newcomer: QueueCandidate<T>, nowMs: number): RequestQueueStep<T> {
    const isBeyondWindow = this.#boundsQueue && this.waitingCount >= this.waitingMax;
    if (this.#requests === undefined || isBeyondWindow) return nobody;
    return this.#requests.enter(newcomer, nowMs);
  }

  /** Who goes in next, for a permit that is free for these classes, of whose turn it may be. */
  next(nowMs: number, turn: Turn<T>): RequestQueueStep<T> {
    return this.#requests?.next(nowMs, this.#positionMax, turn) ?? nobody;
  }

  /** Positions that a law which bounds the queue believes in; Infinity: there is no such law. */
  get #positionMax(): number {
    const windowLimit = this.#boundsQueue ? this.#law?.limit : undefined;
    return (windowLimit ?? Number.POSITIVE_INFINITY) + windowMargin;
  }

  /** Takes out whose wait is over. */
  expire(nowMs: number): readonly QueueRefusal<T>[] {
    return this.#requests?.expire(nowMs) ?? [];
  }

  /** A request leaves the queue by itself. */
  leave(place: QueuePlace<T>): void {
    this.#requests?.leave(place);
  }

  get #isByClass(): boolean {
    const { queue } = this.#settings;
    return queue === undefined || queue.order === "priority";
  }

  get #boundsPeers(): boolean {
    return this.#parts.peerPercentMax < 100;
  }

  /** Whether a peer has all that it may have: its part of the limit, rounded up. */
  #hasPart(peer: string, nowMs: number): boolean {
    const inUseCount = this.#inUseByPeer.get(peer);
    if (inUseCount === 0) return false;
    return inUseCount >= Math.ceil((this.limit(nowMs) * this.#parts.peerPercentMax) / 100);
  }

  get #boundsQueue(): boolean {
    const { concurrency } = this.#settings;
    return concurrency !== undefined && concurrencyLaws[concurrency.law].bounds === "queue";
  }

  /** Whether the law's limit is one of permits, learned in this replica. */
  get learnsHere(): boolean {
    const { concurrency } = this.#settings;
    if (concurrency === undefined || !isLearning(concurrency.law)) return false;
    return !(this.#boundsQueue && this.hasQueue);
  }

  /** What is in use above the limit waits for a slot somewhere, it has none. */
  #occupy(nowMs: number): void {
    this.#serviceTime.occupy(Math.min(this.#permits.inUseCount, this.#slotCount(nowMs)), nowMs);
    this.#gapTime.occupy(Math.min(this.#permits.inUseCount, 1), nowMs);
  }

  /**
   * Slots in which requests are served, as waits are reckoned. A limit that is lowered for a
   * measurement takes none away: by the time a slot took before, each wait would look much longer,
   * and requests would be refused as late that are not.
   */
  #slotCount(nowMs: number): number {
    const limit = this.#hardLimit(nowMs);
    if (!this.learnsHere || this.#law === undefined) return limit;
    const { limit: learned, steadyLimit = learned } = this.#law;
    return Math.min(limit, steadyLimit * this.#partOfFleet(nowMs));
  }
}

const nothing: PoolSettings = {
  maxInFlight: undefined,
  concurrency: undefined,
  queue: undefined,
};

/** Takes nobody; who waits in it when the policy does without a queue still gets its turn. */
const closedQueue: QueueSettings = {
  sizeMax: 0,
  waitMsMax: 0,
  order: "fifo",
  codel: undefined,
};

/**
 * Standard deviations of what a replica's own part of a limit needs more, for requests come to one
 * replica or the other by chance: without it one would refuse while another has permits left.
 */
const splitDeviations = 2;

const unknownWait: RetryWait = { kind: "unknown" };

const nobody: RequestQueueStep<never> = { place: undefined, dismissed: [] };

/** Settings are plain data, made in one place in one order of fields. */
function isSame(
  one: ConcurrencySettings | undefined,
  other: ConcurrencySettings | undefined,
): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
