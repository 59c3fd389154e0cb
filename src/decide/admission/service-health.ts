import { type LoadSettings, LoadSignals } from "../../core/admission/load.js";
import { parseOrcaReport } from "../../core/admission/orca.js";
import type { RequestOutcome } from "../../core/calls/request-outcome.js";
import { LatencyBaseline } from "../../core/concurrency/latency-baseline.js";

/** Latency and outcome of one request. */
interface ServedRequest extends Pick<RequestOutcome, "outcome" | "isFailed"> {
  readonly latencyMs: number;
  readonly nowMs: number;
}

/** Load of a service, measured by its admitted requests. */
export class ServiceHealth {
  readonly settings: LoadSettings;
  readonly #signals: LoadSignals;
  readonly #baseline = new LatencyBaseline();

  constructor(settings: LoadSettings) {
    this.settings = settings;
    this.#signals = new LoadSignals(settings);
  }

  /** The load signals. On their scale, 1 is full load. */
  get signals(): LoadSignals {
    return this.#signals;
  }

  /** Records the end of a request that held a permit. */
  ended({ outcome, isFailed, latencyMs, nowMs }: ServedRequest): void {
    if (isFailed === true) this.#signals.failed(nowMs);
    else if (isFailed === false) this.#signals.succeeded(nowMs);
    if (outcome === "ignore" || isFailed === true) return;
    this.#baseline.add(latencyMs, nowMs);
    const { baselineMs } = this.#baseline;
    if (baselineMs !== undefined) this.#signals.latency(latencyMs, baselineMs, nowMs);
  }

  /** Records a load report from a response. A malformed report is ignored. */
  reported(loadMetrics: string, nowMs: number): void {
    const report = parseOrcaReport(loadMetrics);
    if (report !== undefined) this.#signals.orca(report, nowMs);
  }
}
