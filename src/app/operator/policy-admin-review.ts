import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import { policyVersion } from "../config/policy-files.js";
import type { OpenPolicies } from "../policy/policies.js";
import { type ParsesPolicies, parsePolicyInWorker } from "../policy/policy-parsing.js";

interface PolicyReviewerParts {
  readonly policies: Pick<OpenPolicies, "feed" | "parse">;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  readonly clock: Clock;
}

/** The maximum number of policies that wait for review; each one takes a thread and its memory. */
export const reviewsWaitingMax = 4;

/** A parsed policy with its changes, or its problems. */
type Reviewed =
  | { readonly kind: "policy"; readonly policy: Policy; readonly changes: readonly string[] }
  | ParseProblems;

/** Parses policies that an operator wants to activate, one after the other. */
export class PolicyReviewer {
  readonly #parts: PolicyReviewerParts;
  #reviewing: Promise<unknown> = Promise.resolve();
  #waitingCount = 0;

  constructor(parts: PolicyReviewerParts) {
    this.#parts = parts;
  }

  /**
   * Parses a policy and compares it with the active one.
   *
   * @throws ServiceError OVERLOADED if too many are waiting, INTERNAL if parsing itself failed
   */
  async review(files: readonly PolicyText[]): Promise<Reviewed> {
    if (this.#waitingCount >= reviewsWaitingMax) {
      throw new ServiceError(
        "OVERLOADED",
        `${reviewsWaitingMax} policies are already waiting for review; try again later`,
      );
    }
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
      // Comparing loads much of the code that parses policies, which the start does not wait for.
      const { describeChanges } = await import("./policy-changes.js");
      const changes = describeChanges(policies.feed.current(), parsing.policy);
      return { kind: "policy", policy: parsing.policy, changes };
    }
    return parsing;
  }
}
