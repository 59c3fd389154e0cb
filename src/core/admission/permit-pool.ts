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

/** Limits of a pool. Each part may be missing. */
export interface PoolSettings {
  /** Permits of the whole fleet. */
  readonly maxInFlight: number | undefined;
  readonly concurrency: ConcurrencySettings | undefined;
  readonly queue: QueueSettings | undefined;
}

interface PoolParts {
  /** Part of a limit that one peer may have in use, in percent, 1 to 100. */
  readonly peerPercentMax: number;
  /** Name of the pool, the same in all replicas. */
  readonly name: string;
  /** Name of its key in metrics and logs; empty if the limit is not split. */
  readonly label: string;
  /** Called when a waiting request may be admitted. */
  readonly onGrown: () => void;
  /** Absent if this process is the only replica. */
  readonly shares: SharesPermits | undefined;
}

/**
 * Permits under one limit, the algorithm that sets it, and the queue of waiting requests (`T`).
 *
 * A fleet limit (`maxInFlight`, or the limit of an algorithm that does not learn) is shared among
 * replicas. An algorithm that learns, or that `isOfReplica`, runs in each replica, within its
 * share. If it can start from a limit that others learned, it learns with them, by what all have in
 * use. An algorithm that bounds the queue bounds permits if there is no queue.
 */
export class PermitPool<T> implements PermitHolder, Demand {
  readonly name: string;
  readonly label: string;
  readonly #parts: PoolParts;
  readonly #permits = new Permits();
  readonly #serviceTime = new ServiceTime({ memoryCount: 30 });
  /** Time between two ends of requests while any permit is in use: one slot for all requests. */
  readonly #gapTime = new ServiceTime({ memoryCount: 30 });
  /** Permits in use, by peer; empty if one peer may use all. */
  readonly #inUseByPeer = new Tally<string>();
  /** Exchanges that are open although the leases of their permits have ended, by peer. */
  readonly #overdue = new Tally<string>();
  #settings: PoolSettings = nothing;
  #law: ConcurrencyLimit | undefined;
  #requests: RequestQueue<T> | undefined;
  #share: PermitShare | undefined;
  /** Its part of the learned limit; undefined if it does not learn with other replicas. */
  #learned: LearnedShare | undefined;

  constructor(parts: PoolParts, settings: PoolSettings) {
    this.#parts = parts;
    this.name = parts.name;
    this.label = parts.label;
    this.configure(settings);
  }

  /** Changes settings at run time. Replaces the algorithm only if its own settings differ. */
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

  /** Gives up its share. Requests in flight keep their permits. */
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

  /** The algorithm that sets the limit; undefined: none. */
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

  /** Maximum number of requests that may wait now. */
  get waitingMax(): number {
    const { queue } = this.#settings;
    if (queue === undefined) return 0;
    return this.#law !== undefined && this.#boundsQueue
      ? Math.min(queue.sizeMax, this.#law.limit)
      : queue.sizeMax;
  }

  /** Time at which `expire` next has something to do. */
  get nextExpiryMs(): number | undefined {
    return this.#requests?.nextExpiryMs;
  }

  inUseCount(): number {
    return this.#permits.inUseCount;
  }

  /** Returns the permits that this replica may have in use; Infinity if nothing limits them. */
  limit(nowMs: number): number {
    const limit = this.#hardLimit(nowMs);
    return this.learnsHere ? Math.min(limit, this.#learnedLimit(nowMs)) : limit;
  }

  /** Returns this replica's part of the learned limit, with a margin (`splitDeviations`). */
  #learnedLimit(nowMs: number): number {
    const own = this.#learned?.permits(nowMs);
    if (own === undefined) return this.#law?.limit ?? Number.POSITIVE_INFINITY;
    const chance = splitDeviations * Math.sqrt(own) * (1 - this.#partOfFleet(nowMs));
    return own + Math.round(chance);
  }

  /** Returns this replica's part of the fleet's learned limit as a ratio, at most 1. */
  #partOfFleet(nowMs: number): number {
    const limit = this.#law?.limit ?? 1;
    return Math.min(1, (this.#learned?.permits(nowMs) ?? limit) / limit);
  }

  /** Returns the permits that critical requests alone may use; `own` is the learned limit here. */
  #criticalLimit(law: ConcurrencyLimit, own: number, nowMs: number): number {
    const { limit, criticalLimit = Math.floor(withHeadroom(limit)) } = law;
    // Random bursts at a part of the fleet are smaller by the square root of that part.
    return own + Math.floor((criticalLimit - limit) * Math.sqrt(this.#partOfFleet(nowMs)));
  }

  /** Returns the limit for all classes: the policy's, or this replica's share of it. */
  #hardLimit(nowMs: number): number {
    const limit = this.fleetLimit();
    const own = isOfReplica(this.#settings.concurrency) ? this.#law?.limit : undefined;
    return Math.min(limit, own ?? limit, this.#share?.permits(nowMs) ?? limit);
  }

  /** Returns the permits of the whole fleet; Infinity if nothing limits them there. */
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

  /** Counts a refused request as demand if a permit or more time would have helped. */
  noteRefused(cause: RefusalCause, priority: Priority): void {
    if (forWantOfRoom.has(cause)) {
      this.#permits.noteRefused(priority);
      this.#learned?.noteRefused();
    } else if (cause === "deadline") this.#permits.noteAsked(priority);
  }

  /** Returns the state that a new request finds. */
  state(nowMs: number): QueueState {
    return {
      waitingCount: this.waitingCount,
      inFlightCount: this.#permits.inUseCount,
      limit: Math.max(1, this.#slotCount(nowMs)),
      serviceMs: this.#serviceTime.serviceMs(nowMs),
    };
  }

  /** Returns the expected time of a new request; undefined until a request has ended. */
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

  /** Returns the wait before a retry, as far as the queue can estimate it. */
  retryWait(nowMs: number): RetryWait {
    const ms = estimatedWaitMs(this.state(nowMs));
    return ms === undefined || ms === 0 ? unknownWait : { kind: "estimated", ms };
  }

  /**
   * Returns the occupancy: requests in flight and waiting, over permits and places in the queue.
   * Without a queue, it is permits in use over their limit. 0 if nothing limits them.
   *
   * Example: 10 permits, 6 in use, no queue: 0.6. All in use, and 20 of 30 places: 0.75.
   */
  occupancyRatio(nowMs: number): number {
    return this.#ratioOf(this.#permits.inUseCount + this.waitingCount, this.limit(nowMs));
  }

  /**
   * Returns the occupancy for a class, by the limits that apply to it (`isFree`). For a learned
   * limit, only requests of the class and of higher classes count, and none while fewer are in use
   * than keep the service busy.
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
   * Reports whether a permit is free for a class.
   *
   * A learned limit is what keeps the service busy, so it applies to what a class and the classes
   * above it have in use. Lower classes that came first keep no request out. They are admitted
   * again when there is room for all. Critical requests may exceed it by a margin for random bursts
   * (`withHeadroom`); the algorithm decides whether a probe lowers their limit. No class exceeds a
   * fleet limit. If the queue has another order than by class, classes do not matter.
   */
  isFree(priority: Priority, nowMs: number): boolean {
    if (this.#permits.inUseCount >= this.#hardLimit(nowMs)) return false;
    if (!this.learnsHere || this.#law === undefined) return true;
    const limit = this.#learnedLimit(nowMs);
    if (!this.#isByClass) return this.#permits.inUseCount < limit;
    const most = priority === "critical" ? this.#criticalLimit(this.#law, limit, nowMs) : limit;
    return this.#permits.inUseFrom(priority) < most;
  }

  /** Reports whether a waiting request may be admitted in this turn. */
  hasNext(turn: Turn<T>): boolean {
    return this.#requests?.hasNext(turn) === true;
  }

  /** Reports whether a request may enter the queue, if need be in the place of another one. */
  mayTakePlace(): boolean {
    if (this.waitingCount < this.waitingMax) return true;
    const { queue } = this.#settings;
    return queue !== undefined && queue.order !== "fifo" && !this.#boundsQueue;
  }

  /**
   * Takes a permit for a peer, whatever the limit.
   *
   * @returns permits in use, this one included, and those of other replicas if they are known
   */
  take(peer: string, priority: Priority, nowMs: number): number {
    this.#permits.take(priority);
    this.#learned?.noteTaken();
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, 1);
    this.#occupy(nowMs);
    return this.#permits.inUseCount + (this.#learned?.othersInUse(nowMs) ?? 0);
  }

  /** Gives back a permit of a peer. */
  giveBack(peer: string, priority: Priority, nowMs: number): void {
    this.#permits.giveBack(priority);
    this.#serviceTime.complete(nowMs);
    this.#gapTime.complete(nowMs);
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, -1);
    this.#occupy(nowMs);
  }

  /** The same if the caller left: the service did not end the request, so no pace is measured. */
  giveBackLeft(peer: string, priority: Priority, nowMs: number): void {
    this.#permits.giveBack(priority, true);
    if (this.#boundsPeers) this.#inUseByPeer.add(peer, -1);
    this.#occupy(nowMs);
  }

  /** Frees a permit whose lease ended before its exchange; see `bears`. */
  endLease(peer: string, priority: Priority, nowMs: number): void {
    this.giveBack(peer, priority, nowMs);
    this.#overdue.add(peer, 1);
  }

  /** Notes the end of an exchange whose permit's lease had ended before. */
  forgetOverdue(peer: string): void {
    assert(this.#overdue.add(peer, -1) >= 0, "an exchange is over once");
  }

  /**
   * Reports whether a peer may have one more request: within its part of the limit, and within the
   * limit if its overdue exchanges count as permits in use. So a peer that opens exchanges and
   * falls silent gets its permits once, not once per lease or connection. The limit also applies to
   * a fleet with one certificate if the service is slower than the leases.
   */
  bears(peer: string, nowMs: number): boolean {
    if (this.#hasPart(peer, nowMs)) return false;
    const overdueCount = this.#overdue.get(peer);
    return overdueCount === 0 || this.#permits.inUseCount + overdueCount < this.limit(nowMs);
  }

  /**
   * Reports whether a request of a peer may wait. It may not if only the end of overdue exchanges,
   * or of those that fill the peer's part, would help it: otherwise one peer could fill the queue.
   */
  mayWait(peer: string, nowMs: number): boolean {
    if (this.#hasPart(peer, nowMs)) return false;
    const overdueCount = this.#overdue.get(peer);
    return overdueCount === 0 || overdueCount < this.limit(nowMs);
  }

  /** Passes a sample to the algorithm. */
  learn(sample: ConcurrencySample): void {
    this.#law?.record(sample);
  }

  /** The demand for permits of this pool. */
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

  /** Takes out the next waiting request that `turn` allows, for a permit that is free. */
  next(nowMs: number, turn: Turn<T>): RequestQueueStep<T> {
    return this.#requests?.next(nowMs, this.#positionMax, turn) ?? nobody;
  }

  /** Maximum position that the algorithm allows; Infinity if it does not bound the queue. */
  get #positionMax(): number {
    const windowLimit = this.#boundsQueue ? this.#law?.limit : undefined;
    return (windowLimit ?? Number.POSITIVE_INFINITY) + windowMargin;
  }

  /** Takes out the requests whose wait is over. */
  expire(nowMs: number): readonly QueueRefusal<T>[] {
    return this.#requests?.expire(nowMs) ?? [];
  }

  /** Removes a request that leaves the queue by itself. */
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

  /** Reports whether a peer uses its whole part of the limit, rounded up. */
  #hasPart(peer: string, nowMs: number): boolean {
    const inUseCount = this.#inUseByPeer.get(peer);
    if (inUseCount === 0) return false;
    return inUseCount >= Math.ceil((this.limit(nowMs) * this.#parts.peerPercentMax) / 100);
  }

  get #boundsQueue(): boolean {
    const { concurrency } = this.#settings;
    return concurrency !== undefined && concurrencyLaws[concurrency.law].bounds === "queue";
  }

  /** Whether the algorithm learns a limit of permits in this replica. */
  get learnsHere(): boolean {
    const { concurrency } = this.#settings;
    if (concurrency === undefined || !isLearning(concurrency.law)) return false;
    return !(this.#boundsQueue && this.hasQueue);
  }

  /** Counts busy slots. Requests above the limit occupy none: they wait for one somewhere. */
  #occupy(nowMs: number): void {
    this.#serviceTime.occupy(Math.min(this.#permits.inUseCount, this.#slotCount(nowMs)), nowMs);
    this.#gapTime.occupy(Math.min(this.#permits.inUseCount, 1), nowMs);
  }

  /**
   * Returns the slots in which requests are served, for estimates of waits. A limit probe takes
   * none away: with the service time measured before, each wait would look much longer, and
   * requests would be refused as late although they are not.
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

/** Accepts no request. Requests that wait when a policy removes the queue still get their turn. */
const closedQueue: QueueSettings = {
  sizeMax: 0,
  waitMsMax: 0,
  order: "fifo",
  codel: undefined,
};

/**
 * Margin of a replica's part of a limit, in standard deviations, because requests reach the
 * replicas by chance: without it, one replica would refuse requests while another has free permits.
 */
const splitDeviations = 2;

const unknownWait: RetryWait = { kind: "unknown" };

const nobody: RequestQueueStep<never> = { place: undefined, dismissed: [] };

/** Compares JSON: settings are plain data, made in one place with one order of fields. */
function isSame(
  one: ConcurrencySettings | undefined,
  other: ConcurrencySettings | undefined,
): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
