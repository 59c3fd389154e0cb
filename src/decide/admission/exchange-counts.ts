import type { ExchangeFault } from "../../core/admission/exchange.js";
import type { ExchangePart } from "../../core/admission/exchange-messages.js";

/**
 * Why a stream ended early: a protocol fault, a message above the maximum size, or a response that
 * waits for an answer although it should only be observed.
 */
type CountedFault = ExchangeFault | "tooLarge" | "notObserved";

/** Counters of ext_proc streams. Plain integers, read when metrics are scraped. */
export class ExchangeCounts {
  /** Streams that are open now. */
  openCount = 0;
  /** Streams that were ever opened. */
  openedCount = 0;
  /** Streams that began with a response: a filter before this one answered. */
  answeredBeforeCount = 0;
  readonly #parts = new Map<ExchangePart, number>();
  readonly #faults = new Map<CountedFault, number>();

  opened(): void {
    this.openCount += 1;
    this.openedCount += 1;
  }

  /** Called once for each stream. */
  closed(): void {
    this.openCount -= 1;
  }

  countPart(part: ExchangePart): void {
    this.#parts.set(part, (this.#parts.get(part) ?? 0) + 1);
  }

  countAnsweredBefore(): void {
    this.answeredBeforeCount += 1;
  }

  countFault(fault: CountedFault): void {
    this.#faults.set(fault, (this.#faults.get(fault) ?? 0) + 1);
  }

  /** Messages by the part that they contained. */
  get parts(): ReadonlyMap<ExchangePart, number> {
    return this.#parts;
  }

  /** Streams that broke the protocol or contained a message above the maximum size, by fault. */
  get faults(): ReadonlyMap<CountedFault, number> {
    return this.#faults;
  }
}
