import { AdminCounts } from "../../../src/app/metrics/admin-metrics.js";
import {
  createMetrics,
  type MetricDefinition,
  newProcessCounts,
} from "../../../src/app/metrics/metrics.js";
import { NativeTransportCounts } from "../../../src/app/metrics/native-transport-metrics.js";
import { AuditCounts } from "../../../src/app/operator/audited-records.js";
import { noOverrides } from "../../../src/core/limits/override-table.js";
import { ExchangeCounts } from "../../../src/decide/admission/exchange-counts.js";
import { DecisionCounters } from "../../../src/decide/rate-limit/counters.js";
import { RefusalLog } from "../../../src/decide/rate-limit/refusal-log.js";
import { emptyPolicySize } from "../../../src/policy/policy-size.js";
import { ControlPlane } from "../../../src/rpc/control/control-plane.js";
import { FakeClock } from "../../support/fake-clock.js";
import { FakeRandom } from "../../support/fake-random.js";
import { QuotaRig } from "../../support/quota-rig.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

/** The metrics of a process in which every part runs. */
function allMetrics(): readonly MetricDefinition[] {
  return createMetrics({
    counters: new DecisionCounters(),
    processCounts: newProcessCounts(),
    policies: {
      current: () => undefined,
      status: { ...emptyPolicySize, loadedCount: 0, refusedCount: 0 },
    },
    isDegraded: () => false,
    overloadCause: () => undefined,
    inFlightCount: () => 0,
    replicaCount: () => 1,
    memoryKeyCount: () => 0,
    xdsStatus: () => ({
      isConnected: false,
      ackCount: 0,
      nackCount: 0,
      ignoredCount: 0,
      endCounts: new Map(),
    }),
    tlsStatus: () => ({
      expiryEpochUs: 0,
      isStale: false,
      loadedCount: 0,
      refusedCount: 0,
      refusedByCause: new Map(),
    }),
    nativeCounts: new NativeTransportCounts(),
    admission: {
      services: () => [],
      unknownCount: () => 0,
      nowMs: () => 0,
      exchanges: new ExchangeCounts(),
    },
    signals: { sources: () => [], services: () => [] },
    control: {
      plane: new ControlPlane({ clock: new FakeClock(), random: new FakeRandom() }),
      nowMs: () => 0,
      quotas: new QuotaRig(undefined).join(),
    },
    fleet: () => undefined,
    overrides: { current: () => noOverrides, unreadableCount: 0 },
    adminCounts: new AdminCounts(),
    auditCounts: new AuditCounts(),
    refusalLog: new RefusalLog({ perSecondMax: 1, onRefused: () => {} }),
    policyOperations: {
      policies: { origin: "files" },
      operations: {
        gates: { count: 0, unreadableCount: 0 },
        shadow: {
          divisor: 0,
          totals: { comparedCount: 0, newlyDeniedCount: 0, newlyAllowedCount: 0, unseenCount: 0 },
        },
      },
    },
    storeKind: "memory",
    version: "0",
  }).definitions();
}

const intro = `\
\`/metrics\` is Prometheus text, on the HTTP port and at \`HEADGATE_MONITORING_ADDR\`. Labels
come from the policy and from closed sets. Values of callers appear only where a limit asks for
that, by \`detailed_metric\` or \`value_to_metric\`, and are bounded in number and length. A
part that a process does not run has no metrics. Memory, CPU, the event loop and garbage
collection have the usual names of Node's client: \`process_*\` and \`nodejs_*\`.

\`headgate generate dashboards\` and \`headgate generate alerts\` make panels and rules of these
metrics for your policy.`;

/** What the names of an area's metrics begin with; the first that fits counts. */
const areas: readonly (readonly [heading: string, begins: RegExp])[] = [
  ["Admission", /^headgate_(admission|ext_proc|exchange|signal)_/],
  ["Quotas", /^headgate_quota_/],
  ["The fleet and the control port", /^headgate_(fleet|control)_/],
  ["The policy", /^headgate_(policy|shadow|xds)_/],
  ["Operators", /^headgate_(override_records|overrides|audit|admin|gate|gates)_?/],
  ["Transport and TLS", /^headgate_(tls|native_transport|refused_connections)_?/],
  ["Store", /^headgate_(store|memory_store|live_replicas|coalesced|remembered|fallback)_?/],
  ["Decisions and the process", /^headgate_/],
];

/** Every metric, by area. */
export function metricsPage(): ReferencePage {
  const areaOf = ({ name }: MetricDefinition) => areas.find(([, begins]) => begins.test(name))?.[0];
  const all = allMetrics();
  const parts = areas.toReversed().map(([heading]) => {
    const own = all.filter((metric) => areaOf(metric) === heading);
    const rows = own.map(({ name, kind, labels, help }) => [
      `<a id="${name}"></a>${code(name)}`,
      kind,
      labels.map(code).join(", "),
      help,
    ]);
    return `## ${heading}\n\n${table(["metric", "type", "labels", "what it says"], rows)}`;
  });
  return {
    path: "metrics.md",
    title: "Metrics",
    purpose: "Look up a metric: its type, its labels, and what it says.",
    body: paragraphs(intro, ...parts),
  };
}
