import { snakeCase } from "../../core/base/snake-case.js";
import type { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import type { MetricGroup } from "../base/metrics.js";

/** The metrics of ext_proc streams, by kind. */
export function exchangeMetrics(counts: ExchangeCounts): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_ext_proc_streams_open",
        help: "ext_proc streams that are open, one for each request that is followed.",
        read: (add) => add(counts.openCount),
      },
    ],
    counters: [
      {
        name: "headgate_ext_proc_streams_total",
        help: "ext_proc streams that were opened.",
        read: (add) => add(counts.openedCount),
      },
      {
        name: "headgate_exchange_messages_total",
        help: "Messages of ext_proc streams, by the part of the exchange that they held.",
        labelNames: ["part"],
        read: (add) => {
          for (const [part, value] of counts.parts) add(value, { part: snakeCase(part) });
        },
      },
      {
        name: "headgate_ext_proc_streams_answered_before_total",
        help:
          "ext_proc streams of requests that a filter before it had answered, such as a rate " +
          "limit. If all are, request_header_mode is SKIP.",
        read: (add) => add(counts.answeredBeforeCount),
      },
      {
        name: "headgate_exchange_faults_total",
        help:
          "ext_proc streams that were ended because they broke the protocol, by how; or for a " +
          "message larger than is read (`too_large`).",
        labelNames: ["fault"],
        read: (add) => {
          for (const [fault, value] of counts.faults) add(value, { fault: snakeCase(fault) });
        },
      },
    ],
  };
}
