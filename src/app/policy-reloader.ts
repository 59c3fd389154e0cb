import type { Clock } from "../core/clock.js";
import type { PolicySource } from "../decide/policy-source.js";
import type { Policy } from "../policy/policy.js";
import { formatProblems, type Problem, problemRows, visibleText } from "../policy/problem.js";
import type { Logger } from "./logger.js";
import { PathWatcher } from "./path-watcher.js";
import { readPolicyFiles } from "./policy-files.js";
import { parsePolicyInWorker } from "./policy-parsing.js";

/** What a `PolicyReloader` is made of. */
export interface PolicyReloaderParts {
  /** A policy file, or a directory of them. */
  readonly path: string;
  /** Further directories whose changes count. */
  readonly watchedDirectories: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How a look at the policy's files ended. */
export type PolicyLook =
  | { readonly kind: "unchanged" }
  | { readonly kind: "loaded"; readonly policy: Policy }
  | {
      readonly kind: "refused";
      readonly cause: "unreadable" | "invalid";
      /** Everything that is wrong, with excerpts: for the log and for a terminal. */
      readonly report: string;
      /** One line without the policy's text: for whoever may see readiness. */
      readonly summary: string;
    };

/** What is known of the policy, for readiness and metrics. */
export interface PolicyStatus {
  readonly version?: string;
  readonly ruleCount: number;
  readonly domainCount: number;
  /** When the policy in force was loaded, in microseconds since 1970. */
  readonly loadedEpochUs?: number;
  /** Why the newest files are not in force; absent when they are. */
  readonly lastProblem?: string;
  readonly loadedCount: number;
  readonly refusedCount: number;
}

/**
 * Keeps the policy in force: loads it, watches its files and swaps it whole. Files that are wrong
 * change nothing but the log, a counter and the status, until good ones come.
 */
export class PolicyReloader implements PolicySource {
  readonly #parts: PolicyReloaderParts;
  #policy: Policy | undefined;
  #loadedEpochUs: number | undefined;
  #lastProblem: string | undefined;
  #loadedCount = 0;
  #refusedCount = 0;
  /** What the last look found, so that the same is neither parsed nor reported again. */
  #seen: string | undefined;
  #look: Promise<PolicyLook> | undefined;
  #isLookWanted = false;
  #watcher: PathWatcher | undefined;

  constructor(parts: PolicyReloaderParts) {
    this.#parts = parts;
  }

  current(): Policy | undefined {
    return this.#policy;
  }

  get status(): PolicyStatus {
    return {
      ...(this.#policy === undefined ? {} : { version: this.#policy.version }),
      ruleCount: this.#policy?.rules.length ?? 0,
      domainCount: this.#policy?.domains.size ?? 0,
      ...(this.#loadedEpochUs === undefined ? {} : { loadedEpochUs: this.#loadedEpochUs }),
      ...(this.#lastProblem === undefined ? {} : { lastProblem: this.#lastProblem }),
      loadedCount: this.#loadedCount,
      refusedCount: this.#refusedCount,
    };
  }

  /** Looks at the files now. Looks never overlap: one that is wanted meanwhile follows. */
  async look(): Promise<PolicyLook> {
    this.#look ??= this.#lookOnce().finally(() => {
      this.#look = undefined;
      if (this.#isLookWanted) this.#wantLook();
    });
    return this.#look;
  }

  /** Looks again whenever the files may have changed, until `close`. */
  watch(): void {
    const { path, watchedDirectories, clock } = this.#parts;
    const onChange = (): void => this.#wantLook();
    this.#watcher ??= new PathWatcher({ path, directories: watchedDirectories, clock, onChange });
  }

  /** Ends watching; a look under way still ends by itself. */
  close(): void {
    this.#watcher?.close();
  }

  #wantLook(): void {
    if (this.#look !== undefined) {
      this.#isLookWanted = true;
      return;
    }
    this.#isLookWanted = false;
    void this.look();
  }

  async #lookOnce(): Promise<PolicyLook> {
    const read = await readPolicyFiles(this.#parts.path);
    const seen = read.kind === "sources" ? read.version : read.message;
    if (seen === this.#seen) return { kind: "unchanged" };
    this.#seen = seen;
    if (read.kind === "unreadable") {
      const words = visibleText(read.message);
      return this.#refuse({ cause: "unreadable", report: words, summary: words });
    }
    const { clock } = this.#parts;
    const parsing = await parsePolicyInWorker({ ...read, clock });
    if (parsing.kind === "policy") return this.#swap(parsing.policy);
    if (parsing.kind === "failed") {
      const words = `${parsing.message}; it is tried again when the files change`;
      return this.#refuse({ cause: "invalid", report: words, summary: words });
    }
    const report = formatProblems(parsing);
    return this.#refuse({ cause: "invalid", report, summary: summarize(parsing) });
  }

  #swap(policy: Policy): PolicyLook {
    this.#policy = policy;
    this.#loadedEpochUs = this.#parts.clock.epochUs();
    this.#lastProblem = undefined;
    this.#loadedCount += 1;
    const { version, rules, domains } = policy;
    this.#parts.logger.info(
      { event: "policyLoaded", version, domainCount: domains.size, ruleCount: rules.length },
      "The policy is in force.",
    );
    return { kind: "loaded", policy };
  }

  #refuse(refusal: Omit<Extract<PolicyLook, { kind: "refused" }>, "kind">): PolicyLook {
    this.#lastProblem = refusal.summary;
    this.#refusedCount += 1;
    // At start the caller reports it, and there is no older policy to keep.
    if (this.#policy !== undefined) {
      const { version } = this.#policy;
      this.#parts.logger.error(
        { event: "policyRefused", cause: refusal.cause, keptVersion: version },
        `The new policy is refused, and the old one stays in force:\n${refusal.report}`,
      );
    }
    return { kind: "refused", ...refusal };
  }
}

/** Where the first problem is and what kind it is, and how many there are; none of the text. */
function summarize(found: {
  readonly problems: readonly Problem[];
  readonly unreportedCount: number;
}): string {
  const [first] = found.problems;
  if (first === undefined) return "the policy is invalid";
  const { file, line, column, id } = first;
  const more = found.problems.length + found.unreportedCount - 1;
  const rest = more === 0 ? "" : ` (and ${more} more)`;
  return `${visibleText(file)}:${line}:${column}: ${id} ${problemRows[id].title}${rest}`;
}
