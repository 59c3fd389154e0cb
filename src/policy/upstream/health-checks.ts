import { httpStatuses } from "../../core/base/http-status.js";
import { duration, readBy, ruledText, text, whole } from "../text/form.js";
import { field, inner, items, object } from "../text/object.js";
import { host } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { tryTimeBounds } from "./retries.js";

/** Statuses that one service may answer its checks with. */
const expectedStatusesMax = 16;

/** The bounds of such a status. */
const expectedStatusBounds = { min: 100, max: 599 } as const;

/** The path of a check, with a query where there is one. */
const healthPathPattern = /^\/[!-~]*$/;

const pathRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^!-~]/,
  expected: "a path such as /healthz",
};

/** The name that a server of grpc.health.v1 knows a service by. */
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

const statuses = items(whole(expectedStatusBounds), {
  expected: "a list of HTTP statuses",
  max: expectedStatusesMax,
});

const http = object(
  { title: "a check by HTTP", docs: "A GET request, and the statuses of a healthy host." },
  {
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

/** What is asked of a host. */
export type HealthProbe =
  /** A connection. */
  | { readonly kind: "tcp" }
  | {
      readonly kind: "http";
      readonly path: string;
      /** Undefined: the service's first host, else its address. */
      readonly host: string | undefined;
      /** Default 200 alone. */
      readonly statuses: readonly number[];
    }
  /** Of grpc.health.v1; undefined: the server as a whole. */
  | { readonly kind: "grpc"; readonly service: string | undefined };

/** `healthChecks`. */
export const healthChecks = object(
  {
    title: "healthChecks",
    docs: "Active health checks. {}: by opening a connection.",
    alternatives: ["http", "grpc"],
  },
  {
    http: field(inner(http), "Checks over HTTP."),
    grpc: field(inner(grpc), "Checks over gRPC."),
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
    data: ({ http, grpc, ...rest }) => ({ probe: probeOf(http, grpc), ...rest }),
    check(block, { timeoutMs, intervalMs }) {
      if (timeoutMs <= intervalMs) return;
      const message = "a check may take longer than the interval";
      block.refuseOrder(["timeout", "interval"], message, "a timeout of at most the interval");
    },
  },
);

/** How hosts are asked whether they are well. Source: envoy.config.core.v3.HealthCheck. */
export type HealthCheckPolicy = typeof healthChecks.defaults;

/** Where neither is named a connection is enough. */
function probeOf(
  byHttp: typeof http.defaults | undefined,
  byGrpc: typeof grpc.defaults | undefined,
): HealthProbe {
  if (byGrpc !== undefined) return { kind: "grpc", ...byGrpc };
  if (byHttp === undefined) return { kind: "tcp" };
  const { path: asked = "/", host, statuses: read = [] } = byHttp;
  const sorted = [...new Set(read)].sort((a, b) => a - b);
  return {
    kind: "http",
    path: asked,
    host,
    statuses: sorted.length === 0 ? [httpStatuses.ok] : sorted,
  };
}
