import { snakeCase } from "../../core/base/text.js";
import type { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import { type Http2ErrorCode, http2ErrorCodes } from "../../wire/base/http2-error.js";
import type { ConnectionEnd } from "../../wire/http2/http2-connection.js";
import { byLabel, type MetricGroup, type ReadMetric } from "../base/metrics.js";

/** How the native transport's connections and streams ended. Plain integers, read when scraped. */
export class NativeTransportCounts {
  readonly #ends = new Map<string, number>();
  readonly #resets = new Map<string, number>();

  /** Ended connections by cause: `peer`, `left`, `destroyed`, a time limit, or an error's name. */
  get endsByCause(): ReadonlyMap<string, number> {
    return this.#ends;
  }

  /** Streams that were reset because of their client's actions, by the error's name. */
  get resetsByCode(): ReadonlyMap<string, number> {
    return this.#resets;
  }

  countEnd(end: ConnectionEnd): void {
    count(this.#ends, causeOf(end));
  }

  countReset(code: Http2ErrorCode): void {
    count(this.#resets, errorName(code));
  }
}

/** Returns the metrics of the native transport. */
export function nativeTransportMetrics(counts: NativeTransportCounts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_native_transport_ended_connections_total",
      help:
        "Closed connections of the native transport, by cause; for protocol " +
        "violations, the HTTP/2 code.",
      ...byLabel("cause", () => counts.endsByCause),
    },
    {
      name: "headgate_native_transport_reset_streams_total",
      help: "Calls reset because a client violated the protocol or a bound, by code.",
      ...byLabel("code", () => counts.resetsByCode),
    },
  ];
}

/** Returns a cause from a closed set: kinds of ends, names of errors, time limits. */
function causeOf(end: ConnectionEnd): string {
  if (end.kind === "error") return errorName(end.code);
  return end.kind === "time" ? end.why : end.kind;
}

/** Returns the name in RFC 9113, in lower case: `enhance_your_calm`. */
function errorName(code: Http2ErrorCode): string {
  const entry = Object.entries(http2ErrorCodes).find(([, known]) => known === code);
  const [name] = entry ?? ["unknown"];
  return snakeCase(name);
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** Returns the metrics of ext_proc streams, by kind. */
export function exchangeMetrics(counts: ExchangeCounts): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_ext_proc_streams_open",
        help:
          "Open ext_proc streams: one for each request in progress, and one for each " +
          "response whose usage is read.",
        read: (add) => add(counts.openCount),
      },
    ],
    counters: [
      {
        name: "headgate_ext_proc_streams_total",
        help: "ext_proc streams opened.",
        read: (add) => add(counts.openedCount),
      },
      {
        name: "headgate_exchange_messages_total",
        help: "ext_proc messages, by the part of the request or response they contain.",
        labelNames: ["part"],
        read: (add) => {
          for (const [part, value] of counts.parts) add(value, { part: snakeCase(part) });
        },
      },
      {
        name: "headgate_ext_proc_streams_answered_before_total",
        help:
          "ext_proc streams of requests that an earlier filter had answered, such " +
          "as a rate limit. If all streams count here, request_header_mode is SKIP.",
        read: (add) => add(counts.answeredBeforeCount),
      },
      {
        name: "headgate_exchange_faults_total",
        help:
          "ext_proc streams closed for a protocol violation, by kind, or because a " +
          "message exceeds the maximum size (`too_large`), or an observing filter lacks " +
          "observability_mode (`not_observed`).",
        labelNames: ["fault"],
        read: (add) => {
          for (const [fault, value] of counts.faults) add(value, { fault: snakeCase(fault) });
        },
      },
    ],
  };
}
