import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { many } from "../../core/base/many.js";
import type { Rule } from "../../core/limits/limit.js";
import type { RuleHistory } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { StepObservations } from "../../recommend/join-services.js";
import { subjectOf } from "../../recommend/proposal-words.js";
import type { NotEnoughData } from "../../recommend/recommendation.js";
import { isShared, namesCallers } from "../../recommend/rule-observer.js";
import { fleetWindowsMax } from "../../recommend/services/fleet-steps.js";
import { rounded } from "../../recommend/services/knee-words.js";
import { StepReader } from "../../recommend/step-reader.js";
import type { AdminClient } from "../admin/admin-client.js";

/** Maximum number of rules in one request; others are left out. */
const rulesMax = 200;

/** Length of the steps in which replicas count hits. All replicas start them at the same times. */
const stepMs = 10_000;

/** Collects the hits of rules in each step, summed over all replicas, each step once. */
export class RuleHistories {
  readonly #client: AdminClient;
  readonly #rules: readonly Rule[];
  readonly #leftOutCount: number;
  /** By rule, then by the end of the step. */
  readonly #hits = new Map<Rule, Map<number, number>>();
  /** End of the last step taken, by rule and replica. */
  readonly #taken = new Map<string, number>();
  #silentReplicas = 0;

  constructor(client: AdminClient, rules: readonly Rule[]) {
    this.#client = client;
    this.#rules = rules.slice(0, rulesMax);
    this.#leftOutCount = rules.length - this.#rules.length;
  }

  async poll(): Promise<void> {
    if (this.#rules.length === 0) return;
    const since = Math.min(...this.#taken.values());
    const { replicas, silentReplicas } = await this.#client.fleet.getHistory({
      rules: this.#rules.map(({ domain, label }) => ({ domain, label })),
      ...(Number.isFinite(since) ? { since: timestampFromMs(since) } : {}),
    });
    this.#silentReplicas = Math.max(this.#silentReplicas, silentReplicas);
    for (const rule of this.#rules) {
      for (const { replica, rules } of replicas) {
        const history = rules.find(({ domain, label }) => {
          return domain === rule.domain && label === rule.label;
        });
        if (history !== undefined) this.#take(rule, replica, history);
      }
    }
  }

  finish(): Pick<StepObservations, "rules" | "notEnough"> {
    const reader = new StepReader();
    const notes = ["These are minutes of a running fleet: peaks of a day or a week are missing."];
    if (this.#silentReplicas > 0) {
      notes.push(`${many(this.#silentReplicas, "replica")} did not answer in time.`);
    }
    const notEnough: NotEnoughData[] = [];
    for (const rule of this.#rules) {
      const steps = this.#hits.get(rule) ?? new Map<number, number>();
      if (!isShared(rule)) {
        const missing = unknownCallers(rule, Math.max(0, ...steps.values()));
        const subject = subjectOf({ domain: rule.domain, rule: rule.label });
        if (missing !== undefined) notEnough.push({ subject, missing: [missing] });
        continue;
      }
      reader.add(rule, { seconds: stepMs / 1_000, notes });
      for (const [endMs, hits] of [...steps].sort(([one], [other]) => one - other)) {
        reader.take(rule, { caller: "", startMs: endMs - stepMs, hits });
      }
    }
    if (this.#leftOutCount > 0) {
      const missing = [`only the first ${rulesMax} rules of the policy were observed`];
      notEnough.push({ subject: many(this.#leftOutCount, "further rule"), missing });
    }
    return { rules: reader.finish(), notEnough };
  }

  #take(rule: Rule, replica: string, { start, hits }: RuleHistory): void {
    if (start === undefined) return;
    const steps = this.#hits.get(rule) ?? new Map<number, number>();
    this.#hits.set(rule, steps);
    const id = `${rule.index} ${replica}`;
    const from = this.#taken.get(id) ?? Number.NEGATIVE_INFINITY;
    for (const [i, count] of hits.entries()) {
      const endMs = timestampMs(start) + i * stepMs;
      if (endMs <= from) continue;
      this.#taken.set(id, endMs);
      if (steps.size < fleetWindowsMax || steps.has(endMs)) {
        steps.set(endMs, (steps.get(endMs) ?? 0) + count);
      }
    }
  }
}

/** Returns why callers are unknown. Undefined: there were no requests. */
function unknownCallers(rule: Rule, most: number): string | undefined {
  if (namesCallers(rule)) {
    return "The fleet keeps no history of its callers; --prometheus has it";
  }
  if (most === 0) return undefined;
  return (
    `The fleet knows the hits of all callers together: ${rounded((1_000 * most) / stepMs)} per ` +
    "second at most. A limit for each caller needs an access log of some days"
  );
}
