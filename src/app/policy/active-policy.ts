import type { Clock } from "../../core/base/clock.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { Policy } from "../../policy/policy.js";
import { emptyPolicySize, measurePolicy, type PolicySize } from "../../policy/policy-size.js";
import { formatProblems, problemRows, visibleText } from "../../policy/problems/problem.js";
import type { FoundProblems } from "../../policy/problems/problem-log.js";
import type { LogEvent, Logger } from "../base/logger.js";
import type { PolicyParsing } from "./policy-parsing.js";

/** What is known of the policy, for readiness and metrics. */
export interface PolicyStatus extends PolicySize {
  readonly version?: string;
  /** When the active policy was loaded, in microseconds since 1970. */
  readonly loadedEpochUs?: number;
  /** Why the newest policy is not active; absent when it is. */
  readonly lastProblem?: string;
  readonly loadedCount: number;
  readonly refusedCount: number;
  /** Absent where policies are files. */
  readonly controlPlane?: {
    readonly isConnected: boolean;
    /** Why there is no connection: one of a closed set of words. */
    readonly lastFailure?: string;
  };
}

/** A policy that was refused. */
export interface PolicyRefusal {
  readonly kind: "refused";
  readonly cause: "unreadable" | "invalid";
  /** Everything that is wrong, with excerpts: for the log and for a terminal. */
  readonly report: string;
  /** One line without the policy's text: for whoever may see readiness. */
  readonly summary: string;
}

/** What became of a new policy. */
export type PolicyUpdate = { readonly kind: "loaded"; readonly policy: Policy } | PolicyRefusal;

/** Where a policy comes from, and what is known of it. */
export interface PolicyFeed extends PolicySource {
  readonly status: PolicyStatus;
  /** Calls back after every policy that takes force, until the answer is called. */
  onLoaded(listener: () => void): () => void;
}

/**
 * The active policy: swapped whole by a good one, kept when the next one is wrong. One owner, the
 * source of policies, changes it.
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
   * Takes over what was parsed, or keeps what is there.
   *
   * @param facts what the log says of a new policy beside its version and size
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

  /** The newest policy is the active one, again. */
  confirm(): void {
    this.#lastProblem = undefined;
  }

  /** Keeps what is there. */
  refuse(refusal: Omit<PolicyRefusal, "kind">): PolicyRefusal {
    this.#lastProblem = refusal.summary;
    this.#refusedCount += 1;
    // While there is none, the caller knows whether it goes on and how to say so.
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

/** Warnings of one policy that the log describes; it counts the others. */
const loggedWarningsMax = 10;

/** Where the first problem is and what kind it is, and how many there are; none of the text. */
function summarize(found: FoundProblems): string {
  const [first] = found.problems;
  if (first === undefined) return "the policy is invalid";
  const { file, line, column, id } = first;
  const more = found.problems.length + found.unreportedCount - 1;
  const rest = more === 0 ? "" : ` (and ${more} more)`;
  return `${visibleText(file)}:${line}:${column}: ${id} ${problemRows[id].title}${rest}`;
}
