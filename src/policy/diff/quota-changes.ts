import type { QuotaPart } from "../quotas/quota-parts.js";
import type { ExpiredQuota, QuotaPolicy } from "../quotas/quota-policy.js";
import { quota as form } from "../quotas/quota-policy.js";
import { formatDuration } from "../text/duration.js";
import type { ChangeEffect } from "../text/form.js";
import { type FieldChange, fieldChanges } from "./field-changes.js";
import { generateAnew, type PolicyChange } from "./policy-change.js";

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

function placeOf({ name }: QuotaPolicy): string {
  return `quota ${name}`;
}

function goneQuota(quota: QuotaPolicy): PolicyChange {
  const words = "the quota goes: Envoys that still have it are no longer told anything";
  return { effect: "different", place: placeOf(quota), words: `${words}${generateAnew}` };
}

function newQuota(quota: QuotaPolicy): PolicyChange {
  const { domain, bucket, services } = quota;
  const keys = bucket.map(({ key }) => key).join(", ");
  const whose = services === undefined ? "all services" : services.join(", ");
  const words = `a new quota of ${domain}, by [${keys}], for ${whose}${generateAnew}`;
  return { effect: "stricter", place: placeOf(quota), words };
}

function changedQuota(before: QuotaPolicy, after: QuotaPolicy): readonly PolicyChange[] {
  const place = placeOf(after);
  const pair = { before: reportedOf(before), after: reportedOf(after) };
  return fieldChanges({ ...pair, form, isGenerated: true }).map((change) => ({
    effect: effectOf(change),
    place,
    words: `${change.words}${isGenerated(change) ? generateAnew : ""}`,
  }));
}

/** A quota as it is told: its lists as texts. */
function reportedOf({ bucket, afterExpiry, deny, match, ...rest }: QuotaPolicy): object {
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

/** A class that comes or goes is in the configuration; how much it weighs is not. */
function isGenerated(change: FieldChange): boolean {
  return change.isGenerated || change.was === undefined || change.is === undefined;
}

function effectOf({ name, is, effect }: FieldChange): ChangeEffect {
  if (name === "beforeAssignment") return is === "deny" ? "stricter" : "looser";
  return effect;
}
