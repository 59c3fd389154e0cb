import type { PolicyParsing, PolicyParsingOptions } from "../../src/app/policy/policy-parsing.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { PolicyBuilder } from "../../src/policy/policy.js";
import { readRateLimitConfigs } from "../../src/rpc/policy-xds/rate-limit-config.js";

/**
 * Parses a policy in this thread: to start one that loads TypeScript takes a second, which tests
 * with many policies have not. `policy-parsing.test.ts` is about the thread itself.
 */
export async function parseHere(options: PolicyParsingOptions): Promise<PolicyParsing> {
  const { input, parse, version } = options;
  const texts = input.kind === "texts" ? input : readRateLimitConfigs(input.resources);
  if (texts.kind === "unreadable") return { kind: "failed", message: texts.message };
  const parsed = parsePolicy(texts.sources, parse);
  if (parsed.kind === "problems") return parsed;
  const builder = new PolicyBuilder(version);
  builder.addDomains(parsed.domains);
  builder.setProxies(parsed.proxies);
  builder.setQuotas(parsed.quotas);
  builder.addWaitingRooms(parsed.waitingRooms);
  builder.addBudgets(parsed.budgets);
  builder.setPrices(parsed.prices);
  builder.addServices(parsed.services);
  builder.add(parsed.rules);
  const { warnings } = parsed;
  return { kind: "policy", policy: builder.finish(), warnings, chunkCount: 1 };
}
