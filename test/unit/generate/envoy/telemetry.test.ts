import { describe, expect, it } from "vitest";
import { isWatched, telemetry } from "../../../../src/generate/envoy/telemetry.js";
import { testService } from "../../../support/admission.js";
import { toldService } from "../../../support/control-rig.js";
import { apiProblems, plain, testContext } from "../../../support/envoy-parts.js";

interface Pattern {
  readonly prefix?: string;
  readonly contains?: string;
  readonly safe_regex?: { readonly regex: string };
}

interface Telemetry {
  readonly stats_config: {
    readonly stats_matcher: { readonly inclusion_list: { readonly patterns: readonly Pattern[] } };
  };
}

function isCounted(name: string): boolean {
  const { context } = testContext({ services: [toldService("orders")] });
  const made = plain(telemetry(context)) as Telemetry;
  return made.stats_config.stats_matcher.inclusion_list.patterns.some(
    ({ prefix, contains, safe_regex: expression }) =>
      (prefix !== undefined && name.startsWith(prefix)) ||
      (contains !== undefined && name.includes(contains)) ||
      (expression !== undefined && new RegExp(`^(?:${expression.regex})$`).test(name)),
  );
}

describe("telemetry()", () => {
  it("counts what Headgate reads of clusters with any name", () => {
    const ends = ["time", "active", "completed", "5xx", "active_overflow", "pending_overflow"];
    for (const end of [...ends, "drop_overload"]) {
      expect([end, isCounted(`cluster.orders.upstream_rq_${end}`)]).toEqual([end, true]);
      expect(isCounted(`cluster.outbound|80||a.b.svc.cluster.local.upstream_rq_${end}`)).toBe(true);
    }
    expect(isCounted("cluster.orders.upstream_cx_overflow")).toBe(true);
    expect(isCounted("cluster.orders.circuit_breakers.high.remaining_rq")).toBe(true);
    const gradient = "http.ingress.adaptive_concurrency.gradient_controller.concurrency_limit";
    expect(isCounted(gradient)).toBe(true);
  });

  it("counts what people look at, and not the thousands of others", () => {
    expect(isCounted("overload.envoy.resource_monitors.fixed_heap.pressure")).toBe(true);
    expect(isCounted("orders.http_local_rate_limit.rate_limited")).toBe(true);
    expect(isCounted("cluster.orders.circuit_breakers.default.remaining_rq")).toBe(true);
    expect(isCounted("cluster.orders.upstream_cx_length_ms")).toBe(false);
    expect(isCounted("cluster.orders.lb_healthy_panic")).toBe(false);
  });

  it("pushes each second what was counted in it, and reports load", () => {
    const { context } = testContext({ services: [toldService("orders")] });
    const made = telemetry(context);
    expect(plain(made)).toMatchObject({
      stats_flush_interval: "1s",
      stats_sinks: [
        {
          typed_config: {
            grpc_service: { envoy_grpc: { cluster_name: "headgate_control" } },
            report_counters_as_deltas: true,
            histogram_emit_mode: "SUMMARY",
          },
        },
      ],
      cluster_manager: {
        load_stats_config: {
          grpc_services: [{ envoy_grpc: { cluster_name: "headgate_control" } }],
        },
      },
    });
    expect(apiProblems("envoy.config.bootstrap.v3.Bootstrap", made)).toEqual([]);
  });

  it("tells nothing where Headgate listens to nothing", () => {
    expect(telemetry(testContext().context)).toEqual({});
  });
});

describe("isWatched()", () => {
  it("is so where proxies are listened to, or told", () => {
    expect(isWatched(testService(undefined))).toBe(false);
    expect(isWatched(toldService("orders"))).toBe(true);
    expect(isWatched(toldService("orders", {}, { feedback: [], sources: ["extProc"] }))).toBe(
      false,
    );
    expect(isWatched(toldService("orders", {}, { feedback: [], sources: ["loadReports"] }))).toBe(
      true,
    );
  });
});
