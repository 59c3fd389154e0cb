import { isScalar } from "yaml";
import { any, number, readBy, whole, words } from "../text/form.js";
import { field, inner, innerOrOff, object, type ReadBlock } from "../text/object.js";
import { positivePercentBounds } from "../text/quantities.js";

/** Maximum threshold: Envoy stores it in 32 bits. */
export const thresholdMax = 4_294_967_295;

/** From 1: at 0 a breaker admits nothing, and nothing could ever close it. */
export const thresholdBounds = { min: 1, max: thresholdMax } as const;

/** Bounds of retries, which may be 0. */
export const retryBounds = { min: 0, max: thresholdMax } as const;

/** The word for this proxy's share of the concurrency limit. */
const autoWord = "auto";

const maxRequests = readBy<number | "auto">(
  any(words(autoWord), whole(thresholdBounds)),
  (reader, place) => {
    if (isNumber(reader.contentOf(place))) return reader.readWhole(place, thresholdBounds);
    const expected = `auto, or a whole number, 1 to ${thresholdMax}`;
    return reader.readChoice(place, [autoWord] as const, {
      id: "HG133",
      what: "a choice here",
      expected,
    });
  },
);

function isNumber(content: unknown): boolean {
  return isScalar(content) && typeof content.value === "number";
}

/**
 * Envoy counts retries among active requests, so a ratio p of those is p / (1 - p) of first
 * attempts: with a sixth, attempts are at most 1.2 times the requests. Envoy's own 20 % allow 1.25.
 */
const retryPercentDefault = 16.6;

const retryBudget = object(
  { title: "a retryBudget", docs: "The maximum ratio of retries to active requests." },
  {
    percent: field(
      number(positivePercentBounds),
      "Percent of active requests, retries included: with 16.6, attempts are at most 1.2 times " +
        "the requests.",
      { larger: "looser", default: retryPercentDefault },
    ),
    minRetries: field(
      whole(retryBounds),
      "Retries that are always allowed, whatever the percentage.",
      { larger: "looser", as: "retriesMin", default: 3 },
    ),
  },
);

const perEndpoint = object(
  { title: "a perEndpoint", docs: "Limits of one proxy for each host of a service." },
  {
    maxConnections: field(whole(thresholdBounds), "Connections. Default: no limit for each host.", {
      larger: "looser",
      as: "hostConnectionsMax",
    }),
  },
);

const retriesMaxDefault = 3;

/** `circuitBreakers`. */
export const circuitBreakers = object(
  {
    title: "circuitBreakers",
    docs: "Envoy's circuit breakers: limits of one proxy for the service.",
  },
  {
    maxConnections: field(whole(thresholdBounds), "Connections.", {
      larger: "looser",
      as: "connectionsMax",
      default: 1_000,
    }),
    maxPendingRequests: field(whole(thresholdBounds), "Requests that wait for a connection.", {
      larger: "looser",
      as: "pendingRequestsMax",
      default: 100,
    }),
    maxRequests: field(
      maxRequests,
      "Active requests. `auto` is this proxy's share of the service's limit as " +
        "Headgate drives it, or the whole limit if every request has a permit.",
      { larger: "looser", as: "requestsMax", default: autoWord },
    ),
    maxRetries: field(whole(retryBounds), "Active retries, instead of a retry budget.", {
      larger: "looser",
      as: "retriesMax",
      dependentDefault: retriesMaxDefault,
    }),
    retryBudget: field(innerOrOff(retryBudget), "The maximum ratio of retries to active requests."),
    perEndpoint: field(inner(perEndpoint), "Limits of one proxy for each host of the service."),
  },
  {
    // Envoy ignores `max_retries` if there is a budget, so setting it means no budget.
    data: ({ retriesMax, retryBudget: budget, perEndpoint: host, ...rest }) => ({
      ...rest,
      retriesMax: retriesMax ?? retriesMaxDefault,
      retryBudget:
        budget === "off"
          ? undefined
          : (budget ?? (retriesMax === undefined ? retryBudget.defaults : undefined)),
      hostConnectionsMax: host?.hostConnectionsMax,
    }),
    check(block, _, { retryBudget: budget }) {
      if (block.field("maxRetries") === undefined || budget === undefined) return;
      if (budget !== "off") block.refusePair("maxRetries", "retryBudget");
    },
  },
);

/** Thresholds of Envoy's circuit breakers. Source: envoy.config.cluster.v3.CircuitBreakers. */
export type CircuitBreakerPolicy = typeof circuitBreakers.defaults;

/** Maximum ratio of retries to active requests. */
export type RetryBudgetSettings = typeof retryBudget.defaults;

/** Refuses an explicit `auto` if the service has no limit to share. */
export function refuseIdleAuto({ block }: ReadBlock<CircuitBreakerPolicy>): void {
  const written = block.field("maxRequests");
  if (written === undefined || isNumber(block.reader.contentOf(written))) return;
  const message = '"auto" needs a limit of the service, which has none';
  const expected = "admission or concurrency next to it";
  block.report("maxRequests", { id: "HG207", message, expected });
}
