import { DecisionCounters } from "../../decide/rate-limit/counters.js";
import type { HeadgatePlace, SimulatedHeadgate } from "./simulated-headgate.js";

interface ReplicaParts {
  readonly index: number;
  readonly zone: number;
  /** Starts the process. @param life number of previous starts */
  readonly start: (place: HeadgatePlace, life: number) => SimulatedHeadgate;
}

/** A replica of Headgate, whose process may restart and be absent in between. */
export class HeadgateReplica implements HeadgatePlace {
  readonly index: number;
  readonly zone: number;
  readonly #start: ReplicaParts["start"];
  /** Counters of all its processes. */
  readonly counters = new DecisionCounters();
  #current: SimulatedHeadgate | undefined;
  /** Stopping processes, until the requests that they know of have ended. */
  readonly #draining = new Set<SimulatedHeadgate>();
  #lifeCount = 0;
  #awayCount = 0;
  /** Amount by which its wall clock is ahead, in milliseconds. */
  skewMs = 0;
  /** Number of requests that it was asked about. */
  askedCount = 0;

  constructor({ index, zone, start }: ReplicaParts) {
    this.index = index;
    this.zone = zone;
    this.#start = start;
    // The first replica takes requests at once; the others first learn their shares of limits.
    if (index === 0) this.#current = this.#created();
    else this.#begin();
  }

  /** The process that takes requests; undefined: there is none. */
  get current(): SimulatedHeadgate | undefined {
    return this.#current;
  }

  /** Processes that have requests or take new ones. */
  get processes(): readonly SimulatedHeadgate[] {
    const { current } = this;
    return current === undefined ? [...this.#draining] : [...this.#draining, current];
  }

  /** Stops taking requests. The process ends when its requests have ended. */
  drain(): void {
    this.#awayCount += 1;
    const stopping = this.#current;
    if (stopping === undefined) return;
    this.#current = undefined;
    this.#draining.add(stopping);
    stopping.drain(() => void this.#draining.delete(stopping));
  }

  /** Ends its processes at once. Their state is lost. */
  crash(): void {
    this.#awayCount += 1;
    const { processes } = this;
    this.#current = undefined;
    this.#draining.clear();
    for (const lost of processes) lost.crash();
  }

  /** Starts again once no event keeps it away. */
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
