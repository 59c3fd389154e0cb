import { type Expiring, ExpiryHeap } from "../collections/expiry-heap.js";
import { LinkedList, type ListNode } from "../collections/linked-list.js";
import { Codel, type CodelSettings } from "./codel.js";
import { type Priority, priorities } from "./priority.js";

/** Order in which waiting requests are admitted. */
export type QueueOrder = "priority" | "fifo" | "newestFirstUnderOverload";

/** A bounded queue in front of the permits. */
export interface QueueSettings {
  /** Maximum number of waiting requests. */
  readonly sizeMax: number;
  /** Maximum wait of a request, in milliseconds. */
  readonly waitMsMax: number;
  /** Order in which requests are admitted. */
  readonly order: QueueOrder;
  /** CoDel's test on the wait at the head of the queue; undefined switches it off. */
  readonly codel: CodelSettings | undefined;
}

/** Ratio of taken places from which a queue counts as overloaded. */
const overloadedShare = 0.5;

/** A request that asks for a place. */
export interface QueueCandidate<T> {
  /** Value that the queue returns with its decision. */
  readonly payload: T;
  readonly priority: Priority;
  /** Remaining time of its caller, in milliseconds; undefined: no deadline. */
  readonly remainingMs: number | undefined;
}

/** Place of a request in the queue, as long as it waits. */
export interface QueuePlace<T> {
  readonly payload: T;
  readonly priority: Priority;
  /**
   * Position at arrival, from 1: requests ahead of it, plus itself. With the order `priority`, only
   * requests of its class and of higher classes count.
   */
  readonly position: number;
  readonly enteredMs: number;
  /** Time from which the request is not admitted any more. */
  readonly expiresMs: number;
  /** What ends the wait then: the maximum wait of the queue, or the caller's deadline. */
  readonly expiryCause: "queueTimeout" | "deadline";
}

/** A request that leaves without being admitted, and the cause of its refusal. */
export interface QueueRefusal<T> {
  readonly place: QueuePlace<T>;
  readonly cause: "queueFull" | "queueTimeout" | "deadline";
}

/** Result of a step. */
export interface RequestQueueStep<T> {
  /** The place that was given, or of the request to admit; undefined: none. */
  readonly place: QueuePlace<T> | undefined;
  /** Requests to refuse now. They are not in the queue any more. */
  readonly dismissed: readonly QueueRefusal<T>[];
}

/** The waiting requests that may be admitted next. */
export interface Turn<T> {
  /** The lowest class that may be admitted; only the order `priority` uses it. */
  readonly lowest: Priority;
  /** Reports whether the request with this payload may be admitted. */
  readonly mayGo: MayGo<T>;
}

type MayGo<T> = (payload: T) => boolean;

interface Seat<T> extends Expiring {
  readonly place: QueuePlace<T>;
  readonly arrival: ListNode<QueuePlace<T>>;
  readonly inClass: ListNode<QueuePlace<T>>;
}

/**
 * A bounded queue of requests that wait for a permit, each for a bounded time. It starts no timer,
 * and returns the requests to admit or refuse after it has updated its own state. Entering, leaving
 * and being admitted take O(log n), plus the requests that a `Turn` skips.
 *
 * Orders:
 * - `priority`: the highest class first, and its oldest request, until the class loses a request:
 *   one finds no place, loses its place, or times out. From then on, its newest request goes first
 *   until none of the class waits. The class has more requests than can be served, so with the
 *   oldest first all of them would wait as long as they may, and no more would be served. A full
 *   queue dismisses a request of the lowest class below the newcomer's: the one that would go last.
 * - `fifo`: the oldest first. A full queue accepts no request.
 * - `newestFirstUnderOverload`: the oldest first, which is fair, until the queue is overloaded:
 *   half full, or a request timed out. From then on, the newest goes first until the queue is
 *   empty: it has the most time left, and the oldest would mostly be served after their callers
 *   left. A full queue dismisses the oldest, and a timeout dismisses all older requests, too.
 *
 * CoDel tests the requests that would be admitted, except critical ones.
 *
 * Source: RFC 8289 for CoDel; the OpenZiti text, "Future Possibilities", for the newest first.
 */
export class RequestQueue<T> {
  #settings: QueueSettings;
  #codel: Codel | undefined;
  readonly #seats = new Map<QueuePlace<T>, Seat<T>>();
  readonly #expiries = new ExpiryHeap<Seat<T>>();
  readonly #arrivals = new LinkedList<QueuePlace<T>>();
  readonly #classes: Readonly<Record<Priority, LinkedList<QueuePlace<T>>>> = {
    critical: new LinkedList(),
    high: new LinkedList(),
    normal: new LinkedList(),
    low: new LinkedList(),
  };
  /** Classes that lost a request (see `priority`) since they last had no waiting request. */
  readonly #losing = new Set<Priority>();
  #isOverloaded = false;

  /** @param settings `sizeMax` a whole number; 0 accepts no request */
  constructor(settings: QueueSettings) {
    this.#settings = settings;
    this.#codel = settings.codel && new Codel(settings.codel);
  }

  /** Number of waiting requests. */
  get waitingCount(): number {
    return this.#seats.size;
  }

  /** Returns the number of waiting requests of a class. */
  countOf(priority: Priority): number {
    return this.#classes[priority].count;
  }

  /** Returns the number of waiting requests of a class and the classes above it. */
  countFrom(lowest: Priority): number {
    let count = 0;
    for (const priority of priorities) {
      count += this.#classes[priority].count;
      if (priority === lowest) break;
    }
    return count;
  }

  /**
   * Returns how many requests a newcomer of a class would wait for, higher classes included.
   *
   * @param positionMax as for `next`
   */
  countAhead(priority: Priority, positionMax: number): number {
    if (this.#settings.order !== "priority") {
      return this.#isNewestFirst() ? 0 : this.#seats.size;
    }
    const count = this.countFrom(priority);
    const isPassing = this.#isNewestOfClassFirst(priority, positionMax);
    return isPassing ? count - this.#classes[priority].count : count;
  }

  /** Time at which `expire` next has something to do; undefined while no request waits. */
  get nextExpiryMs(): number | undefined {
    return this.#expiries.first?.place.expiresMs;
  }

  /** Changes settings at run time. Waiting requests keep place and time if the queue shrinks. */
  configure(settings: QueueSettings): void {
    const { codel } = settings;
    const isSameCodel =
      codel?.targetMs === this.#settings.codel?.targetMs &&
      codel?.intervalMs === this.#settings.codel?.intervalMs;
    this.#settings = settings;
    if (!isSameCodel) this.#codel = codel && new Codel(codel);
  }

  /** Adds a request. If a full queue has no place for it, its refusal cause is `queueFull`. */
  enter(newcomer: QueueCandidate<T>, nowMs: number): RequestQueueStep<T> {
    const dismissed = this.#expired(nowMs);
    if (this.#seats.size >= this.#settings.sizeMax) {
      const displaced = this.#displacedBy(newcomer.priority);
      if (displaced === undefined) {
        this.#noteLoss(newcomer.priority);
        return { place: undefined, dismissed };
      }
      this.#remove(displaced);
      this.#noteLoss(displaced.priority);
      dismissed.push({ place: displaced, cause: "queueFull" });
    }
    const place = this.#placeFor(newcomer, nowMs);
    this.#add(place);
    if (this.#seats.size >= overloadedShare * this.#settings.sizeMax) this.#isOverloaded = true;
    return { place, dismissed };
  }

  /**
   * Takes out the request to admit next, for a permit that is free.
   *
   * @param positionMax requests at later positions are dismissed: the maximum of an algorithm that
   *   bounds the queue. Infinity: none
   * @param turn the requests that may be admitted; others keep their places. Default: any request
   */
  next(nowMs: number, positionMax: number, turn: Turn<T> = anybodysTurn): RequestQueueStep<T> {
    const dismissed = this.#expired(nowMs);
    for (;;) {
      const place = this.#first(turn, positionMax);
      if (place === undefined) return { place: undefined, dismissed };
      this.#remove(place);
      if (place.position > positionMax) dismissed.push({ place, cause: "queueFull" });
      else if (this.#isDropped(place, nowMs)) dismissed.push({ place, cause: "queueTimeout" });
      else return { place, dismissed };
    }
  }

  /** Reports whether a waiting request may be admitted in this turn. */
  hasNext(turn: Turn<T>): boolean {
    return this.#first(turn, Number.POSITIVE_INFINITY) !== undefined;
  }

  /** Takes out all requests whose time is over. Call it at `nextExpiryMs` or later. */
  expire(nowMs: number): readonly QueueRefusal<T>[] {
    return this.#expired(nowMs);
  }

  /** Removes a request that leaves by itself. @returns whether it was still here */
  leave(place: QueuePlace<T>): boolean {
    return this.#remove(place);
  }

  #placeFor({ payload, priority, remainingMs }: QueueCandidate<T>, nowMs: number): QueuePlace<T> {
    const { waitMsMax } = this.#settings;
    const isCallerFirst = remainingMs !== undefined && remainingMs < waitMsMax;
    return {
      payload,
      priority,
      position: this.#countBefore(priority) + 1,
      enteredMs: nowMs,
      expiresMs: nowMs + (isCallerFirst ? remainingMs : waitMsMax),
      expiryCause: isCallerFirst ? "deadline" : "queueTimeout",
    };
  }

  #countBefore(priority: Priority): number {
    return this.#settings.order === "priority" ? this.countFrom(priority) : this.#seats.size;
  }

  #first(turn: Turn<T>, positionMax: number): QueuePlace<T> | undefined {
    if (this.#settings.order === "priority") return this.#highest(turn, positionMax);
    const { mayGo } = turn;
    if (this.#isNewestFirst()) return firstFrom(this.#arrivals.newest, "older", mayGo);
    return firstFrom(this.#arrivals.oldest, "newer", mayGo);
  }

  #highest({ lowest, mayGo }: Turn<T>, positionMax: number): QueuePlace<T> | undefined {
    for (const priority of priorities) {
      const { oldest, newest } = this.#classes[priority];
      const place = this.#isNewestOfClassFirst(priority, positionMax)
        ? firstFrom(newest, "older", mayGo)
        : firstFrom(oldest, "newer", mayGo);
      if (place !== undefined || priority === lowest) return place;
    }
    return undefined;
  }

  #displacedBy(newcomer: Priority): QueuePlace<T> | undefined {
    switch (this.#settings.order) {
      case "priority":
        return this.#lowestBelow(newcomer);
      case "fifo":
        return undefined;
      case "newestFirstUnderOverload":
        return this.#arrivals.oldest?.value;
    }
  }

  #lowestBelow(newcomer: Priority): QueuePlace<T> | undefined {
    for (const priority of priorities.toReversed()) {
      if (priority === newcomer) return undefined;
      const { oldest, newest } = this.#classes[priority];
      const last = this.#losing.has(priority) ? oldest : newest;
      if (last !== undefined) return last.value;
    }
    return undefined;
  }

  #isDropped(place: QueuePlace<T>, nowMs: number): boolean {
    if (this.#codel === undefined || place.priority === "critical") return false;
    const isLast = this.#seats.size === 0;
    return this.#codel.drops({ sojournMs: nowMs - place.enteredMs, isLast }, nowMs);
  }

  #expired(nowMs: number): QueueRefusal<T>[] {
    const dismissed: QueueRefusal<T>[] = [];
    for (let seat = this.#expiries.first; seat !== undefined; seat = this.#expiries.first) {
      const { place } = seat;
      if (place.expiresMs > nowMs) break;
      if (this.#isNewestFirst()) this.#dismissOlder(seat.arrival, dismissed);
      this.#remove(place);
      this.#noteLoss(place.priority);
      dismissed.push({ place, cause: place.expiryCause });
      this.#isOverloaded = this.#seats.size > 0;
    }
    return dismissed;
  }

  #isNewestFirst(): boolean {
    return this.#isOverloaded && this.#settings.order === "newestFirstUnderOverload";
  }

  #dismissOlder(arrival: ListNode<QueuePlace<T>>, dismissed: QueueRefusal<T>[]): void {
    for (let node = arrival.older; node !== undefined; node = arrival.older) {
      this.#remove(node.value);
      dismissed.push({ place: node.value, cause: "queueTimeout" });
    }
  }

  #add(place: QueuePlace<T>): void {
    const seat: Seat<T> = {
      place,
      expiresMs: place.expiresMs,
      heapPlace: undefined,
      arrival: this.#arrivals.push(place),
      inClass: this.#classes[place.priority].push(place),
    };
    this.#seats.set(place, seat);
    this.#expiries.push(seat);
  }

  #remove(place: QueuePlace<T>): boolean {
    const seat = this.#seats.get(place);
    if (seat === undefined) return false;
    this.#seats.delete(place);
    this.#expiries.remove(seat);
    this.#arrivals.remove(seat.arrival);
    const inClass = this.#classes[place.priority];
    inClass.remove(seat.inClass);
    if (inClass.count === 0) this.#losing.delete(place.priority);
    if (this.#seats.size === 0) this.#empty();
    return true;
  }

  /** An algorithm that bounds positions learns from requests that wait in order of arrival. */
  #isNewestOfClassFirst(priority: Priority, positionMax: number): boolean {
    return positionMax === Number.POSITIVE_INFINITY && this.#losing.has(priority);
  }

  /** Notes that a request of a class was not served for lack of a place or of time. */
  #noteLoss(priority: Priority): void {
    if (this.#classes[priority].count > 0) this.#losing.add(priority);
  }

  #empty(): void {
    this.#isOverloaded = false;
    this.#codel?.emptied();
  }
}

const anybodysTurn: Turn<unknown> = { lowest: "low", mayGo: () => true };

function firstFrom<T>(
  start: ListNode<QueuePlace<T>> | undefined,
  towards: "older" | "newer",
  mayGo: MayGo<T>,
): QueuePlace<T> | undefined {
  let node = start;
  while (node !== undefined && !mayGo(node.value.payload)) node = node[towards];
  return node?.value;
}
