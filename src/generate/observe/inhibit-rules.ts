import type { AlertName } from "./alert-words.js";

/** An alert that causes others, which give no new information while it is raised. */
interface Inhibition {
  readonly cause: AlertName;
  readonly effects: readonly AlertName[];
  /** Labels that must be equal. Empty if the cause has no such labels. */
  readonly equal: readonly string[];
}

/** A rule in the format of Alertmanager's configuration. */
export interface InhibitRule {
  readonly source_matchers: readonly [string];
  readonly target_matchers: readonly [string];
  readonly equal?: readonly string[];
}

const sameJob = ["namespace", "job"];

const inhibitions: readonly Inhibition[] = [
  {
    // It applies to a whole Prometheus, and Envoys are scraped as separate jobs.
    cause: "HeadgateAbsent",
    effects: ["HeadgateReplicasMissing", "EnvoyRateLimitFails", "EnvoyAdmissionFails"],
    equal: [],
  },
  {
    cause: "HeadgateStoreAway",
    effects: [
      "HeadgateStoreFailing",
      "HeadgateFailOpen",
      "HeadgateFailClosed",
      "HeadgateCountingAlone",
      "HeadgateRequestsFail",
      "HeadgateNoLeader",
      "HeadgateFleetSnapshotStale",
      "HeadgateQuotaLeasesLost",
      "HeadgateRateLimitSkipped",
      "HeadgateWaitingRoomStoreAway",
      "HeadgateWaitingRoomStuck",
      "HeadgateBudgetStoreAway",
      "HeadgateSettlementsLate",
    ],
    equal: sameJob,
  },
  {
    cause: "HeadgateOverloaded",
    effects: [
      "HeadgateEventLoopLate",
      "HeadgateDecisionsSlow",
      "HeadgateFailOpen",
      "HeadgateFailClosed",
      "HeadgateCountingAlone",
      "HeadgateRequestsFail",
    ],
    equal: sameJob,
  },
  { cause: "HeadgateNoLeader", effects: ["HeadgateFleetSnapshotStale"], equal: sameJob },
  {
    cause: "HeadgateCertificateExpired",
    effects: ["HeadgateCertificateExpires"],
    equal: sameJob,
  },
  { cause: "HeadgatePolicyRefused", effects: ["HeadgatePoliciesDiffer"], equal: sameJob },
];

/**
 * Returns rules that suppress alerts while their cause is raised.
 *
 * Source: Alertmanager, "Inhibition".
 */
export function inhibitRules(names: readonly AlertName[]): readonly InhibitRule[] {
  return inhibitions.flatMap(({ cause, effects, equal }) => {
    const own = effects.filter((name) => names.includes(name));
    if (!names.includes(cause) || own.length === 0) return [];
    return [
      {
        source_matchers: [`alertname = ${cause}`],
        target_matchers: [`alertname =~ "${own.join("|")}"`],
        ...(equal.length === 0 ? {} : { equal }),
      },
    ];
  });
}
