import { httpStatuses } from "../../core/base/http-status.js";
import { duration, readBy, ruledText, text, whole, words } from "../text/form.js";
import { field, inner, items, object } from "../text/object.js";
import { host } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { tryTimeBounds } from "./retries.js";

/** Maximum number of expected statuses of one service's checks. */
const expectedStatusesMax = 16;

/** The bounds of such a status. */
const expectedStatusBounds = { min: 100, max: 599 } as const;

/** The path of a check, with an optional query. */
const healthPathPattern = /^\/[!-~]*$/;

const pathRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^!-~]/,
  expected: "a path such as /healthz",
};

/** The name of a service on a grpc.health.v1 server. */
const grpcServiceRule: TextRule = {
  charsMax: 256,
  forbidden: /[^!-~]/,
  expected: "a service name known to the server's health service, such as shop.Orders",
};

const path = readBy(text({ charsMax: 1_024 }, healthPathPattern), (reader, place) => {
  const written = reader.readText(place, pathRule);
  if (written === undefined || healthPathPattern.test(written)) return written;
  const { expected } = pathRule;
  return reader.report(place.key, { id: "HG225", message: "this is not a path", expected });
});

/** Bytes of a TCP check. */
const payloadRule: TextRule = {
  charsMax: 256,
  forbidden: /[^ -~\r\n\t]/,
  expected: 'text such as "PING\\r\\n"',
};

const payload = ruledText(payloadRule);

const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] as const;

const statuses = items(whole(expectedStatusBounds), {
  expected: "a list of HTTP statuses",
  max: expectedStatusesMax,
});

const http = object(
  { title: "a check by HTTP", docs: "A request, and the statuses of a healthy host." },
  {
    method: field(words(...methods), "The method of the request.", { default: "GET" }),
    path: field(path, "The path of the request.", {
      needs: "the path of the request, such as /healthz",
    }),
    host: field(host, "The host header. Default: the service's first host, or its address."),
    expectedStatuses: field(statuses, "Statuses of a healthy host. Default: 200.", {
      as: "statuses",
    }),
  },
);

const grpc = object(
  { title: "a check by gRPC", docs: "A call of grpc.health.v1.Health." },
  {
    serviceName: field(
      ruledText(grpcServiceRule),
      "The service name in the call. Default: the whole server.",
      { as: "service" },
    ),
  },
);

const tcp = object(
  { title: "a check by TCP", docs: "A connection, and what a healthy host says on it." },
  {
    send: field(payload, "Text that is sent. Default: nothing."),
    receive: field(payload, "Text that a healthy host sends, anywhere in its answer.", {
      needs: 'the answer of a healthy host, such as "+PONG"',
    }),
  },
);

/** How a host is probed. */
export type HealthProbe =
  /** A connection, and the texts exchanged on it; undefined: none. */
  | {
      readonly kind: "tcp";
      readonly send?: string | undefined;
      readonly receive?: string | undefined;
    }
  | {
      readonly kind: "http";
      readonly method: (typeof methods)[number];
      readonly path: string;
      /** Undefined: the service's first host, else its address. */
      readonly host: string | undefined;
      /** Default 200 only. */
      readonly statuses: readonly number[];
    }
  /** By grpc.health.v1; undefined: the server as a whole. */
  | { readonly kind: "grpc"; readonly service: string | undefined };

/** `healthChecks`. */
export const healthChecks = object(
  {
    title: "healthChecks",
    docs: "Active health checks. {}: by opening a connection.",
    alternatives: ["http", "grpc", "tcp"],
  },
  {
    http: field(inner(http), "Checks over HTTP."),
    grpc: field(inner(grpc), "Checks over gRPC."),
    tcp: field(inner(tcp), "Checks over TCP, with text that is exchanged."),
    timeout: field(duration(tryTimeBounds), "The timeout of a check.", {
      larger: "different",
      as: "timeoutMs",
      default: 1_000,
    }),
    interval: field(duration(tryTimeBounds), "The interval between checks.", {
      larger: "different",
      as: "intervalMs",
      default: 3_000,
    }),
    unhealthyInterval: field(
      duration(tryTimeBounds),
      "The interval between checks of unhealthy hosts. Default: `interval`.",
      { larger: "different", as: "unhealthyIntervalMs" },
    ),
    initialJitter: field(
      duration(tryTimeBounds),
      "The first check is later by up to this. Default: none.",
      { larger: "different", as: "initialJitterMs" },
    ),
    intervalJitter: field(
      duration(tryTimeBounds),
      "Each interval is longer by up to this. Default: none.",
      { larger: "different", as: "intervalJitterMs" },
    ),
    unhealthyThreshold: field(
      whole(thresholdBounds),
      "Consecutive failures before a host is unhealthy.",
      {
        larger: "different",
        default: 3,
      },
    ),
    healthyThreshold: field(
      whole(thresholdBounds),
      "Consecutive successes before it is healthy again.",
      {
        larger: "different",
        default: 1,
      },
    ),
  },
  {
    data: ({ http, grpc, tcp, ...rest }) => ({ probe: probeOf(http, grpc, tcp), ...rest }),
    check(block, { timeoutMs, intervalMs }) {
      if (timeoutMs <= intervalMs) return;
      const message = "a check may take longer than the interval";
      block.refuseOrder(["timeout", "interval"], message, "a timeout of at most the interval");
    },
  },
);

/** Active health checks of hosts. Source: envoy.config.core.v3.HealthCheck. */
export type HealthCheckPolicy = typeof healthChecks.defaults;

/** Returns the probe. By default, a connection is enough. */
function probeOf(
  byHttp: typeof http.defaults | undefined,
  byGrpc: typeof grpc.defaults | undefined,
  byTcp: typeof tcp.defaults | undefined,
): HealthProbe {
  if (byGrpc !== undefined) return { kind: "grpc", ...byGrpc };
  if (byHttp === undefined) return { kind: "tcp", ...byTcp };
  const { method, path: asked = "/", host, statuses: read = [] } = byHttp;
  const sorted = [...new Set(read)].sort((a, b) => a - b);
  return {
    kind: "http",
    method,
    path: asked,
    host,
    statuses: sorted.length === 0 ? [httpStatuses.ok] : sorted,
  };
}
