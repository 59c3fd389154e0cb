import { isScalar } from "yaml";
import type { Block } from "../text/block.js";
import { positivePercentBounds } from "../text/quantities.js";
import { defaultCircuitBreakers } from "./default-upstream.js";
import type { CircuitBreakerPolicy, RetryBudget } from "./upstream-policy.js";
import { circuitBreakersShape, perEndpointShape, retryBudgetShape } from "./upstream-shapes.js";

/** The largest threshold: what Envoy's 32 bits hold. */
export const thresholdMax = 4_294_967_295;

/** From one on: at 0 a breaker lets nothing pass, and nothing could ever close it. */
export const thresholdBounds = { min: 1, max: thresholdMax } as const;

/** Retries may be none. */
export const retryBounds = { min: 0, max: thresholdMax } as const;

/** The word for this proxy's part of the concurrency limit. */
export const autoWord = "auto";

/**
 * Reads `circuitBreakers` of a service; what is left out is as usual. `isLimited` tells whether
 * the service has a limit that `auto` could be a part of.
 */
export function readCircuitBreakers(service: Block, isLimited: boolean): CircuitBreakerPolicy {
  const block = service.block("circuitBreakers", circuitBreakersShape);
  if (block === undefined) return defaultCircuitBreakers;
  const usual = defaultCircuitBreakers;
  const retriesMax = block.whole("maxRetries", undefined, retryBounds);
  return {
    connectionsMax: block.whole("maxConnections", usual.connectionsMax, thresholdBounds),
    pendingRequestsMax: block.whole(
      "maxPendingRequests",
      usual.pendingRequestsMax,
      thresholdBounds,
    ),
    requestsMax: readRequestsMax(block, isLimited),
    retriesMax: retriesMax ?? usual.retriesMax,
    retryBudget: readRetryBudget(block),
    hostConnectionsMax: block
      .block("perEndpoint", perEndpointShape)
      ?.whole("maxConnections", undefined, thresholdBounds),
  };
}

function readRequestsMax(block: Block, isLimited: boolean): number | "auto" {
  const name = "maxRequests";
  const field = block.field(name);
  if (field === undefined) return autoWord;
  const content = block.reader.contentOf(field);
  if (isScalar(content) && typeof content.value === "number") {
    return block.whole(name, undefined, thresholdBounds) ?? autoWord;
  }
  const expected = `auto, or a whole number, 1 to ${thresholdMax}`;
  const word = block.choice(name, { usual: autoWord, words: [autoWord], expected });
  if (!isLimited) {
    const message = '"auto" is a part of the service\'s limit, and it has none';
    block.report(name, { id: "HG207", message, expected: "admission or concurrency beside it" });
  }
  return word;
}

/** Envoy does not look at `max_retries` where there is a budget: who names it wants no budget. */
function readRetryBudget(breakers: Block): RetryBudget | undefined {
  const block = breakers.blockOrOff("retryBudget", retryBudgetShape);
  if (block === "off") return undefined;
  const usual = defaultCircuitBreakers.retryBudget;
  const hasMax = breakers.field("maxRetries") !== undefined;
  if (block === undefined) return hasMax ? undefined : usual;
  if (hasMax) breakers.refusePair("maxRetries", "retryBudget");
  return {
    percent: block.number("percent", usual.percent, positivePercentBounds),
    retriesMin: block.whole("minRetries", usual.retriesMin, retryBounds),
  };
}
