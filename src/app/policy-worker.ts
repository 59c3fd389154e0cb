import { parentPort, workerData } from "node:worker_threads";
import { parsePolicy } from "../policy/parse.js";
import { readRateLimitConfigs } from "../rpc/rate-limit-config.js";
import { chunkRulesMax, type WorkerInput, type WorkerMessage } from "./policy-worker-messages.js";

/**
 * Runs in a worker thread: parses a policy and hands its rules over in chunks, each when asked for,
 * so that copying them never holds the event loop that decides.
 */
const { policy, options } = workerData as WorkerInput;
const texts = policy.kind === "texts" ? policy : readRateLimitConfigs(policy.resources);
const parsed = texts.kind === "texts" ? parsePolicy(texts.sources, options) : texts;
if (parsed.kind !== "policy") {
  send(parsed);
} else {
  const { domains, rules } = parsed;
  let sentCount = 0;
  parentPort?.on("message", () => {
    send({ kind: "rules", rules: rules.slice(sentCount, sentCount + chunkRulesMax) });
    sentCount += chunkRulesMax;
  });
  send({ kind: "parsed", domains, ruleCount: rules.length });
}

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
