import { type LoadSettings, LoadSignals } from "../../core/admission/load.js";
import { parseOrcaReport } from "../../core/admission/orca.js";
import type { RequestOutcome } from "../../core/calls/request-outcome.js";
import { LatencyBaseline } from "../../core/concurrency/latency-baseline.js";

/** How long one request was served, and with what outcome. */
interface ServedRequest extends Pick<RequestOutcome, "outcome" | "isFailed"> {
  readonly latencyMs: number;
  readonly nowMs: number;
}

/** What requests that were let in tell of a service's load. */
export class ServiceHealth {
  readonly settings: LoadSettings;
  readonly #signals: LoadSignals;
  readonly #baseline = new LatencyBaseline();

  constructor(settings: LoadSettings) {
    this.settings = settings;
    this.#signals = new LoadSignals(settings);
  }

  /** Each reading on the scale on which 1 is full. */
  get signals(): LoadSignals {
    return this.#signals;
  }

  /** A request that held a permit has ended. */
  ended({ outcome, isFailed, latencyMs, nowMs }: ServedRequest): void {
    if (isFailed === true) this.#signals.failed(nowMs);
    else if (isFailed === false) this.#signals.succeeded(nowMs);
    if (outcome === "ignore" || isFailed === true) return;
    this.#baseline.add(latencyMs, nowMs);
    const { baselineMs } = this.#baseline;
    if (baselineMs !== undefined) this.#signals.latency(latencyMs, baselineMs, nowMs);
  }

  /** A response brought a load report; one that cannot be read says nothing. */
  reported(loadMetrics: string, nowMs: number): void {
    const report = parseOrcaReport(loadMetrics);
    if (report !== undefined) this.#signals.orca(report, nowMs);
  }
}
