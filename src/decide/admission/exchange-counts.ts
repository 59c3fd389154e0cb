import type { ExchangeFault } from "../../core/admission/exchange.js";
import type { ExchangePart } from "../../core/admission/exchange-messages.js";

/**
 * Why a stream ended early: a fault of the protocol, a message larger than is read, or a response
 * that was to wait for an answer and not only to be shown.
 */
type CountedFault = ExchangeFault | "tooLarge" | "notObserved";

/** What ext_proc streams have seen, as plain integers that metrics read. */
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

  /** Once for each stream. */
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

  /** Messages by the part that they held. */
  get parts(): ReadonlyMap<ExchangePart, number> {
    return this.#parts;
  }

  /** Streams that broke the protocol or had a message too large, by how. */
  get faults(): ReadonlyMap<CountedFault, number> {
    return this.#faults;
  }
}
