import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import type { MetricGroup } from "../base/metrics.js";
import type { PolledSource } from "./signal-sources.js";

interface SignalMetricsParts {
  readonly sources: () => Iterable<PolledSource>;
  readonly services: () => Iterable<ServiceAdmission>;
}

/** The metrics of signals, by kind. */
export function signalMetrics({ sources, services }: SignalMetricsParts): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_signal_reading",
        help: "The last reading of a signal, by key; `other`: the largest of unnamed keys.",
        labelNames: ["service", "key"],
        read: (add) => {
          for (const { name: service, pools } of services()) {
            for (const [key, reading] of pools.readings()) add(reading, { service, key });
          }
        },
      },
      {
        name: "headgate_signal_age_seconds",
        help: "Seconds since a signal's source last answered, or since polling began.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.ageMs() / 1_000, { service });
        },
      },
      {
        name: "headgate_signal_missing",
        help: "1 while a signal has no valid reading; its limit is then set by whenMissing.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.isMissing ? 1 : 0, { service });
        },
      },
    ],
    counters: [
      {
        name: "headgate_signal_polls_total",
        help: "Polls of signal sources, by kind of source and outcome.",
        labelNames: ["service", "source", "outcome"],
        read: (add) => {
          for (const { service, kind: source, poller } of sources()) {
            for (const [code, count] of poller.countByOutcome) {
              add(count, { service, source, outcome: code.toLowerCase() });
            }
          }
        },
      },
    ],
  };
}
