import type { AlertName } from "./alert-words.js";

/** An alert that is the cause of others, which say nothing new while it is raised. */
interface Inhibition {
  readonly cause: AlertName;
  readonly effects: readonly AlertName[];
  /** Labels in which they agree; none where the cause has none to tell. */
  readonly equal: readonly string[];
}

/** As Alertmanager's configuration has it. */
export interface InhibitRule {
  readonly source_matchers: readonly [string];
  readonly target_matchers: readonly [string];
  readonly equal?: readonly string[];
}

const sameJob = ["namespace", "job"];

const inhibitions: readonly Inhibition[] = [
  {
    // It is about all of a Prometheus, and Envoys are scraped as jobs of their own.
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
 * What Alertmanager keeps quiet of these alerts, while the cause of it is told.
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
