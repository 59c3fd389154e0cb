import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import { problemRows } from "../../policy/problems/problem.js";
import type { PolicyReview } from "../../rpc/admin/admin-parts.js";
import { policyVersion } from "../config/policy-files.js";
import type { OpenPolicies } from "../policy/policies.js";
import { type ParsesPolicies, parsePolicyInWorker } from "../policy/policy-parsing.js";

interface PolicyReviewerParts {
  readonly policies: Pick<OpenPolicies, "feed" | "parse">;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  readonly clock: Clock;
}

/** Policies that may wait to be looked at; each takes a thread, and as much memory as it needs. */
export const reviewsWaitingMax = 4;

/** A policy that was read, with what it changes; or what is wrong with it. */
type Reviewed =
  | { readonly kind: "policy"; readonly policy: Policy; readonly changes: readonly string[] }
  | { readonly kind: "problems"; readonly review: PolicyReview };

/** Reads policies that somebody wants to activate, one after the other. */
export class PolicyReviewer {
  readonly #parts: PolicyReviewerParts;
  #reviewing: Promise<unknown> = Promise.resolve();
  #waitingCount = 0;

  constructor(parts: PolicyReviewerParts) {
    this.#parts = parts;
  }

  /**
   * Reads one, and compares it with the active policy.
   *
   * @throws ServiceError OVERLOADED where too many wait, INTERNAL where it could not be read at all
   */
  async review(files: readonly PolicyText[]): Promise<Reviewed> {
    if (this.#waitingCount >= reviewsWaitingMax) throw new ServiceError("OVERLOADED");
    this.#waitingCount += 1;
    const own = this.#reviewing.then(() => this.#reviewNow(files));
    this.#reviewing = own.catch(() => undefined);
    try {
      return await own;
    } finally {
      this.#waitingCount -= 1;
    }
  }

  async #reviewNow(files: readonly PolicyText[]): Promise<Reviewed> {
    const { policies, clock, parser = parsePolicyInWorker } = this.#parts;
    const parsing = await parser({
      input: { kind: "texts", sources: files },
      parse: policies.parse,
      version: policyVersion(files),
      clock,
    });
    if (parsing.kind === "failed") throw new ServiceError("INTERNAL", parsing.message);
    if (parsing.kind === "policy") {
      // Comparing takes much of what reads policies, which no start waits for.
      const { describeChanges } = await import("./policy-changes.js");
      const changes = describeChanges(policies.feed.current(), parsing.policy);
      return { kind: "policy", policy: parsing.policy, changes };
    }
    const problems = parsing.problems.map(({ id, file, line, column, message }) => {
      return { id, file, line, column, message, hint: problemRows[id].remedy };
    });
    const { unreportedCount } = parsing;
    return { kind: "problems", review: { problems, unreportedCount, changes: [] } };
  }
}
