import { parentPort, workerData } from "node:worker_threads";
import { parsePolicy } from "../policy/parse.js";
import { readRateLimitConfigs } from "../rpc/rate-limit-config.js";
import { chunkRulesMax, type WorkerInput, type WorkerMessage } from "./policy-worker-messages.js";

/**
 * Runs in a worker thread: parses a policy and hands its rules over in chunks, each when asked for,
 * so that copying them never holds the event loop that decides.
 */
const input = workerData as WorkerInput;
const texts = input.kind === "texts" ? input : readRateLimitConfigs(input.resources);
const parsed = texts.kind === "texts" ? parsePolicy(texts.sources) : texts;
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
