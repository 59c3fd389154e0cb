import { DecisionCounters } from "../../decide/rate-limit/counters.js";
import type { HeadgatePlace, SimulatedHeadgate } from "./simulated-headgate.js";

interface ReplicaParts {
  readonly index: number;
  readonly zone: number;
  /** Starts the process. @param life how often it was started before */
  readonly start: (place: HeadgatePlace, life: number) => SimulatedHeadgate;
}

/** A place for a process of Headgate, which restarts and may be away meanwhile. */
export class HeadgateReplica implements HeadgatePlace {
  readonly index: number;
  readonly zone: number;
  readonly #start: ReplicaParts["start"];
  /** Of all its processes. */
  readonly counters = new DecisionCounters();
  #current: SimulatedHeadgate | undefined;
  /** Those that stop, once the requests that they know of have ended. */
  readonly #draining = new Set<SimulatedHeadgate>();
  #lifeCount = 0;
  #awayCount = 0;
  /** By how much its wall clock is fast, in milliseconds. */
  skewMs = 0;
  /** Requests that it was asked about. */
  askedCount = 0;

  constructor({ index, zone, start }: ReplicaParts) {
    this.index = index;
    this.zone = zone;
    this.#start = start;
    // The first of all takes requests while the others learn their shares of it.
    if (index === 0) this.#current = this.#created();
    else this.#begin();
  }

  /** The process that takes requests; undefined: none does. */
  get current(): SimulatedHeadgate | undefined {
    return this.#current;
  }

  /** Processes that have requests or take some. */
  get processes(): readonly SimulatedHeadgate[] {
    const { current } = this;
    return current === undefined ? [...this.#draining] : [...this.#draining, current];
  }

  /** It takes no more requests, and stops when those that it has are over. */
  drain(): void {
    this.#awayCount += 1;
    const stopping = this.#current;
    if (stopping === undefined) return;
    this.#current = undefined;
    this.#draining.add(stopping);
    stopping.drain(() => void this.#draining.delete(stopping));
  }

  /** It is gone at once, and what it knew with it. */
  crash(): void {
    this.#awayCount += 1;
    const { processes } = this;
    this.#current = undefined;
    this.#draining.clear();
    for (const lost of processes) lost.crash();
  }

  /** Starts again, once nothing keeps it away. */
  comeBack(): void {
    this.#awayCount -= 1;
    if (this.#awayCount === 0) this.#begin();
  }

  #begin(): void {
    const created = this.#created();
    created.whenReady(() => {
      if (this.#awayCount === 0) this.#current = created;
      else created.crash();
    });
  }

  #created(): SimulatedHeadgate {
    const created = this.#start(this, this.#lifeCount);
    this.#lifeCount += 1;
    return created;
  }
}
