import type { Priority } from "../../core/admission/priority.js";
import type { AuditActor } from "../../core/base/audit-entry.js";
import type {
  HistoryColumn,
  RoomColumn,
  serviceLevels,
} from "../../core/collections/history-columns.js";
import type { SeriesPart } from "../../core/collections/step-series.js";
import type { DecisionSampler } from "../../decide/inspect/decision-sampler.js";
import type { KeyInspector } from "../../decide/inspect/key-inspector.js";
import type { QuotaRegistry } from "../../decide/quota/quota-registry.js";
import type { RoomControls } from "../../decide/waiting-room/room-view.js";
import type { ReplicaQuestions } from "../../fleet/claims/replica-questions.js";
import type { RegionLending } from "../../fleet/regions/lender.js";
import type { PolicyText } from "../../policy/parse.js";
import type { FoundProblems, ParseProblems } from "../../policy/problems/problem-log.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";

/**
 * Dependencies of the admin port's services, besides those that exist anyway: plain data in, plain
 * data out. Calls that need an absent one fail with UNIMPLEMENTED.
 */

/** Reads and resets live keys in the store. */
export type KeyInspection = Pick<KeyInspector, "get" | "reset" | "leavesCarriedLimits">;

/** Keys that this replica has seen: frequent ones, and those near their limits. */
export type KeySightings = Pick<DecisionSampler, "top" | "near">;

/** A source of decisions as they are made. */
export type TailSource = Pick<DecisionSampler, "follow">;

/** The other replicas that share the store. */
export interface ReplicaAsks extends Pick<ReplicaQuestions, "put"> {
  /** Number of live replicas, including this one. */
  readonly liveCount: () => number;
}

/** The quotas that this replica assigns. */
export type QuotaSight = Pick<QuotaRegistry, "view">;

/** Waiting rooms, and the actions of operators on them. */
export interface RoomAdministration {
  readonly controls: RoomControls;
  /** Visitors per second who joined in the last ten seconds, at all replicas. */
  readonly arrivalsPerSecond: (room: string) => number;
}

/** A policy that is, or was, active. */
export interface PolicyVersion {
  readonly version: string;
  /** Undefined if it was not recorded. */
  readonly appliedEpochMs: number | undefined;
  readonly author: string;
  readonly reason: string;
  /** Empty in lists, and if the texts were not kept. */
  readonly files: readonly PolicyText[];
  readonly source: "files" | "xds" | "admin";
}

/** The result of a review of a policy. */
export interface PolicyReview extends FoundProblems {
  /** Its changes to the active policy, as texts. Empty if there are problems. */
  readonly changes: readonly string[];
}

/** The result of a change of the policy. */
export type PolicyChangeOutcome =
  | {
      readonly kind: "changed";
      /** The policy that is now active, or is the shadow policy. Undefined: none was applied. */
      readonly policy: PolicyVersion | undefined;
      readonly changes: readonly string[];
    }
  | ParseProblems
  /** @property version the current version */
  | { readonly kind: "conflict"; readonly version: string }
  /** There is no such version. @property versions those that exist */
  | { readonly kind: "unknown"; readonly versions: readonly string[] }
  /** Not possible here, or not now. @property why a sentence for people */
  | { readonly kind: "refused"; readonly why: string };

/** Who changes something, and why. */
export interface ChangeRequest {
  readonly actor: AuditActor;
  readonly reason: string;
}

/** The administration of the policy. Every change writes its audit entry. */
export interface PolicyAdministration {
  /** Returns the active policy, with its texts if they are known. Undefined: there is none. */
  current(): PolicyVersion | undefined;
  /** Returns the shadow policy. */
  shadow(): PolicyVersion | undefined;
  /** Returns a version that is, or was, active, with its texts. */
  find(version: string): PolicyVersion | undefined;
  /** Returns at most 50 versions, the newest first, without texts. */
  history(): readonly PolicyVersion[];
  /** @throws ServiceError INTERNAL if parsing itself failed */
  review(files: readonly PolicyText[]): Promise<PolicyReview>;
  /** @throws ServiceError STORE_ codes */
  apply(
    files: readonly PolicyText[],
    request: ChangeRequest & {
      readonly expectedVersion: string;
      readonly isShadow: boolean;
      readonly isDryRun: boolean;
    },
  ): Promise<PolicyChangeOutcome>;
  /**
   * @param request with the expected version of the shadow policy; empty: any
   * @throws ServiceError STORE_ codes
   */
  enforce(
    request: ChangeRequest & { readonly expectedVersion: string; readonly shadowVersion: string },
  ): Promise<PolicyChangeOutcome>;
  /**
   * @param version undefined: ends the shadow policy, or else returns to the previous version
   * @throws ServiceError STORE_ codes
   */
  rollBack(
    version: string | undefined,
    request: ChangeRequest & { readonly expectedVersion: string },
  ): Promise<PolicyChangeOutcome>;
  /** Returns the differences so far. Undefined: there is no shadow policy. */
  shadowReport(): ShadowReport | undefined;
}

/** The differences between the decisions of the shadow policy and of the active policy. */
export interface ShadowReport {
  readonly policyVersion: string;
  readonly shadowVersion: string;
  readonly sinceEpochMs: number;
  /** Calls that were compared, and calls that were not, because they came too fast. */
  readonly callCount: number;
  readonly unseenCount?: number;
  readonly rules: readonly ShadowRule[];
}

/** The same for one rule. */
export interface ShadowRule {
  readonly domain: string;
  readonly label: string;
  readonly newlyDeniedCount: number;
  readonly newlyAllowedCount: number;
  readonly sameCount: number;
  /** Buckets that began with the usage of the active policy's, and those that began empty. */
  readonly beganLiveCount: number;
  readonly beganEmptyCount: number;
}

/** The thresholds at which a service's gate opens and closes. */
export interface GateThresholds {
  readonly service: string;
  readonly openBelowRatio: number;
  readonly closeAboveRatio: number;
  /** Whether they override the policy's own. */
  readonly isOverridden: boolean;
  /** The version of the record; 0: there is none. */
  readonly version: number;
}

/** The result of a change of thresholds. */
export type GateChange =
  | { readonly kind: "changed"; readonly thresholds: GateThresholds }
  | { readonly kind: "conflict"; readonly version: number }
  /** @property why a sentence for people */
  | { readonly kind: "refused"; readonly why: string };

/** Thresholds of gates, shared by all replicas. Every change writes its audit entry. */
export interface GateAdministration {
  /** Returns the names of the services that have a gate. */
  services(isAsked: (service: ServicePolicy) => boolean): readonly string[];
  /** Undefined: no such service, or it has no gate. */
  get(service: string): GateThresholds | undefined;
  /**
   * @param ratios undefined: back to the policy's own
   * @throws ServiceError STORE_ codes
   */
  set(
    service: string,
    ratios: { readonly openBelowRatio: number; readonly closeAboveRatio: number } | undefined,
    request: ChangeRequest & { readonly expectedVersion: number },
  ): Promise<GateChange>;
}

/** One Envoy's part of a service's limit. */
export interface NodeShareView {
  readonly node: string;
  readonly share: number;
  readonly inFlight: number | undefined;
  readonly acknowledgedVersion: string | undefined;
  /** Time since its last message. Undefined: it is connected to another replica. */
  readonly ageMs: number | undefined;
}

/** The state of a service in the fleet, and at this replica. */
export interface ServiceState {
  readonly name: string;
  readonly law: string;
  /** The limit for the whole fleet. Undefined: none. */
  readonly concurrencyLimit: number | undefined;
  readonly inFlight: number;
  readonly rttMs: number | undefined;
  readonly minRttMs: number | undefined;
  readonly gradient: number | undefined;
  readonly gate: "open" | "limiting" | "closed" | undefined;
  readonly waitingCount: number;
  /** Requests that this replica has admitted and refused since it started. */
  readonly admittedCount: number;
  readonly refusedCount: number;
  /** The same for the last ten seconds. */
  readonly recentAdmittedCount: number;
  readonly recentRefusedCount: number;
  /** Requests that Envoys' breakers refuse, in the whole fleet. */
  readonly overflowPerSecond: number;
  /** The part of the limit that Envoys reserve for their priority HIGH. */
  readonly reservedHigh: number;
  readonly shares: readonly NodeShareView[];
  readonly signals: readonly SignalView[];
}

/** The state of a load signal. */
export interface SignalView {
  /** A name from the policy, or `other`. Empty: the whole service. */
  readonly key: string;
  readonly source: string;
  /** Undefined: there is no valid one. */
  readonly reading: number | undefined;
  /** Time since the last response of the source, or since it has been polled. */
  readonly ageMs: number;
  /** Whether the policy's `whenMissing` applies. */
  readonly isMissing: boolean;
  /** The error code of the last response. Undefined: it was good. */
  readonly failure: string | undefined;
}

/** The state of the replicas as a fleet. */
interface FleetState {
  readonly replica: string;
  readonly isLeading: boolean;
  readonly leader: string | undefined;
  readonly term: number;
  readonly replicaCount: number;
  readonly store: string;
  /** The region of this replica. Empty: there are no regions. */
  readonly region: string;
  /** What its region has borrowed from the others. */
  readonly regions: readonly RegionLending[];
  /** Whether the store is not called for now, because its circuit breaker is open. */
  readonly isDegraded: boolean;
}

/** The known state of the fleet. */
export interface FleetView {
  fleet(): FleetState;
  services(isAsked: (service: ServicePolicy) => boolean): readonly ServiceState[];
}

/** The history columns of a service: its levels, and requests by class. */
export type ServiceColumn =
  | (typeof serviceLevels)[number]
  | `${"admitted" | "refused"} ${Priority}`;

/** The history columns of a rule. */
export type RuleColumn = "hits" | "overLimit";

/** A query of this replica's history. */
export interface HistoryAsk {
  /** Only steps that end after this time. */
  readonly sinceEpochMs: number;
  /** Undefined: the last minute of each service. */
  readonly service: string | undefined;
  readonly rules: readonly { readonly domain: string; readonly label: string }[];
  /** Undefined: no waiting room. */
  readonly room: string | undefined;
  /** Domains whose calls are counted. Undefined: all calls, including those of no domain. */
  readonly domains: readonly string[] | undefined;
  readonly isServiceAsked: (service: ServicePolicy) => boolean;
}

/** The recent history of this replica. */
export interface HistoryPart {
  readonly replica: SeriesPart<HistoryColumn>;
  readonly services: readonly (SeriesPart<ServiceColumn> & { readonly name: string })[];
  readonly rules: readonly (SeriesPart<RuleColumn> & HistoryAsk["rules"][number])[];
  readonly rooms: readonly (SeriesPart<RoomColumn> & { readonly name: string })[];
}

/** This replica's history of the last minutes. */
export interface HistorySight {
  read(ask: HistoryAsk): HistoryPart;
}

/** The results of a policy's tests. */
export interface PolicyTestReport {
  readonly kind: "tested";
  readonly tests: readonly {
    readonly file: string;
    readonly name: string;
    readonly line: number;
    readonly callCount: number;
    readonly failures: readonly {
      readonly line: number;
      readonly message: string;
      readonly expected: string;
      readonly got: string;
    }[];
  }[];
  readonly untestedRules: readonly { readonly domain: string; readonly label: string }[];
}

/** A text, and how often it occurred. */
interface CountedText {
  readonly text: string;
  readonly count: number;
}

/** The results of one policy for an access log. */
export interface ReplayedPolicy {
  readonly policyVersion: string;
  readonly callCount: number;
  readonly unmatchedCount: number;
  readonly deniedCount: number;
  readonly limitedThenCount: number;
  readonly limitedBothCount: number;
  readonly lateCount: number;
  readonly unknownParts: readonly CountedText[];
  readonly unmatchedHosts: readonly CountedText[];
  /** Lists of the same length, one item per step. Undefined: there was no call. */
  readonly times:
    | {
        readonly startUs: number;
        readonly stepUs: number;
        readonly calls: readonly number[];
        readonly denied: readonly number[];
      }
    | undefined;
}

/** The results of the active policy, and of a candidate, for an access log. */
export interface LogReplay {
  readonly kind: "replayed";
  readonly lineCount: number;
  readonly unreadableCount: number;
  /** A sentence about the first unreadable line. Undefined: there is none. */
  readonly firstUnreadable: string | undefined;
  readonly active: ReplayedPolicy;
  readonly candidate: ReplayedPolicy | undefined;
  readonly newlyDeniedCount: number;
  readonly newlyAllowedCount: number;
  readonly rules: readonly {
    readonly domain: string;
    readonly label: string;
    readonly activeCallCount: number;
    readonly activeOverCount: number;
    readonly candidateCallCount: number;
    readonly candidateOverCount: number;
    readonly keys: readonly CountedText[];
  }[];
}

/** The formats of access logs. */
export const replayFormats = ["auto", "envoy", "json", "csv"] as const;

/** Tries policies without changing anything, off the event loop. */
export interface PolicyTrials {
  /**
   * @param files empty: the active policy
   * @throws ServiceError OVERLOADED if too many wait, INTERNAL if it could not be done
   */
  test(
    files: readonly PolicyText[],
    tests: readonly PolicyText[],
  ): Promise<PolicyTestReport | ParseProblems | "textless">;
  /**
   * @param files empty: only the active policy
   * @throws ServiceError as `test`
   */
  replay(
    files: readonly PolicyText[],
    log: { readonly text: Uint8Array; readonly format: (typeof replayFormats)[number] },
  ): Promise<LogReplay | ParseProblems | "textless">;
}

/** The result of one check. */
export interface AdminFinding {
  readonly kind: "finding" | "pass" | "unseen";
  readonly id: string;
  readonly severity: "error" | "warning" | undefined;
  readonly seen: string;
  readonly title: string;
  readonly remedy: string;
}
