import { formatOrcaReport } from "../../core/admission/orca.js";
import { DecayedSum } from "../../core/collections/decayed-sum.js";
import type { LoadSource } from "./server-options.js";

/** The time constant of the rate of requests, in milliseconds. */
const rateMemoryMs = 5_000;

/** How long a report is told before a new one is made, in milliseconds: one costs microseconds. */
export const reportHoldMs = 50;

/** The load of an admission. */
interface ReportedLoad {
  readonly applicationRatio: number;
  readonly inFlightCount: number;
}

/** What a service tells the proxy layer of its load. */
export class LoadReport {
  readonly #sources: readonly LoadSource[];
  readonly #admitted = new DecayedSum(rateMemoryMs);
  #text = "";
  #madeMs = Number.NEGATIVE_INFINITY;

  constructor(sources: readonly LoadSource[]) {
    this.#sources = sources;
  }

  /** A request was admitted. */
  admitted(nowMs: number): void {
    this.#admitted.add(1, nowMs);
  }

  /** The report, which is at most `reportHoldMs` old. */
  at(nowMs: number, load: () => ReportedLoad): string {
    if (nowMs - this.#madeMs >= reportHoldMs) {
      const { applicationRatio, inFlightCount } = load();
      this.#madeMs = nowMs;
      this.#text = formatOrcaReport({
        applicationRatio,
        cpuRatio: this.#largest("cpuRatio"),
        memoryRatio: this.#largest("memoryRatio"),
        requestsPerSecond: (this.#admitted.at(nowMs) * 1_000) / rateMemoryMs,
        named: { in_flight: inFlightCount },
      });
    }
    return this.#text;
  }

  #largest(name: "cpuRatio" | "memoryRatio"): number | undefined {
    let largest: number | undefined;
    for (const source of this.#sources) {
      const ratio = typeof source === "function" ? undefined : source[name];
      if (ratio !== undefined && !(ratio <= (largest ?? -1))) largest = ratio;
    }
    return largest;
  }
}
