import { type Expiring, ExpiryHeap } from "../collections/expiry-heap.js";
import { LinkedList, type ListNode } from "../collections/linked-list.js";
import { Codel, type CodelSettings } from "./codel.js";
import { type Priority, priorities } from "./priority.js";

/** In which order waiting requests are let in. */
export type QueueOrder = "priority" | "fifo" | "newestFirstUnderOverload";

/** A bounded queue in front of the permits. */
export interface QueueSettings {
  /** The most that wait. */
  readonly sizeMax: number;
  /** The longest that one waits. */
  readonly waitMsMax: number;
  /** Who goes first. */
  readonly order: QueueOrder;
  /** CoDel's test on how long heads have waited; undefined switches it off. */
  readonly codel: CodelSettings | undefined;
}

/** The share of its places from which a queue counts as overloaded. */
const overloadedShare = 0.5;

/** A request that asks for a place. */
export interface QueueCandidate<T> {
  /** What the queue hands back with its decision. */
  readonly payload: T;
  readonly priority: Priority;
  /** How long its caller still waits, in milliseconds; undefined: for as long as we like. */
  readonly remainingMs: number | undefined;
}

/** A request's place in the queue, for as long as it waits. */
export interface QueuePlace<T> {
  readonly payload: T;
  readonly priority: Priority;
  /**
   * From 1: how many were before it when it came, itself included; by priority only those of its
   * class and of the ones above count.
   */
  readonly position: number;
  readonly enteredMs: number;
  /** From then on it is not let in any more. */
  readonly expiresMs: number;
  /** What ends it then: the queue's patience, or its caller's. */
  readonly expiryCause: "queueTimeout" | "deadline";
}

/** A request that leaves without having been let in, and the cause that it is told. */
export interface QueueRefusal<T> {
  readonly place: QueuePlace<T>;
  readonly cause: "queueFull" | "queueTimeout" | "deadline";
}

/** What came of a step. */
export interface RequestQueueStep<T> {
  /** The place that was given or whose request is let in; undefined: none. */
  readonly place: QueuePlace<T> | undefined;
  /** Requests that have to be refused now, none of them in the queue any more. */
  readonly dismissed: readonly QueueRefusal<T>[];
}

/** Whose turn it may be. */
export interface Turn<T> {
  /** The lowest class whose turn it may be, by priority; other orders know no class. */
  readonly lowest: Priority;
  /** Whether it may be, by the payload. */
  readonly mayGo: MayGo<T>;
}

type MayGo<T> = (payload: T) => boolean;

interface Seat<T> extends Expiring {
  readonly place: QueuePlace<T>;
  readonly arrival: ListNode<QueuePlace<T>>;
  readonly inClass: ListNode<QueuePlace<T>>;
}

/**
 * Where requests wait for a permit: a bounded number, each for a bounded time. It starts no timer
 * and calls nobody; what has to be let in or refused it answers, once it is done with its own
 * bookkeeping. Entering, leaving and being let in take O(log n).
 *
 * Orders:
 * - `priority`: the highest class first, within it the oldest, until the class loses a request: one
 *   finds no place, gives its place up, or times out. From then on until nobody of the class waits,
 *   its newest goes first. More of the class ask than can be served, so the oldest first would let
 *   all of them wait for as long as they may, and serve no more. A full queue dismisses one of the
 *   lowest class below the newcomer's: the one that would go last.
 * - `fifo`: the oldest first. A full queue takes nobody.
 * - `newestFirstUnderOverload`: the oldest first, as is fair, until the queue is overloaded: half
 *   full, or somebody in it timed out. From then on until it is empty the newest first, because the
 *   newest has the most time left and the oldest will mostly be served for nobody; the oldest goes
 *   when it is full, and everything older than one that times out goes with it.
 *
 * CoDel's test is made on who would be let in, but for critical requests.
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
  /** Classes of which one could not wait, or waited in vain, since they last had nobody waiting. */
  readonly #losing = new Set<Priority>();
  #isOverloaded = false;

  /** @param settings `sizeMax` a whole number; 0 takes nobody in */
  constructor(settings: QueueSettings) {
    this.#settings = settings;
    this.#codel = settings.codel && new Codel(settings.codel);
  }

  /** How many wait. */
  get waitingCount(): number {
    return this.#seats.size;
  }

  /** How many of a class wait. */
  countOf(priority: Priority): number {
    return this.#classes[priority].count;
  }

  /** How many of a class and of those above it wait. */
  countFrom(lowest: Priority): number {
    let count = 0;
    for (const priority of priorities) {
      count += this.#classes[priority].count;
      if (priority === lowest) break;
    }
    return count;
  }

  /**
   * How many a newcomer of a class would have to wait for, those of classes above it included.
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

  /** When `expire` has something to do next; undefined while nobody waits. */
  get nextExpiryMs(): number | undefined {
    return this.#expiries.first?.place.expiresMs;
  }

  /** Changes settings while it runs. Who waits keeps place and time, also in a smaller queue. */
  configure(settings: QueueSettings): void {
    const { codel } = settings;
    const isSameCodel =
      codel?.targetMs === this.#settings.codel?.targetMs &&
      codel?.intervalMs === this.#settings.codel?.intervalMs;
    this.#settings = settings;
    if (!isSameCodel) this.#codel = codel && new Codel(codel);
  }

  /** Takes a request in. A full queue has no place for it: then its cause is `queueFull`. */
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
   * Takes out who is let in next, for a permit that is free.
   *
   * @param positionMax whoever came at a later position is dismissed: what a law that bounds the
   *   queue still believes in. Infinity for none
   * @param turn whose turn it may be; others keep their places. Default anybody's
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

  /** Whether anybody waits whose turn it may be. */
  hasNext(turn: Turn<T>): boolean {
    return this.#first(turn, Number.POSITIVE_INFINITY) !== undefined;
  }

  /** Takes out everybody whose time is over. To be called at `nextExpiryMs`; it may be later. */
  expire(nowMs: number): readonly QueueRefusal<T>[] {
    return this.#expired(nowMs);
  }

  /** A request leaves by itself. @returns whether it was still here */
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

  /** A law that bounds positions learns from those who waited in the order in which they came. */
  #isNewestOfClassFirst(priority: Priority, positionMax: number): boolean {
    return positionMax === Number.POSITIVE_INFINITY && this.#losing.has(priority);
  }

  /** A request of a class was not served for want of room or time. */
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
