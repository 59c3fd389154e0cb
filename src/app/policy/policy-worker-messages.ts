import type { PriceTable } from "../../core/budgets/price.js";
import type { Rule } from "../../core/limits/limit.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { ParseOptions, PolicyText } from "../../policy/parse.js";
import type { FoundProblems, ParseProblems } from "../../policy/problems/problem-log.js";
import type { ProxyPolicy } from "../../policy/proxies/proxies.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { DiscoveredResource } from "../../rpc/policy-xds/rate-limit-config.js";

/** The source of a policy: texts, or the messages of a control plane. */
export type PolicyInput =
  | { readonly kind: "texts"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "resources"; readonly resources: readonly DiscoveredResource[] };

/** Input of the worker. */
export interface WorkerInput {
  readonly policy: PolicyInput;
  readonly options: ParseOptions;
}

/** Messages of the worker: one result first, then one chunk for every `next` that it receives. */
export type WorkerMessage =
  | ParseProblems
  /** The messages cannot be converted to texts. */
  | { readonly kind: "unreadable"; readonly message: string }
  | {
      readonly kind: "parsed";
      readonly domains: readonly string[];
      readonly proxies: ProxyPolicy;
      readonly quotas: readonly QuotaPolicy[];
      readonly ruleCount: number;
      readonly serviceCount: number;
      readonly roomCount: number;
      readonly budgetCount: number;
      readonly prices: PriceTable | undefined;
      readonly warnings: FoundProblems;
    }
  /**
   * First the waiting rooms one by one, each with its page, then the budgets one by one, each with
   * its overrides, then the services, then the rules.
   */
  | { readonly kind: "waitingRoom"; readonly room: RoomPolicy }
  | { readonly kind: "budget"; readonly budget: BudgetPolicy }
  | { readonly kind: "services"; readonly services: readonly ServicePolicy[] }
  | { readonly kind: "rules"; readonly rules: readonly Rule[] };

/** Message to the worker that requests the next chunk. */
export const nextChunk = "next";

/** Maximum number of rules in a chunk: about a tenth of a millisecond of the event loop. */
export const chunkRulesMax = 256;

/** Maximum number of services in a chunk. */
export const chunkServicesMax = 32;

/**
 * Maximum number of conditions in a chunk, unless a single service has more. Each is compiled again
 * by the receiver, because a function cannot cross threads. About 2 ms of the event loop.
 */
export const chunkConditionsMax = 32;

/** Counts the services, from `start` on, that make up the next chunk. Returns at least one. */
export function countChunkServices(services: readonly ServicePolicy[], start: number): number {
  let conditionCount = 0;
  let count = 0;
  for (const { priority } of services.slice(start, start + chunkServicesMax)) {
    conditionCount += priority.rules.length;
    if (count > 0 && conditionCount > chunkConditionsMax) break;
    count += 1;
  }
  return count;
}
