import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { signalMetrics } from "../../src/app/admission/signal-metrics.js";
import { createMetrics } from "../../src/app/base/metrics.js";
import { fleetMetrics } from "../../src/app/fleet/fleet-metrics.js";
import { AuditCounts } from "../../src/app/foundation/audited-records.js";
import { operatorMetrics } from "../../src/app/foundation/operator-records.js";
import { AdminCounts, adminMetrics } from "../../src/app/metrics/admin-metrics.js";
import { admissionMetrics } from "../../src/app/metrics/admission-metrics.js";
import { controlMetrics } from "../../src/app/metrics/control-port-metrics.js";
import { refusalLogMetric } from "../../src/app/metrics/decision-log.js";
import { decisionMetrics, storeMetrics } from "../../src/app/metrics/decision-metrics.js";
import {
  exchangeMetrics,
  NativeTransportCounts,
  nativeTransportMetrics,
} from "../../src/app/metrics/grpc-port-metrics.js";
import {
  policyMetrics,
  policyOperationsMetrics,
  xdsMetrics,
} from "../../src/app/metrics/policy-metrics.js";
import { newProcessCounts, processMetrics } from "../../src/app/metrics/process-metrics.js";
import { renderIgnoredTable } from "../../src/app/options/ignored-options.js";
import { renderOptionTable } from "../../src/app/options/option-table.js";
import { remedyOf } from "../../src/app/store/store-remedies.js";
import { tlsMetrics } from "../../src/app/tls/tls.js";
import { refusalRows } from "../../src/core/admission/refusal.js";
import { type ErrorCode, errorRows } from "../../src/core/base/errors.js";
import { noOverrides } from "../../src/core/limits/override-table.js";
import { refusalCauses } from "../../src/core/settings/admission-settings.js";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { RefusalLog } from "../../src/decide/rate-limit/refusal-log.js";
import { doctorProblemRows } from "../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../src/generate/base/generate-problems.js";
import {
  listenerOptionRows,
  type OptionSupport,
  serviceOptionRows,
} from "../../src/generate/envoy/base/option-support.js";
import type { DifferenceRow } from "../../src/policy/migration/difference-row.js";
import { differenceRows } from "../../src/policy/migration/differences.js";
import { emptyPolicySize } from "../../src/policy/policy-size.js";
import { problemRows } from "../../src/policy/problems/problem.js";
import { ControlPlane } from "../../src/rpc/control/control-plane.js";
import { generatedPattern, generatedTable } from "../support/docs.js";
import { FakeClock } from "../support/fake-clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { QuotaRig } from "../support/quota-rig.js";

/** What asks for no time before it is used. */
const quiet = { clock: new FakeClock(), random: new FakeRandom() };

const isUpdating = process.env["UPDATE_GOLDEN"] === "1";

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = header.map(() => "---");
  return [header, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function renderProblems(): string {
  const rows = Object.entries(problemRows).map(([id, row]) => [id, row.title, row.remedy]);
  return table(["id", "mistake", "what to do"], rows);
}

function renderGenerateProblems(): string {
  const rows = Object.entries(generateProblemRows).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return table(
    ["id", "what it is", "what to do"],
    rows.map(([id, row]) => [id, row.title, row.remedy].map(escapeCell)),
  );
}

function renderDoctorProblems(): string {
  const rows = Object.entries(doctorProblemRows);
  return table(
    ["id", "finding", "what to do"],
    rows.map(([id, row]) => [id, row.title, row.remedy].map(escapeCell)),
  );
}

function renderDifferences(): string {
  const rows = Object.entries<DifferenceRow>(differenceRows).map(([id, row]) => {
    return [id, row.kind, row.reference, row.headgate, row.choice ?? ""].map(escapeCell);
  });
  return table(["id", "is", "envoyproxy/ratelimit", "Headgate", "switch"], rows);
}

/** What stands in a target's cell: whose words say it, and since when; or why nothing does. */
function supportCell(support: OptionSupport): string {
  if ("why" in support) return `no: ${support.why}`;
  return support.since === undefined ? support.by : `${support.by}, 1.${support.since}`;
}

function renderOptionSupport(): string {
  const listener = Object.entries(listenerOptionRows).map(
    ([name, row]) => [`proxies.listener.${name}`, row] as const,
  );
  const rows = [...Object.entries(serviceOptionRows), ...listener];
  return table(
    ["option", "Envoy", "Istio", "Envoy Gateway"],
    rows.map(([name, { envoy, istio, gateway }]) =>
      [`\`${name}\``, envoy, supportCell(istio), supportCell(gateway)].map(escapeCell),
    ),
  );
}

/** A bar would end the cell. */
function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function renderErrors(): string {
  const rows = Object.entries(errorRows).map(([code, row]) => {
    const remedy = isErrorCode(code) ? remedyOf(code) : undefined;
    return [`\`${code}\``, row.meaning, row.transient ? "yes" : "no", remedy ?? ""];
  });
  return table(["code", "meaning", "may pass by itself", "what to do"], rows);
}

function renderRefusals(): string {
  const rows = refusalCauses.map((cause) => {
    const { status, grpcStatus, reason } = refusalRows[cause];
    return [`\`${cause}\``, String(status), String(grpcStatus), reason];
  });
  return table(["cause", "HTTP", "gRPC", "`x-headgate-reason`"], rows);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorRows, code);
}

async function renderMetrics(): Promise<string> {
  const metrics = createMetrics();
  const counters = new DecisionCounters();
  const policies = {
    current: () => undefined,
    status: { ...emptyPolicySize, loadedCount: 0, refusedCount: 0 },
  };
  const none = { overloadCause: () => undefined, inFlightCount: () => 0 };
  const shadow = {
    divisor: 0,
    totals: { comparedCount: 0, newlyDeniedCount: 0, newlyAllowedCount: 0, unseenCount: 0 },
  };
  const quotas = new QuotaRig(undefined).join();
  metrics.add(
    decisionMetrics({ counters, policies, ...none }),
    policyMetrics(policies),
    storeMetrics({
      counters,
      isDegraded: () => false,
      replicaCount: () => 1,
      memoryKeyCount: () => 0,
      storeKind: "memory",
    }),
    admissionMetrics({ services: () => [], unknownCount: () => 0, nowMs: () => 0 }),
    exchangeMetrics(new ExchangeCounts()),
    signalMetrics({ sources: () => [], services: () => [] }),
    tlsMetrics(() => ({
      expiryEpochUs: 0,
      isStale: false,
      loadedCount: 0,
      refusedCount: 0,
      refusedByCause: new Map(),
    })),
    { counters: nativeTransportMetrics(new NativeTransportCounts()) },
    xdsMetrics(() => ({
      isConnected: false,
      ackCount: 0,
      nackCount: 0,
      ignoredCount: 0,
      endCounts: new Map(),
    })),
    controlMetrics({ plane: new ControlPlane(quiet), nowMs: () => 0, quotas }),
    fleetMetrics(() => undefined),
    operatorMetrics({ current: () => noOverrides, unreadableCount: 0 }, new AuditCounts()),
    { counters: adminMetrics(new AdminCounts()) },
    { counters: [refusalLogMetric(new RefusalLog({ perSecondMax: 1, onRefused: () => {} }))] },
    policyOperationsMetrics({
      policies: { origin: "files" },
      gates: { count: 0, unreadableCount: 0 },
      shadow,
    }),
    processMetrics(newProcessCounts(), "0"),
  );
  const text = await metrics.render();
  const rows = [...text.matchAll(/^# HELP (headgate_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)];
  return table(
    ["metric", "kind", "what it says"],
    rows.map(([, name = "", help = "", kind = ""]) => [`\`${name}\``, kind, help]),
  );
}

const generated: Readonly<Record<string, () => string | Promise<string>>> = {
  problems: renderProblems,
  "generate problems": renderGenerateProblems,
  "options by target": renderOptionSupport,
  "doctor problems": renderDoctorProblems,
  differences: renderDifferences,
  metrics: renderMetrics,
  errors: renderErrors,
  refusals: renderRefusals,
  options: renderOptionTable,
  ignored: renderIgnoredTable,
};

describe("generated tables of the documentation", () => {
  it.each(Object.keys(generated))("show the %s as the code has them", async (name) => {
    const wanted = `\n${await generated[name]?.()}\n\n`;
    if (isUpdating) {
      const { path } = generatedTable(name);
      const text = readFileSync(path, "utf8");
      writeFileSync(
        path,
        text.replace(generatedPattern(name), (_, begin, _old, end) => begin + wanted + end),
      );
    }
    expect(generatedTable(name).table, "run UPDATE_GOLDEN=1 npm run golden").toBe(wanted);
  });
});
