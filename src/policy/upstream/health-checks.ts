import type { Block } from "../text/block.js";
import { readHost } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { defaultHealthChecks } from "./default-upstream.js";
import { tryTimeBounds } from "./retries.js";
import type { HealthCheckPolicy, HealthProbe } from "./upstream-policy.js";
import { grpcHealthShape, healthChecksShape, httpHealthShape } from "./upstream-shapes.js";

/** Statuses that one service may answer its checks with. */
export const expectedStatusesMax = 16;

/** The bounds of such a status. */
export const expectedStatusBounds = { min: 100, max: 599 } as const;

/** The path of a check, with a query where there is one. */
export const healthPathPattern = /^\/[!-~]*$/;

const pathRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^!-~]/,
  expected: "a path such as /healthz",
};

/** The name that a server of grpc.health.v1 knows a service by. */
const grpcServiceRule: TextRule = {
  charsMax: 256,
  forbidden: /[^!-~]/,
  expected: "a name that the server's health service knows, such as shop.Orders",
};

/** Reads `healthChecks` of a service; undefined where they are left out: nobody asks hosts. */
export function readHealthChecks(service: Block): HealthCheckPolicy | undefined {
  const block = service.block("healthChecks", healthChecksShape);
  if (block === undefined) return undefined;
  const usual = defaultHealthChecks;
  const timeoutMs = block.durationMs("timeout", usual.timeoutMs, tryTimeBounds);
  const intervalMs = block.durationMs("interval", usual.intervalMs, tryTimeBounds);
  if (timeoutMs > intervalMs) {
    const message = "a check may take longer than the time to the next one";
    block.refuseOrder(["timeout", "interval"], message, "timeout at most as long as interval");
  }
  return {
    probe: readProbe(block),
    timeoutMs,
    intervalMs,
    unhealthyThreshold: block.whole(
      "unhealthyThreshold",
      usual.unhealthyThreshold,
      thresholdBounds,
    ),
    healthyThreshold: block.whole("healthyThreshold", usual.healthyThreshold, thresholdBounds),
  };
}

/** Where neither is named a connection is enough. */
function readProbe(checks: Block): HealthProbe {
  const http = checks.block("http", httpHealthShape);
  const grpc = checks.block("grpc", grpcHealthShape);
  if (checks.field("http") !== undefined && checks.field("grpc") !== undefined) {
    checks.refusePair("grpc", "http");
  }
  if (grpc !== undefined) {
    return { kind: "grpc", service: grpc.text("serviceName", grpcServiceRule) };
  }
  return http === undefined ? { kind: "tcp" } : readHttp(http);
}

function readHttp(http: Block): HealthProbe {
  const { reader } = http;
  reader.requiredField(http.fields, "path", "the path that is asked, such as /healthz");
  const path = http.text("path", pathRule);
  if (path !== undefined && !healthPathPattern.test(path)) {
    http.report("path", {
      id: "HG225",
      message: "this is not a path",
      expected: pathRule.expected,
    });
  }
  const hostField = http.field("host");
  const items = http.items("expectedStatuses", "a list of HTTP statuses", expectedStatusesMax);
  const statuses = items.flatMap((item) => reader.readWhole(item, expectedStatusBounds) ?? []);
  return {
    kind: "http",
    path: path ?? "/",
    host: hostField && readHost(reader, hostField),
    statuses: statuses.length === 0 ? [200] : [...new Set(statuses)].sort((a, b) => a - b),
  };
}
