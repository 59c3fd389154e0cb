import { parentPort, workerData } from "node:worker_threads";
import { parsePolicy } from "../policy/parse.js";
import { chunkRulesMax, type WorkerInput, type WorkerMessage } from "./policy-worker-messages.js";

/**
 * Runs in a worker thread: parses a policy and hands its rules over in chunks, each when asked for,
 * so that copying them never holds the event loop that decides.
 */
const { sources } = workerData as WorkerInput;
const parsed = parsePolicy(sources);
if (parsed.kind === "problems") {
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
