import type { Clock, Random } from "../../core/base/clock.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { ExplainCall, Explainer } from "../../decide/inspect/explain.js";
import type { BudgetExplainer } from "../../decide/inspect/explain-budgets.js";
import type { RuleCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import type {
  AdminFinding,
  FleetView,
  GateAdministration,
  HistorySight,
  KeyInspection,
  KeySightings,
  PolicyAdministration,
  PolicyTrials,
  QuotaSight,
  ReplicaAsks,
  RoomAdministration,
  TailSource,
} from "./admin-parts.js";
import type { BudgetAdministration } from "./budget-parts.js";

/** The result of reading a candidate policy. */
export type ReadCandidate =
  | { readonly kind: "policy"; readonly policy: Policy }
  /** @property first the first problem, in words */
  | { readonly kind: "problems"; readonly first: string; readonly count: number }
  | { readonly kind: "failed"; readonly message: string };

/** Dependencies of the services. Calls that need an absent one fail with UNIMPLEMENTED. */
export interface AdminServiceParts {
  readonly clock: Clock;
  readonly random: Random;
  /** A strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  /** The name of this replica in the audit log. */
  readonly replica: string;
  readonly policies: PolicySource;
  /** Counts by rule index. */
  readonly ruleCounters: (policy: Policy) => readonly RuleCounters[];
  readonly records: SharedRecords;
  readonly overrides: { current(): OverrideTable };
  readonly explainer: Explainer;
  readonly budgetExplainer: BudgetExplainer;
  readonly peek: ExplainCall["peek"];
  /** Reads a policy that is not active, off the event loop. */
  readonly readCandidate: (files: readonly PolicyText[]) => Promise<ReadCandidate>;
  readonly fleet: FleetView;
  /** Regions that share global limits. Absent: 1. */
  readonly regionCount?: number;
  readonly keys?: KeyInspection;
  readonly sightings?: KeySightings;
  readonly tail?: TailSource;
  readonly policyAdministration?: PolicyAdministration;
  readonly gates?: GateAdministration;
  readonly quotas?: QuotaSight;
  readonly rooms?: RoomAdministration;
  readonly budgets?: BudgetAdministration;
  readonly replicas?: ReplicaAsks;
  readonly history?: HistorySight;
  readonly trials?: PolicyTrials;
  readonly findings?: () => readonly AdminFinding[];
}
