import { formatOrcaReport } from "../../core/admission/orca.js";
import { DecayedSum } from "../../core/collections/decayed-sum.js";
import type { LoadSource } from "./server-options.js";

/** Time constant of the request rate, in milliseconds. */
const rateMemoryMs = 5_000;

/** Maximum age of a report, in milliseconds: creating one costs microseconds. */
export const reportHoldMs = 50;

/** The load of an admission. */
interface ReportedLoad {
  readonly applicationRatio: number;
  readonly inFlightCount: number;
}

/** The load that a service reports to the proxy layer. */
export class LoadReport {
  readonly #sources: readonly LoadSource[];
  readonly #admitted = new DecayedSum(rateMemoryMs);
  #text = "";
  #madeMs = Number.NEGATIVE_INFINITY;

  constructor(sources: readonly LoadSource[]) {
    this.#sources = sources;
  }

  /** Counts an admitted request. */
  admitted(nowMs: number): void {
    this.#admitted.add(1, nowMs);
  }

  /** Returns the report, which is less than `reportHoldMs` old. */
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
