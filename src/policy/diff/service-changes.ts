import { type ProxyPolicy, proxies } from "../proxies/proxies.js";
import type { ServicePolicy } from "../services/service-policy.js";
import { service as form } from "../services/services.js";
import { type FieldChange, fieldChanges } from "./field-changes.js";
import type { ChangeEffect, PolicyChange } from "./policy-change.js";

/** What changes of services, field by field; services are the same where their names are. */
export function compareServices(
  before: readonly ServicePolicy[],
  after: readonly ServicePolicy[],
): readonly PolicyChange[] {
  const young = new Map(after.map((service) => [service.name, service]));
  const old = new Set(before.map(({ name }) => name));
  return [
    ...before.flatMap((service) => {
      const now = young.get(service.name);
      return now === undefined ? [goneService(service)] : changedService(service, now);
    }),
    ...after.filter(({ name }) => !old.has(name)).map(newService),
  ];
}

function placeOf({ name }: ServicePolicy): string {
  return `service ${name}`;
}

function goneService(service: ServicePolicy): PolicyChange {
  const words = "the service goes: its requests pass, and Envoys get no limit for it";
  return { effect: "looser", place: placeOf(service), words };
}

function newService(service: ServicePolicy): PolicyChange {
  const { admission, concurrency, rateLimit } = service;
  const blocks = [
    ...(rateLimit === undefined ? [] : [`limits of ${rateLimit.domain}`]),
    ...(admission === undefined ? [] : ["admission"]),
    ...(concurrency === undefined ? [] : [`the law ${concurrency.settings.law}`]),
  ];
  const words =
    blocks.length === 0
      ? "a new service, with what Envoy holds alone"
      : `a new service, with ${blocks.join(", ")}`;
  const effect = admission === undefined ? "different" : "stricter";
  return { effect, place: placeOf(service), words };
}

function changedService(before: ServicePolicy, after: ServicePolicy): readonly PolicyChange[] {
  const place = placeOf(after);
  const changes = fieldChanges({ before, after, form });
  return changes.map((change) => ({
    effect: effectOf(change),
    place,
    words: `${change.words}${noteOf(change)}`,
  }));
}

/** What holds for all proxies. */
export function compareProxies(before: ProxyPolicy, after: ProxyPolicy): readonly PolicyChange[] {
  return fieldChanges({ before, after, form: proxies }).map((change) => ({
    effect: effectOf(change),
    place: "proxies",
    words: `${change.words}; generate the proxies' configuration anew`,
  }));
}

/** Fields whose smaller number refuses more. */
const roomFields = new RegExp(
  "(?:limits\\.(?:max|min|initial)|queue\\.size|requests|burst|numRetries|" +
    "max(?:InFlight|Requests|PendingRequests|Connections|Retries|Wait|Size))$",
  "i",
);

/** Blocks that refuse by being there. */
const guards = new RegExp(
  "^(?:admission(?:\\.(?:deadline|throttle|gate|estimatedWait|shedAt|load))?|rateLimit|" +
    "localRateLimit|adaptiveConcurrency|admissionControl|circuitBreakers|outlierDetection)$",
);

function effectOf({ name, was, is }: FieldChange): ChangeEffect {
  // What only counted refuses from now on, or the other way round.
  if (name === "admission.dryRun" && was instanceof Set && is instanceof Set) {
    return [...was].some((block) => !is.has(block)) ? "stricter" : "looser";
  }
  if (was === undefined || is === undefined) {
    if (!guards.test(name)) return "different";
    return was === undefined ? "stricter" : "looser";
  }
  if (!roomFields.test(name) || typeof was !== "number" || typeof is !== "number") {
    return "different";
  }
  return is < was ? "stricter" : "looser";
}

/** Blocks that only Envoy has: an edit of the policy alone does not bring them there. */
const envoyFields = new RegExp(
  "^(?:upstream|hosts|circuitBreakers|outlierDetection|healthChecks|" +
    "loadBalancing|retries|timeouts|upgrades|localRateLimit|" +
    "adaptiveConcurrency|admissionControl|direction|rateLimit)\\b",
);

function noteOf({ name }: FieldChange): string {
  return envoyFields.test(name) ? "; generate the proxies' configuration anew" : "";
}
