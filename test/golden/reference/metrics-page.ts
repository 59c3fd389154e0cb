import { signalMetrics } from "../../../src/app/admission/admission.js";
import type { MetricGroup, ReadMetric } from "../../../src/app/base/metrics.js";
import { fleetMetrics } from "../../../src/app/fleet/fleet-metrics.js";
import { AuditCounts, operatorMetrics } from "../../../src/app/foundation/operator-records.js";
import { AdminCounts, adminMetrics } from "../../../src/app/metrics/admin-metrics.js";
import { admissionMetrics } from "../../../src/app/metrics/admission-metrics.js";
import { budgetMetrics } from "../../../src/app/metrics/budget-metrics.js";
import { controlMetrics } from "../../../src/app/metrics/control-port-metrics.js";
import { refusalLogMetric } from "../../../src/app/metrics/decision-log.js";
import { decisionMetrics, storeMetrics } from "../../../src/app/metrics/decision-metrics.js";
import {
  exchangeMetrics,
  NativeTransportCounts,
  nativeTransportMetrics,
} from "../../../src/app/metrics/grpc-port-metrics.js";
import {
  policyMetrics,
  policyOperationsMetrics,
  xdsMetrics,
} from "../../../src/app/metrics/policy-metrics.js";
import { newProcessCounts, processMetrics } from "../../../src/app/metrics/process-metrics.js";
import { regionMetrics } from "../../../src/app/metrics/region-metrics.js";
import { respMetrics } from "../../../src/app/metrics/resp-metrics.js";
import { roomMetrics } from "../../../src/app/metrics/room-metrics.js";
import { exportMetrics } from "../../../src/app/telemetry/otlp-export.js";
import { tlsMetrics } from "../../../src/app/tls/tls.js";
import { noOverrides } from "../../../src/core/limits/override-table.js";
import { ExchangeCounts } from "../../../src/decide/admission/exchange-counts.js";
import { DecisionCounters } from "../../../src/decide/rate-limit/counters.js";
import { RefusalLog } from "../../../src/decide/rate-limit/refusal-log.js";
import { emptyPolicySize } from "../../../src/policy/policy-size.js";
import { ControlPlane } from "../../../src/rpc/control/control-plane.js";
import { RespCounts } from "../../../src/rpc/resp/resp-counts.js";
import { BudgetRig } from "../../support/budget-rig.js";
import { FakeClock } from "../../support/fake-clock.js";
import { FakeRandom } from "../../support/fake-random.js";
import { QuotaRig } from "../../support/quota-rig.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

/** The metrics of a process in which every part runs. */
function allGroups(): readonly MetricGroup[] {
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
  const noExport = { counts: { failedCount: 0, droppedCount: 0 }, close: async () => {} };
  const quotas = new QuotaRig(undefined).join();
  return [
    decisionMetrics({ counters, policies, ...none }),
    policyMetrics(policies),
    regionMetrics({ regions: () => [], keyCount: 0, droppedKeyCount: 0 }),
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
    respMetrics(new RespCounts(), () => 0),
    xdsMetrics(() => ({
      isConnected: false,
      ackCount: 0,
      nackCount: 0,
      ignoredCount: 0,
      endCounts: new Map(),
    })),
    controlMetrics({
      plane: new ControlPlane({ clock: new FakeClock(), random: new FakeRandom() }),
      nowMs: () => 0,
      quotas,
    }),
    fleetMetrics(() => undefined),
    roomMetrics({ rooms: () => [] }),
    budgetMetrics(new BudgetRig()),
    operatorMetrics({ current: () => noOverrides, unreadableCount: 0 }, new AuditCounts()),
    { counters: adminMetrics(new AdminCounts()) },
    { counters: [refusalLogMetric(new RefusalLog({ perSecondMax: 1, onRefused: () => {} }))] },
    policyOperationsMetrics({
      policies: { origin: "files" },
      gates: { count: 0, unreadableCount: 0 },
      shadow,
    }),
    processMetrics(newProcessCounts(), "0"),
    exportMetrics({ metrics: noExport, logs: noExport }),
  ];
}

/** A metric with what it is. */
interface DefinedMetric extends Pick<ReadMetric, "name" | "help" | "labelNames"> {
  readonly kind: "counter" | "gauge" | "histogram";
}

/** In the order in which `/metrics` shows them. */
function allMetrics(): readonly DefinedMetric[] {
  return allGroups().flatMap(({ gauges = [], counters = [], histograms = [] }) => [
    ...gauges.map((metric) => ({ ...metric, kind: "gauge" as const })),
    ...counters.map((metric) => ({ ...metric, kind: "counter" as const })),
    ...histograms.map((metric) => ({ ...metric, kind: "histogram" as const })),
  ]);
}

const intro = `\
\`/metrics\` is Prometheus text, on the HTTP port and at \`HEADGATE_MONITORING_ADDR\`, or
OpenMetrics if the client accepts it. Labels come from the policy and from closed sets. Values of
callers appear only if a limit enables it with \`detailed_metric\` or \`value_to_metric\`, and are
bounded in number and length. A process exports no metrics for parts that it does not run. Memory,
CPU, the event loop and garbage collection have the usual names of Node.js clients: \`process_*\`
and \`nodejs_*\`.

\`headgate generate dashboards\` and \`headgate generate alerts\` create dashboards and alert rules
from these metrics for your policy.`;

/** What the names of an area's metrics begin with; the first that fits counts. */
const areas: readonly (readonly [heading: string, begins: RegExp])[] = [
  ["Admission", /^headgate_(admission|ext_proc|exchange|signal)_/],
  ["Quotas", /^headgate_quota_/],
  ["Waiting rooms", /^headgate_waiting_room_/],
  ["Budgets", /^headgate_(budget|usage)_/],
  ["The fleet and the control port", /^headgate_(fleet|control)_/],
  ["The policy", /^headgate_(policy|shadow|xds)_/],
  ["Operators", /^headgate_(override_records|overrides|audit|admin|gate|gates)_?/],
  ["Transport and TLS", /^headgate_(tls|native_transport|refused_connections)_?/],
  ["Store", /^headgate_(store|memory_store|live_replicas|coalesced|remembered|fallback)_?/],
  ["Decisions and the process", /^headgate_/],
];

/** Every metric, by area. */
export function metricsPage(): ReferencePage {
  const areaOf = ({ name }: DefinedMetric) => areas.find(([, begins]) => begins.test(name))?.[0];
  const all = allMetrics();
  const parts = areas.toReversed().map(([heading]) => {
    const own = all.filter((metric) => areaOf(metric) === heading);
    const rows = own.map(({ name, kind, labelNames = [], help }) => [
      `<a id="${name}"></a>${code(name)}`,
      kind,
      labelNames.map(code).join(", "),
      help,
    ]);
    return `## ${heading}\n\n${table(["metric", "type", "labels", "what it says"], rows)}`;
  });
  return {
    path: "metrics.md",
    title: "Metrics",
    purpose: "This page lists all metrics, with their types, labels and meanings.",
    body: paragraphs(intro, ...parts),
  };
}
