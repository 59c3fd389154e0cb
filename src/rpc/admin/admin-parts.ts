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
 * What the services of the admin port are made of, beside what the house has anyway: plain data in,
 * plain data out. Who is absent is answered UNIMPLEMENTED for.
 */

/** Live keys, in the store. */
export type KeyInspection = Pick<KeyInspector, "get" | "reset" | "leavesCarriedLimits">;

/** What this replica has seen of keys: frequent ones, and those near their limits. */
export type KeySightings = Pick<DecisionSampler, "top" | "near">;

/** Decisions as they are made. */
export type TailSource = Pick<DecisionSampler, "follow">;

/** The other replicas that share the store. */
export interface ReplicaAsks extends Pick<ReplicaQuestions, "put"> {
  /** Live ones, this one included. */
  readonly liveCount: () => number;
}

/** What this replica hands out of quotas. */
export type QuotaSight = Pick<QuotaRegistry, "view">;

/** Waiting rooms, and what operators do with them. */
export interface RoomAdministration {
  readonly controls: RoomControls;
  /** Visitors a second who joined in the last ten seconds, at all replicas. */
  readonly arrivalsPerSecond: (room: string) => number;
}

/** A policy that is, or was, active. */
export interface PolicyVersion {
  readonly version: string;
  /** Undefined where nobody has noted it. */
  readonly appliedEpochMs: number | undefined;
  readonly author: string;
  readonly reason: string;
  /** Empty where only lists are asked for, or nobody has kept them. */
  readonly files: readonly PolicyText[];
  readonly source: "files" | "xds" | "admin";
}

/** A policy, looked at. */
export interface PolicyReview extends FoundProblems {
  /** What it changes in the active policy, in words; nothing where there are problems. */
  readonly changes: readonly string[];
}

/** What came of a change of the policy. */
export type PolicyChangeOutcome =
  | {
      readonly kind: "changed";
      /** What is active, or the shadow policy, now; undefined: nothing was put anywhere. */
      readonly policy: PolicyVersion | undefined;
      readonly changes: readonly string[];
    }
  | ParseProblems
  /** @property version what there is */
  | { readonly kind: "conflict"; readonly version: string }
  /** There is no such version. @property versions those that there are */
  | { readonly kind: "unknown"; readonly versions: readonly string[] }
  /** Not here, or not now. @property why a sentence for people */
  | { readonly kind: "refused"; readonly why: string };

/** Who changes something, why, and over what. */
export interface ChangeRequest {
  readonly actor: AuditActor;
  readonly reason: string;
}

/** The policy's own administration. Every change writes its audit entry. */
export interface PolicyAdministration {
  /** The active one, with its texts where they are known; undefined: none. */
  current(): PolicyVersion | undefined;
  /** The shadow policy. */
  shadow(): PolicyVersion | undefined;
  /** A version that was active, with its texts. */
  find(version: string): PolicyVersion | undefined;
  /** The newest first, without texts; at most 50. */
  history(): readonly PolicyVersion[];
  /** @throws ServiceError INTERNAL where parsing itself failed */
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
   * @param request with the version of the shadow policy that is meant; empty: whichever runs
   * @throws ServiceError STORE_ codes
   */
  enforce(
    request: ChangeRequest & { readonly expectedVersion: string; readonly shadowVersion: string },
  ): Promise<PolicyChangeOutcome>;
  /**
   * @param version undefined: the one before, or the end of the shadow policy
   * @throws ServiceError STORE_ codes
   */
  rollBack(
    version: string | undefined,
    request: ChangeRequest & { readonly expectedVersion: string },
  ): Promise<PolicyChangeOutcome>;
  /** Undefined: there is no shadow policy. */
  shadowReport(): ShadowReport | undefined;
}

/** What the shadow policy would have decided otherwise. */
export interface ShadowReport {
  readonly policyVersion: string;
  readonly shadowVersion: string;
  readonly sinceEpochMs: number;
  /** Calls that were compared, and those that were left out: they came too fast for it. */
  readonly callCount: number;
  readonly unseenCount?: number;
  readonly rules: readonly ShadowRule[];
}

/** The same, of one rule. */
export interface ShadowRule {
  readonly domain: string;
  readonly label: string;
  readonly newlyDeniedCount: number;
  readonly newlyAllowedCount: number;
  readonly sameCount: number;
  /** Buckets that began with what those of the active policy had in use, and those without. */
  readonly beganLiveCount: number;
  readonly beganEmptyCount: number;
}

/** Where a service's gate opens and closes. */
export interface GateThresholds {
  readonly service: string;
  readonly openBelowRatio: number;
  readonly closeAboveRatio: number;
  /** Whether these are not the policy's own. */
  readonly isOverridden: boolean;
  /** Of the record; 0: there is none. */
  readonly version: number;
}

/** What came of a change of thresholds. */
export type GateChange =
  | { readonly kind: "changed"; readonly thresholds: GateThresholds }
  | { readonly kind: "conflict"; readonly version: number }
  /** @property why a sentence for people */
  | { readonly kind: "refused"; readonly why: string };

/** Thresholds of gates, kept by all replicas. Every change writes its audit entry. */
export interface GateAdministration {
  /** Those services that have a gate. */
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
  /** Since it was heard of last; undefined: it talks to another replica. */
  readonly ageMs: number | undefined;
}

/** A service as the fleet, and this replica, see it. */
export interface ServiceState {
  readonly name: string;
  readonly law: string;
  /** For the fleet; undefined: none. */
  readonly concurrencyLimit: number | undefined;
  readonly inFlight: number;
  readonly rttMs: number | undefined;
  readonly minRttMs: number | undefined;
  readonly gradient: number | undefined;
  readonly gate: "open" | "limiting" | "closed" | undefined;
  readonly waitingCount: number;
  /** By this replica's admission, since it started. */
  readonly admittedCount: number;
  readonly refusedCount: number;
  /** The same of the last ten seconds. */
  readonly recentAdmittedCount: number;
  readonly recentRefusedCount: number;
  /** Requests that Envoys' breakers refuse, over the fleet. */
  readonly overflowPerSecond: number;
  /** The part of the limit that Envoys keep for their priority HIGH. */
  readonly reservedHigh: number;
  readonly shares: readonly NodeShareView[];
  readonly signals: readonly SignalView[];
}

/** What is read of a load signal. */
export interface SignalView {
  /** A name of the policy's, `other`, or empty: the whole service. */
  readonly key: string;
  readonly source: string;
  /** Undefined: none that holds. */
  readonly reading: number | undefined;
  /** Since the source answered, or since it is asked. */
  readonly ageMs: number;
  /** Whether the policy's `whenMissing` holds. */
  readonly isMissing: boolean;
  /** A code; undefined: its last answer was good. */
  readonly failure: string | undefined;
}

/** Replicas, and what they have decided together. */
interface FleetState {
  readonly replica: string;
  readonly isLeading: boolean;
  readonly leader: string | undefined;
  readonly term: number;
  readonly replicaCount: number;
  readonly store: string;
  /** Of this replica; empty: there are none. */
  readonly region: string;
  /** What it has borrowed from the others. */
  readonly regions: readonly RegionLending[];
  /** Whether the store is being left alone. */
  readonly isDegraded: boolean;
}

/** What is known of the fleet. */
export interface FleetView {
  fleet(): FleetState;
  services(isAsked: (service: ServicePolicy) => boolean): readonly ServiceState[];
}

/** What is kept of a service: its levels, and requests by class. */
export type ServiceColumn =
  | (typeof serviceLevels)[number]
  | `${"admitted" | "refused"} ${Priority}`;

/** What is kept of a rule. */
export type RuleColumn = "hits" | "overLimit";

/** What is asked of the history here. */
export interface HistoryAsk {
  /** Only steps that end after this time. */
  readonly sinceEpochMs: number;
  /** Undefined: the latest minute of each. */
  readonly service: string | undefined;
  readonly rules: readonly { readonly domain: string; readonly label: string }[];
  /** Undefined: no waiting room. */
  readonly room: string | undefined;
  /** Domains whose calls are counted; undefined: all, and those of none. */
  readonly domains: readonly string[] | undefined;
  readonly isServiceAsked: (service: ServicePolicy) => boolean;
}

/** What happened here lately. */
export interface HistoryPart {
  readonly replica: SeriesPart<HistoryColumn>;
  readonly services: readonly (SeriesPart<ServiceColumn> & { readonly name: string })[];
  readonly rules: readonly (SeriesPart<RuleColumn> & HistoryAsk["rules"][number])[];
  readonly rooms: readonly (SeriesPart<RoomColumn> & { readonly name: string })[];
}

/** What this replica keeps of the last minutes. */
export interface HistorySight {
  read(ask: HistoryAsk): HistoryPart;
}

/** How a policy's tests ended. */
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

/** A text, and how often it came. */
interface CountedText {
  readonly text: string;
  readonly count: number;
}

/** What one policy makes of an access log. */
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
  /** As many of each; undefined: there was no call. */
  readonly times:
    | {
        readonly startUs: number;
        readonly stepUs: number;
        readonly calls: readonly number[];
        readonly denied: readonly number[];
      }
    | undefined;
}

/** What policies make of an access log. */
export interface LogReplay {
  readonly kind: "replayed";
  readonly lineCount: number;
  readonly unreadableCount: number;
  /** A sentence; undefined: there is none. */
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

/** What access logs are written in. */
export const replayFormats = ["auto", "envoy", "json", "csv"] as const;

/** Policies that are tried without anything being changed, off the event loop. */
export interface PolicyTrials {
  /**
   * @param files empty: the active policy
   * @throws ServiceError OVERLOADED where too many wait, INTERNAL where it could not be done
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

/** What one look at one thing came to. */
export interface AdminFinding {
  readonly kind: "finding" | "pass" | "unseen";
  readonly id: string;
  readonly severity: "error" | "warning" | undefined;
  readonly seen: string;
  readonly title: string;
  readonly remedy: string;
}
