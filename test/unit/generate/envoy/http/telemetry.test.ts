import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { defaultGenerateOptions } from "../../../../../src/generate/base/generate-options.js";
import { plainTree } from "../../../../../src/generate/base/plain-tree.js";
import { isWatched, telemetry } from "../../../../../src/generate/envoy/http/telemetry.js";
import { alertRules } from "../../../../../src/generate/observe/alerts.js";
import { generateDashboards } from "../../../../../src/generate/observe/dashboards.js";
import { testService } from "../../../../support/admission.js";
import { reportedService } from "../../../../support/control-rig.js";
import { dashboardShape } from "../../../../support/dashboard-grid.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";
import { policyOf } from "../../../../support/generated.js";
import { readQuery } from "../../../../support/promql.js";

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
  const { context } = testContext({ services: [reportedService("orders")] });
  const made = plain(telemetry(context)) as Telemetry;
  return made.stats_config.stats_matcher.inclusion_list.patterns.some(
    ({ prefix, contains, safe_regex: expression }) =>
      (prefix !== undefined && name.startsWith(prefix)) ||
      (contains !== undefined && name.includes(contains)) ||
      (expression !== undefined && new RegExp(`^(?:${expression.regex})$`).test(name)),
  );
}

/** Where Prometheus has an underscore for a dot of Envoy's, beside that behind the scope. */
const dotted: readonly (readonly [RegExp, string])[] = [
  [/^(circuit_breakers)_(default|high)_/, "$1.$2."],
  [/^(ratelimit|ext_proc)_(headgate)_/, "$1.$2."],
  [/^(outlier_detection|admission_control)_/, "$1."],
  [/^(adaptive_concurrency)_(gradient_controller)_/, "$1.$2."],
];

/** What Envoy calls a metric: names of clusters and listeners are tags, as is a status. */
function statisticsOf(metric: string): readonly string[] {
  const [, scope = "", rest = ""] =
    /^envoy_(cluster|http|server|overload)_(.*)$/.exec(metric) ?? [];
  const end = dotted.reduce((text, [pattern, to]) => text.replace(pattern, to), rest);
  const named = scope === "cluster" || scope === "http" ? `${scope}.some.` : `${scope}.`;
  const name = metric.replace(/^envoy_http_local_rate_limit_/, "some.http_local_rate_limit.");
  const full = name === metric ? `${named}${end}` : name;
  if (!full.endsWith("_xx")) return [full];
  return ["2xx", "4xx", "5xx"].map((status) => full.replace(/xx$/, status));
}

/** Envoys' metrics that generated dashboards and alerts read. */
function readMetrics(): readonly string[] {
  const { documents } = generateDashboards(fullPolicy, defaultGenerateOptions);
  const panels = documents.flatMap(({ parts }) => {
    return parts.flatMap((part) => dashboardShape.parse(plainTree(part)).panels);
  });
  const queries = [
    ...alertRules(fullPolicy, { replicas: 2, namespace: "headgate" }).map(({ expr }) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  const metrics = queries.flatMap((expr) => readQuery(expr).selectors.map(({ metric }) => metric));
  return [...new Set(metrics)].filter((metric) => metric.startsWith("envoy_")).sort();
}

const everything = "test/golden/generate/dashboards/everything/policy.yaml";
const fullPolicy = policyOf([{ file: "policy.yaml", text: readFileSync(everything, "utf8") }]);

describe("telemetry()", () => {
  /** Story: panels of generated dashboards stayed empty before generated Envoys. */
  it("counts every statistic that a generated dashboard or alert reads", () => {
    const metrics = readMetrics();
    expect(metrics.length).toBeGreaterThan(30);
    expect(metrics.flatMap(statisticsOf).filter((name) => !isCounted(name))).toEqual([]);
  });

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
    expect(isCounted("cluster.orders.membership_total")).toBe(true);
    expect(isCounted("cluster.orders.membership_degraded")).toBe(false);
    expect(isCounted("cluster.orders.circuit_breakers.high.remaining_cx")).toBe(false);
    expect(isCounted("cluster.orders.circuit_breakers.default.rq_pending_open")).toBe(false);
    expect(isCounted("cluster.orders.upstream_cx_length_ms")).toBe(false);
    expect(isCounted("cluster.orders.lb_healthy_panic")).toBe(false);
  });

  it("pushes each second what was counted in it, and reports load", () => {
    const { context } = testContext({ services: [reportedService("orders")] });
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
    expect(isWatched(reportedService("orders"))).toBe(true);
    expect(isWatched(reportedService("orders", {}, { feedback: [], sources: ["extProc"] }))).toBe(
      false,
    );
    expect(
      isWatched(reportedService("orders", {}, { feedback: [], sources: ["loadReports"] })),
    ).toBe(true);
  });
});
