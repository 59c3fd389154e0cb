import { parentPort, workerData } from "node:worker_threads";
import { parsePolicy } from "../../policy/parse.js";
import type {
  DiscoveredResource,
  RateLimitConfigTexts,
} from "../../rpc/policy-xds/rate-limit-config.js";
import { keepNewObjectsYoung, optimizeAsUsual, optimizeLater } from "../base/v8-flags.js";
import {
  chunkRulesMax,
  countChunkServices,
  type WorkerInput,
  type WorkerMessage,
} from "./policy-worker-messages.js";

/**
 * Runs in a worker thread: parses a policy and sends it in chunks, each when it is requested, so
 * that copying them never blocks the event loop that decides.
 */
// V8 flags affect the whole process. By now its modules are loaded, and nothing is decided yet.
optimizeLater();
keepNewObjectsYoung();
const { policy, options } = workerData as WorkerInput;
const texts = policy.kind === "texts" ? policy : await textsOf(policy.resources);
// A control plane chooses the names of its resources, so none of them is a page.
const parse = policy.kind === "texts" ? options : { ...options, onlyDialect: "ratelimit" as const };
const parsed = texts.kind === "texts" ? parsePolicy(texts.sources, parse) : texts;
optimizeAsUsual();
if (parsed.kind !== "policy") {
  send(parsed);
} else {
  const { domains, proxies, quotas, waitingRooms, budgets, prices, rules, services } = parsed;
  let sentRuleCount = 0;
  let sentServiceCount = 0;
  let sentRoomCount = 0;
  let sentBudgetCount = 0;
  parentPort?.on("message", () => {
    const room = waitingRooms[sentRoomCount];
    if (room !== undefined) {
      send({ kind: "waitingRoom", room });
      sentRoomCount += 1;
      return;
    }
    const budget = budgets[sentBudgetCount];
    if (budget !== undefined) {
      send({ kind: "budget", budget });
      sentBudgetCount += 1;
      return;
    }
    if (sentServiceCount < services.length) {
      const end = sentServiceCount + countChunkServices(services, sentServiceCount);
      send({ kind: "services", services: services.slice(sentServiceCount, end) });
      sentServiceCount = end;
      return;
    }
    send({ kind: "rules", rules: rules.slice(sentRuleCount, sentRuleCount + chunkRulesMax) });
    sentRuleCount += chunkRulesMax;
  });
  const counts = {
    ruleCount: rules.length,
    serviceCount: services.length,
    roomCount: waitingRooms.length,
    budgetCount: budgets.length,
  };
  const { warnings } = parsed;
  send({ kind: "parsed", domains, proxies, quotas, prices, warnings, ...counts });
}

/** Returns the texts. Files need no protobuf decoder, which takes a while to load. */
async function textsOf(resources: readonly DiscoveredResource[]): Promise<RateLimitConfigTexts> {
  const { readRateLimitConfigs } = await import("../../rpc/policy-xds/rate-limit-config.js");
  return readRateLimitConfigs(resources);
}

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
