import type { Rule } from "../core/limits/limit.js";
import type { PlainMap } from "../generate/base/plain-tree.js";
import type { DeprecatedField } from "../generate/check/deprecated-fields.js";
import type { BudgetPolicy } from "../policy/budgets/budget-policy.js";
import type { Policy } from "../policy/policy.js";
import type { QuotaPolicy } from "../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { RoomPolicy } from "../policy/waiting-rooms/room-policy.js";
import { type DoctorProblemId, doctorProblemIds } from "./doctor-problems.js";
import type { EnvoyDump } from "./envoy-dump.js";
import type { EnvoyStats } from "./envoy-stats.js";
import type { HeadgateView } from "./headgate-view.js";

/** Result of one check. */
export type Diagnostic =
  | {
      readonly kind: "finding";
      readonly id: DoctorProblemId;
      readonly severity: "error" | "warning";
      /** What was found, with its numbers; one line, without a full stop. */
      readonly seen: string;
      /** What to write or run, possibly in several lines; undefined: the row's remedy. */
      readonly todo?: string;
    }
  | { readonly kind: "pass"; readonly id: DoctorProblemId; readonly seen: string }
  /** It could not be checked; `seen` says what for. */
  | { readonly kind: "unseen"; readonly id: DoctorProblemId; readonly seen: string };

/** The part of a policy that is compared. */
export interface DoctorPolicy {
  readonly version: string;
  readonly domains: ReadonlySet<string>;
  readonly rules: readonly Rule[];
  readonly services: readonly ServicePolicy[];
  readonly quotas: readonly QuotaPolicy[];
  readonly waitingRooms: readonly RoomPolicy[];
  readonly budgets: readonly BudgetPolicy[];
}

/** Returns the part of a policy that is compared. */
export function doctorPolicyOf(policy: Policy): DoctorPolicy {
  const { version, rules, domains, services, quotas, waitingRooms, budgets } = policy;
  return {
    version,
    rules,
    services,
    quotas,
    waitingRooms,
    budgets,
    domains: new Set(domains.keys()),
  };
}

/** How far a clock is ahead of this machine's clock, and the error of that value. */
export interface ClockReading {
  readonly aheadMs: number;
  readonly errorMs: number;
}

/** All inputs. An input that could not be read is undefined, which the report mentions. */
export interface DoctorInput {
  readonly dump: EnvoyDump;
  /** Deprecated fields in it, according to Envoy's API; undefined: not checked. */
  readonly deprecated: readonly DeprecatedField[] | undefined;
  /** At one or more times, oldest first; empty: unknown. */
  readonly stats: readonly EnvoyStats[];
  /** Response of /runtime. */
  readonly runtime: PlainMap | undefined;
  /** Such as `1.40.0`. */
  readonly envoyVersion: string | undefined;
  readonly policy: DoctorPolicy | undefined;
  readonly headgate: HeadgateView | undefined;
  /** Why Headgate could not be called although it was requested. */
  readonly headgateFailure: string | undefined;
  readonly clocks: { readonly envoy?: ClockReading; readonly headgate?: ClockReading };
  /** Envoy's time when it responded, in milliseconds since 1970. */
  readonly envoyNowMs: number | undefined;
  /** Version of this program. */
  readonly ownVersion: string;
  /** Cluster that leads to Headgate, if the user specifies it. */
  readonly cluster: string | undefined;
}

/** Checks one area. */
export type DoctorCheck = (input: DoctorInput) => readonly Diagnostic[];

/** Maximum number of findings of one id in a report. The last one says how many more there are. */
export const findingsMax = 10;

/** Sorts errors first, then by the order of the table. */
export function rankDiagnostics(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const rank = new Map(doctorProblemIds.map((id, index) => [id, index]));
  const group = (look: Diagnostic): number => {
    if (look.kind === "finding") return look.severity === "error" ? 0 : 1;
    return look.kind === "pass" ? 2 : 3;
  };
  return diagnostics.toSorted(
    (a, b) => group(a) - group(b) || (rank.get(a.id) ?? 0) - (rank.get(b.id) ?? 0),
  );
}

/** Returns at most `findingsMax` findings of one id, or a passed check if there are none. */
export function findingsOr(
  findings: readonly Diagnostic[],
  right: { readonly id: DoctorProblemId; readonly seen: string },
): readonly Diagnostic[] {
  if (findings.length === 0) return [{ kind: "pass", ...right }];
  const more = findings.length - findingsMax;
  if (more <= 0) return findings;
  const rest: Diagnostic = {
    kind: "finding",
    id: right.id,
    severity: "warning",
    seen: `and ${more} more like this`,
  };
  return [...findings.slice(0, findingsMax), rest];
}
