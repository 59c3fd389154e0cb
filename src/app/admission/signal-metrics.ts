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
        help: "The last reading of a signal, by key; `other`: the largest of keys without a name.",
        labelNames: ["service", "key"],
        read: (add) => {
          for (const { name: service, pools } of services()) {
            for (const [key, reading] of pools.readings()) add(reading, { service, key });
          }
        },
      },
      {
        name: "headgate_signal_age_seconds",
        help: "Time since a signal's source last answered, or since it is asked.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.ageMs() / 1_000, { service });
        },
      },
      {
        name: "headgate_signal_missing",
        help: "1 while a signal has no reading that holds: its limit is where whenMissing says.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.isMissing ? 1 : 0, { service });
        },
      },
    ],
    counters: [
      {
        name: "headgate_signal_polls_total",
        help: "Questions to signals' sources, by kind of source and what came of them.",
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
