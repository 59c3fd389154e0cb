import type { Rule } from "../../gen/headgate/admin/v1/admin_pb.js";
import { ruleId } from "../data/history.js";
import { api } from "./api.js";
import { usePoll } from "./poll.js";

/** A rule of the active policy, with the counts of all replicas together. */
export interface FleetRule {
  readonly id: string;
  readonly rule: Rule;
  readonly hits: number;
  readonly over: number;
  readonly near: number;
}

/** The rules of the active policy. */
export interface FleetRules {
  readonly rules: readonly FleetRule[];
  readonly silentReplicas: number;
  readonly policyVersion: string;
}

/** A policy with more rules than this is polled less often. */
const manyRules = 1_000;

async function listAll(signal: AbortSignal): Promise<FleetRules> {
  const rules = new Map<string, FleetRule>();
  let silentReplicas = 0;
  let policyVersion = "";
  let pageToken = "";
  do {
    const page = await api.limits.listRules({ pageSize: 1_000, pageToken }, { signal });
    for (const rule of page.rules) {
      const id = ruleId(rule);
      const before = rules.get(id);
      rules.set(id, {
        id,
        rule: before?.rule ?? rule,
        hits: (before?.hits ?? 0) + Number(rule.counts?.hits ?? 0n),
        over: (before?.over ?? 0) + Number(rule.counts?.overLimitHits ?? 0n),
        near: (before?.near ?? 0) + Number(rule.counts?.nearLimitHits ?? 0n),
      });
    }
    silentReplicas = Math.max(silentReplicas, page.silentReplicas);
    ({ policyVersion } = page);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { rules: [...rules.values()], silentReplicas, policyVersion };
}

/** Returns all rules, at most some seconds old. */
export function useRules() {
  return usePoll(listAll, {
    everyMs: ({ rules }) => (rules.length > manyRules ? 15_000 : 2_000),
  });
}
