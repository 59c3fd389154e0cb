import type { Clock } from "../../core/base/clock.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { Policy } from "../../policy/policy.js";
import { emptyPolicySize, measurePolicy, type PolicySize } from "../../policy/policy-size.js";
import { formatProblems, problemRows, visibleText } from "../../policy/problems/problem.js";
import type { FoundProblems } from "../../policy/problems/problem-log.js";
import type { LogEvent, Logger } from "../base/logger.js";
import type { PolicyParsing } from "./policy-parsing.js";

/** State of the policy, for readiness and metrics. */
export interface PolicyStatus extends PolicySize {
  readonly version?: string;
  /** Time at which the active policy was loaded, in microseconds since 1970. */
  readonly loadedEpochUs?: number;
  /** Reason why the newest policy is not active. Absent if it is. */
  readonly lastProblem?: string;
  readonly loadedCount: number;
  readonly refusedCount: number;
  /** Absent if policies are files. */
  readonly controlPlane?: {
    readonly isConnected: boolean;
    /** Reason why there is no connection, from a closed set of words. */
    readonly lastFailure?: string;
  };
}

/** A policy that was refused. */
export interface PolicyRefusal {
  readonly kind: "refused";
  readonly cause: "unreadable" | "invalid";
  /** All problems, with excerpts: for the log and for a terminal. */
  readonly report: string;
  /** One line without the policy's text: for everyone who may see readiness. */
  readonly summary: string;
}

/** Result of a new policy. */
export type PolicyUpdate = { readonly kind: "loaded"; readonly policy: Policy } | PolicyRefusal;

/** Source of a policy, and its state. */
export interface PolicyFeed extends PolicySource {
  readonly status: PolicyStatus;
  /** Calls back after every policy that becomes active, until the returned function is called. */
  onLoaded(listener: () => void): () => void;
}

/**
 * The active policy. A valid policy replaces it as a whole; an invalid one does not change it. Only
 * its owner, the source of policies, changes it.
 */
export class ActivePolicy implements PolicyFeed {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  #policy: Policy | undefined;
  #size = emptyPolicySize;
  #loadedEpochUs: number | undefined;
  #lastProblem: string | undefined;
  #loadedCount = 0;
  #refusedCount = 0;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  current(): Policy | undefined {
    return this.#policy;
  }

  get status(): PolicyStatus {
    return {
      ...(this.#policy === undefined ? {} : { version: this.#policy.version }),
      ...this.#size,
      ...(this.#loadedEpochUs === undefined ? {} : { loadedEpochUs: this.#loadedEpochUs }),
      ...(this.#lastProblem === undefined ? {} : { lastProblem: this.#lastProblem }),
      loadedCount: this.#loadedCount,
      refusedCount: this.#refusedCount,
    };
  }

  onLoaded(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Activates a parsed policy, or keeps the active one.
   *
   * @param facts of a new policy that are logged beside its version and size
   */
  take(parsing: PolicyParsing, facts: Omit<LogEvent, "event"> = {}): PolicyUpdate {
    if (parsing.kind === "policy") return this.#swap(parsing, facts);
    if (parsing.kind === "failed") {
      const when = parsing.isPassing === true ? "soon" : "when the policy changes";
      const words = `${parsing.message}; retry ${when}`;
      return this.refuse({ cause: "invalid", report: words, summary: words });
    }
    const report = formatProblems(parsing);
    return this.refuse({ cause: "invalid", report, summary: summarize(parsing) });
  }

  /** Notes that the newest policy is the active one again. */
  confirm(): void {
    this.#lastProblem = undefined;
  }

  /** Keeps the active policy. */
  refuse(refusal: Omit<PolicyRefusal, "kind">): PolicyRefusal {
    this.#lastProblem = refusal.summary;
    this.#refusedCount += 1;
    // While there is no policy, the caller decides whether to continue, and what to report.
    if (this.#policy !== undefined) {
      const { version } = this.#policy;
      this.#logger.error(
        { event: "policyRefused", cause: refusal.cause, keptVersion: version },
        `The new policy is invalid; the old one stays active:\n${refusal.report}`,
      );
    }
    return { kind: "refused", ...refusal };
  }

  #swap({ policy, warnings }: ReadPolicy, facts: Omit<LogEvent, "event">): PolicyUpdate {
    this.#policy = policy;
    this.#loadedEpochUs = this.#clock.epochUs();
    this.#lastProblem = undefined;
    this.#loadedCount += 1;
    const { version } = policy;
    this.#size = measurePolicy(policy);
    this.#logger.info(
      { event: "policyLoaded", version, ...this.#size, ...facts },
      "The policy is active.",
    );
    this.#warn(warnings);
    for (const listener of this.#listeners) listener();
    return { kind: "loaded", policy };
  }

  #warn({ problems, unreportedCount }: FoundProblems): void {
    for (const { file, line, column, id, message } of problems.slice(0, loggedWarningsMax)) {
      const place = `${visibleText(file)}:${line}:${column}`;
      this.#logger.warn({ event: "policyNotice", problem: id }, `${place}: ${id} ${message}.`);
    }
    const restCount = problems.length + unreportedCount - loggedWarningsMax;
    if (restCount <= 0) return;
    const sentence = `${restCount} more warnings in the policy; \`headgate check\` shows them.`;
    this.#logger.warn({ event: "policyNotice" }, sentence);
  }
}

type ReadPolicy = Extract<PolicyParsing, { kind: "policy" }>;

/** Maximum number of warnings of one policy that the log describes. Others are only counted. */
const loggedWarningsMax = 10;

/** Returns place and kind of the first problem, and the number of problems. No policy text. */
function summarize(found: FoundProblems): string {
  const [first] = found.problems;
  if (first === undefined) return "the policy is invalid";
  const { file, line, column, id } = first;
  const more = found.problems.length + found.unreportedCount - 1;
  const rest = more === 0 ? "" : ` (and ${more} more)`;
  return `${visibleText(file)}:${line}:${column}: ${id} ${problemRows[id].title}${rest}`;
}
