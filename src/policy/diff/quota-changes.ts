import type { ExpiredQuota, QuotaPart, QuotaPolicy } from "../quotas/quota-policy.js";
import { quota as form } from "../quotas/quotas.js";
import { formatDuration } from "../text/duration.js";
import { type FieldChange, fieldChanges } from "./field-changes.js";
import type { ChangeEffect, PolicyChange } from "./policy-change.js";

/**
 * What changes of quotas, field by field; they are the same where their names are. A rate of a
 * quota's own is a limit of its domain, and is compared as one.
 */
export function compareQuotas(
  before: readonly QuotaPolicy[],
  after: readonly QuotaPolicy[],
): readonly PolicyChange[] {
  const young = new Map(after.map((quota) => [quota.name, quota]));
  const old = new Set(before.map(({ name }) => name));
  return [
    ...before.flatMap((quota) => {
      const now = young.get(quota.name);
      return now === undefined ? [goneQuota(quota)] : changedQuota(quota, now);
    }),
    ...after.filter(({ name }) => !old.has(name)).map(newQuota),
  ];
}

const anew = "; regenerate the proxies' configuration";

function placeOf({ name }: QuotaPolicy): string {
  return `quota ${name}`;
}

function goneQuota(quota: QuotaPolicy): PolicyChange {
  const words = `the quota is removed: Envoys that still have it get no more assignments${anew}`;
  return { effect: "different", place: placeOf(quota), words };
}

function newQuota(quota: QuotaPolicy): PolicyChange {
  const { domain, bucket, services } = quota;
  const keys = bucket.map(({ key }) => key).join(", ");
  const whose = services === undefined ? "all services" : services.join(", ");
  const words = `a new quota of ${domain}, by [${keys}], for ${whose}${anew}`;
  return { effect: "stricter", place: placeOf(quota), words };
}

function changedQuota(before: QuotaPolicy, after: QuotaPolicy): readonly PolicyChange[] {
  const place = placeOf(after);
  const pair = { before: toldOf(before), after: toldOf(after) };
  return fieldChanges({ ...pair, form }).map((change) => ({
    effect: effectOf(change),
    place,
    words: `${change.words}${isHeadgates(change) ? "" : anew}`,
  }));
}

/** A quota as it is told: its lists as texts. */
function toldOf({ bucket, afterExpiry, deny, match, ...rest }: QuotaPolicy): object {
  return {
    ...rest,
    match: match.length === 0 ? undefined : match.map((one) => JSON.stringify(one)),
    bucket: bucket.map(partWords),
    afterExpiry: expiryText(afterExpiry),
    deny: { ...deny, headers: deny.headers.map(({ name, value }) => `${name}: ${value}`) },
  };
}

function partWords(part: QuotaPart): string {
  const { key, fallback } = part;
  const rest = fallback === undefined ? "" : ` or ${fallback}`;
  switch (part.kind) {
    case "remoteAddress":
      return key;
    case "header":
      return `${key} = header ${part.header}${rest}`;
    case "query":
      return `${key} = query ${part.parameter}${rest}`;
    case "fixed":
      return `${key} = ${part.value}`;
  }
}

function expiryText({ forSeconds, fallback }: ExpiredQuota): string {
  const time = formatDuration(1_000 * forSeconds);
  if (fallback.kind === "blanket") return `${fallback.rule} for ${time}`;
  const { hits, periodSeconds, burst } = fallback.rate;
  return `${hits} in ${formatDuration(1_000 * periodSeconds)}, ${burst} at once, for ${time}`;
}

/** What Headgate goes by alone: Envoys learn it with their next assignment. */
function isHeadgates({ name, was, is }: FieldChange): boolean {
  if (name === "callsShare" || name === "ttl") return true;
  return name.startsWith("classes.weights.") && was !== undefined && is !== undefined;
}

function effectOf({ name, was, is }: FieldChange): ChangeEffect {
  if (name === "beforeAssignment") return is === "deny" ? "stricter" : "looser";
  if (name === "callsShare" && typeof was === "number" && typeof is === "number") {
    return is > was ? "stricter" : "looser";
  }
  // What is asked of a request: without it, more requests are in the quota.
  if (name === "services" || name === "match" || name === "when") {
    if (is === undefined) return "stricter";
    return was === undefined ? "looser" : "different";
  }
  return "different";
}
