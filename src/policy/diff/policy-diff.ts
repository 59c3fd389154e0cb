import type { PriceTable } from "../../core/budgets/price.js";
import type { Rule } from "../../core/limits/limit.js";
import type { BudgetPolicy } from "../budgets/budget-policy.js";
import { type ProxyPolicy, proxies } from "../proxies/proxies.js";
import type { QuotaPart } from "../quotas/quota-parts.js";
import { type ExpiredQuota, type QuotaPolicy, quota as quotaForm } from "../quotas/quota-policy.js";
import { service as serviceForm } from "../services/service-form.js";
import type { ServicePolicy } from "../services/service-policy.js";
import { formatDuration } from "../text/duration.js";
import type { ChangeEffect } from "../text/form.js";
import type { RoomPolicy } from "../waiting-rooms/room-policy.js";
import { compareBudgets } from "./budget-changes.js";
import { type FieldChange, fieldChanges } from "./field-changes.js";
import { compareDomains, compareRules } from "./limit-changes.js";
import { changeEffects, generateAnew, type PolicyChange } from "./policy-change.js";
import { compareRooms } from "./room-changes.js";

/** The parts of a policy that are compared. */
export interface ComparedPolicy {
  readonly domains: readonly string[];
  readonly rules: readonly Rule[];
  readonly services: readonly ServicePolicy[];
  readonly quotas: readonly QuotaPolicy[];
  readonly waitingRooms: readonly RoomPolicy[];
  readonly budgets: readonly BudgetPolicy[];
  readonly prices: PriceTable | undefined;
  readonly proxies: ProxyPolicy;
}

/**
 * Returns the changes from one policy to another, limit by limit and field by field. Stricter
 * changes come first; equal effects are in the order of the policy. Empty: the policies mean the
 * same, however they are written.
 */
export function comparePolicies(
  before: ComparedPolicy,
  after: ComparedPolicy,
): readonly PolicyChange[] {
  const changes = [
    ...compareDomains(before.domains, after.domains),
    ...compareRules(before.rules, after.rules),
    ...compareServices(before.services, after.services),
    ...compareQuotas(before.quotas, after.quotas),
    ...compareRooms(before.waitingRooms, after.waitingRooms),
    ...compareBudgets(before, after),
    ...compareProxies(before.proxies, after.proxies),
  ];
  return changeEffects.flatMap((effect) => changes.filter((one) => one.effect === effect));
}

/** Formats a change as one sentence. */
export function changeSentence({ place, words }: Pick<PolicyChange, "place" | "words">): string {
  return `${place}: ${words}`;
}

/** Returns the changes of services, field by field. Services are matched by name. */
function compareServices(
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
  const words = "the service is removed: its requests pass, and Envoys get no limit for it";
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
      ? "a new service, which only Envoy protects"
      : `a new service, with ${blocks.join(", ")}`;
  const effect = admission === undefined ? "different" : "stricter";
  return { effect, place: placeOf(service), words };
}

function changedService(before: ServicePolicy, after: ServicePolicy): readonly PolicyChange[] {
  const place = placeOf(after);
  return fieldChanges({ before, after, form: serviceForm, isGenerated: false }).map((change) => ({
    effect: dryRunEffect(change) ?? change.effect,
    place,
    words: `${change.words}${change.isGenerated ? generateAnew : ""}`,
  }));
}

/** Returns the effect of a new dry run: a block that leaves it refuses from now on. */
function dryRunEffect({ name, was, is }: FieldChange): ChangeEffect | undefined {
  const isDryRun = name === "admission.dryRun" && was instanceof Set && is instanceof Set;
  if (!isDryRun) return undefined;
  return [...was].some((block) => !is.has(block)) ? "stricter" : "looser";
}

/** Returns the changes of settings for all proxies. */
function compareProxies(before: ProxyPolicy, after: ProxyPolicy): readonly PolicyChange[] {
  const changes = fieldChanges({ before, after, form: proxies, isGenerated: true });
  return changes.map(({ effect, words }) => ({
    effect,
    place: "proxies",
    words: `${words}${generateAnew}`,
  }));
}

/**
 * Returns the changes of quotas, field by field. Quotas are matched by name. A quota's own rate is
 * a limit of its domain, and is compared as one.
 */
function compareQuotas(
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

function quotaPlace({ name }: QuotaPolicy): string {
  return `quota ${name}`;
}

function goneQuota(quota: QuotaPolicy): PolicyChange {
  const words = "the quota goes: Envoys that still have it are no longer told anything";
  return { effect: "different", place: quotaPlace(quota), words: `${words}${generateAnew}` };
}

function newQuota(quota: QuotaPolicy): PolicyChange {
  const { domain, bucket, services } = quota;
  const keys = bucket.map(({ key }) => key).join(", ");
  const whose = services === undefined ? "all services" : services.join(", ");
  const words = `a new quota of ${domain}, by [${keys}], for ${whose}${generateAnew}`;
  return { effect: "stricter", place: quotaPlace(quota), words };
}

function changedQuota(before: QuotaPolicy, after: QuotaPolicy): readonly PolicyChange[] {
  const place = quotaPlace(after);
  const pair = { before: reportedOf(before), after: reportedOf(after) };
  return fieldChanges({ ...pair, form: quotaForm, isGenerated: true }).map((change) => ({
    effect: effectOf(change),
    place,
    words: `${change.words}${isGenerated(change) ? generateAnew : ""}`,
  }));
}

/** Returns a quota for the report, with its lists as texts. */
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

/** Adding or removing a class changes the configuration; changing a weight does not. */
function isGenerated(change: FieldChange): boolean {
  return change.isGenerated || change.was === undefined || change.is === undefined;
}

function effectOf({ name, is, effect }: FieldChange): ChangeEffect {
  if (name === "beforeAssignment") return is === "deny" ? "stricter" : "looser";
  return effect;
}
