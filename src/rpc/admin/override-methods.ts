import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { auditEntry, reasonCharsMax } from "../../core/base/audit-entry.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { hitsMax, type Rule } from "../../core/limits/limit.js";
import { multiplierMax, type Override, type OverrideEffect } from "../../core/limits/override.js";
import {
  overrideFromJson,
  overrideRecordId,
  overrideToJson,
} from "../../fleet/records/override-record.js";
import type {
  LimitService,
  Override as OverrideMessage,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { recordBytesMax, type SharedRecord } from "../../store/coordination/record-store.js";
import { actorOf, askedDomains, demandRole, visibleAmong } from "./call.js";
import { AdminFailure, notFound } from "./failures.js";
import { demandDomain, policyOf, readRuleLabel } from "./key-methods.js";
import { encodeOverride } from "./messages.js";
import { checkOverride, concernsRule } from "./override-checks.js";
import { nextOf, pageRule, pageToken, readPageToken } from "./pages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

const reasonRule = { charsMax: reasonCharsMax, isNeeded: true } as const;

/** The methods for overrides. */
export function overrideMethods(
  parts: AdminServiceParts,
): Pick<ServiceImpl<typeof LimitService>, "setOverride" | "deleteOverride" | "listOverrides"> {
  return {
    setOverride: setMethod(parts),
    deleteOverride: deleteMethod(parts),
    listOverrides: listMethod(parts),
  };
}

function setMethod(parts: AdminServiceParts): ServiceImpl<typeof LimitService>["setOverride"] {
  return async (request, context) => {
    const reader = new RequestReader();
    const wanted = readOverride(parts, request.override, reader);
    const expectedVersion = reader.version("expected_version", request.expectedVersion);
    reader.end();
    demandRole(context, "operator", wanted.domain);
    const recordId = overrideRecordId(wanted, parts.digest);
    const known = parts.records.list("override").get(recordId);
    checkOverride(parts, wanted, context);
    const override = { ...wanted, author: actorOf(context).name };
    const value = overrideToJson(override);
    if (Buffer.byteLength(JSON.stringify(value)) > recordBytesMax.override) {
      throw new AdminFailure("invalid", "override: it is too long");
    }
    const outcome = await parts.records.change({
      kind: "override",
      id: recordId,
      value,
      expectedVersion,
      audit: auditEntry({
        actor: actorOf(context),
        action: "SetOverride",
        subject: override.id,
        domain: override.domain,
        before: known?.value,
        after: value,
        reason: override.reason,
        replica: parts.replica,
      }),
    });
    const version = versionOf(outcome, "override");
    return { override: encodeOverride(override, version) };
  };
}

function deleteMethod(
  parts: AdminServiceParts,
): ServiceImpl<typeof LimitService>["deleteOverride"] {
  return async (request, context) => {
    const reader = new RequestReader();
    const needed = { ...keyNameBounds, isNeeded: true };
    const id = reader.text("id", request.id, needed);
    const domain = reader.text("domain", request.domain, needed);
    const expectedVersion = reader.version("expected_version", request.expectedVersion);
    const reason = reader.text("reason", request.reason, reasonRule);
    reader.end();
    demandRole(context, "operator", domain);
    const records = parts.records.list("override");
    const recordId = overrideRecordId({ domain, id }, parts.digest);
    const known = records.get(recordId);
    if (known === undefined) throw notFound("override", id, idsOf(records.values(), domain));
    const outcome = await parts.records.change({
      kind: "override",
      id: recordId,
      value: undefined,
      expectedVersion,
      audit: auditEntry({
        actor: actorOf(context),
        action: "DeleteOverride",
        subject: id,
        domain,
        before: known.value,
        after: undefined,
        reason,
        replica: parts.replica,
      }),
    });
    versionOf(outcome, "override");
    return {};
  };
}

/** Maximum number of overrides that are searched for a name to suggest. */
export const suggestedIdsMax = 1_000;

/** Returns names that may be suggested: the first ones, because more would delay decisions. */
function* idsOf(records: Iterable<SharedRecord>, wanted: string): Iterable<string> {
  let leftCount = suggestedIdsMax;
  for (const { value } of records) {
    if (leftCount <= 0) return;
    leftCount -= 1;
    const { id, domain } = value;
    if (domain === wanted && typeof id === "string") yield id;
  }
}

/** Returns the new version, or throws why nothing was changed. */
function versionOf(
  outcome: Awaited<ReturnType<AdminServiceParts["records"]["change"]>>,
  what: string,
): number {
  switch (outcome.kind) {
    case "changed":
      return outcome.version;
    case "conflict":
      throw conflict(what, outcome.version);
    case "full":
      throw new AdminFailure("exhausted", `the maximum number of the kind ${what} is reached`);
  }
}

/** Returns the failure if another caller was faster, or the object does not exist yet. */
export function conflict(what: string, version: number | string): AdminFailure {
  const now = version === 0 ? `there is no ${what} now` : `the ${what} has version ${version} now`;
  return new AdminFailure("conflict", `${now}: read it again, and expect that version`);
}

function readOverride(
  { clock, random }: Pick<AdminServiceParts, "clock" | "random">,
  message: OverrideMessage | undefined,
  reader: RequestReader,
): Override {
  if (message === undefined) throw new AdminFailure("invalid", "override: required");
  const id = message.id === "" ? `o-${random.id()}` : message.id;
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(id)) {
    reader.report("override.id", "must be 1 to 64 lower-case letters, digits and hyphens");
  }
  const needed = { ...keyNameBounds, isNeeded: true };
  const domain = reader.text("override.domain", message.domain, needed);
  const entries = reader.entries("override.entries", message.entries);
  const limitName = reader.text("override.limit_name", message.limitName, keyNameBounds);
  const effect = readEffect(message.effect, reader);
  const nowEpochMs = Math.floor(clock.epochUs() / 1_000);
  const expiresEpochMs = reader.epochMs("override.expires_at", message.expiresAt);
  if (expiresEpochMs !== undefined && expiresEpochMs <= nowEpochMs) {
    reader.report("override.expires_at", "it is in the past");
  }
  const reason = reader.text("override.reason", message.reason, reasonRule);
  return {
    id,
    domain,
    entries,
    isPrefix: message.isPrefix,
    ...(limitName === "" ? {} : { limitName }),
    effect,
    ...(expiresEpochMs === undefined ? {} : { expiresEpochMs }),
    reason,
    author: "",
    createdEpochMs: nowEpochMs,
  };
}

function readEffect(effect: OverrideMessage["effect"], reader: RequestReader): OverrideEffect {
  switch (effect.case) {
    case "isFrozen":
      if (!effect.value) reader.report("override.is_frozen", "must be true or absent");
      return { kind: "frozen" };
    case "multiplier": {
      const by = reader.part("override.multiplier", effect.value, { max: multiplierMax });
      return { kind: "multiplier", by };
    }
    case "amount": {
      const rule = { min: 0, max: hitsMax };
      const hits = reader.whole("override.amount.hits", effect.value.hits, rule);
      const burst = reader.whole("override.amount.burst", effect.value.burst, rule);
      return { kind: "amount", hits, burst: burst === 0 ? hits : burst };
    }
    default:
      reader.report("override", "set an amount, a multiplier or is_frozen");
      return { kind: "frozen" };
  }
}

/** Maximum number of overrides that one call reads: each delays decisions by microseconds. */
export const overridesScannedMax = 2_000;

/** Dependencies of lists of overrides. */
type ListParts = Pick<AdminServiceParts, "policies" | "records" | "overrides">;

/** Lists the requested overrides in the order of their ids. */
export function listMethod(parts: ListParts): ServiceImpl<typeof LimitService>["listOverrides"] {
  return (request, context) => {
    const reader = new RequestReader();
    const domain = reader.text("domain", request.domain, keyNameBounds);
    const countMax = reader.count("page_size", request.pageSize, pageRule);
    const beginsWith =
      request.beginsWith.length === 0 ? [] : reader.entries("begins_with", request.beginsWith);
    const label = readRuleLabel({ domain, ruleLabel: request.ruleLabel }, reader);
    reader.end();
    const domains = askedDomains(context, domain);
    if (domain !== "") demandKnown(parts, domain, context);
    const after = readPageToken(request.pageToken);
    const rule = label === undefined ? undefined : ruleOf(parts, { domain, label }, context);
    const wanted = { domains, beginsWith, rule, isFrozenOnly: request.frozenOnly };
    const page = readPage(parts, wanted, { after, countMax });
    const nextPageToken = page.next === undefined ? "" : pageToken(page.next);
    return { overrides: page.overrides, nextPageToken };
  };
}

/** Returns the rule with a name. Throws if there is none. */
function ruleOf(
  parts: ListParts,
  { domain, label }: { readonly domain: string; readonly label: string },
  context: HandlerContext,
): Rule | undefined {
  const policy = policyOf(parts);
  demandDomain(policy, { domain, label }, context);
  return policy.rules.find((rule) => rule.domain === domain && rule.label === label);
}

/** Checks that a domain is in the policy, or still has overrides from when it was. */
function demandKnown(
  { policies, overrides }: ListParts,
  domain: string,
  context: HandlerContext,
): void {
  const domains = policies.current()?.domains;
  if (domains === undefined || domains.has(domain) || overrides.current().concerns(domain)) return;
  throw notFound("domain", domain, visibleAmong(context, domains.keys()));
}

/** The overrides that are requested. */
interface Wanted {
  readonly domains: readonly string[] | undefined;
  readonly beginsWith: readonly DescriptorEntry[];
  readonly rule: Rule | undefined;
  readonly isFrozenOnly: boolean;
}

function readPage(
  parts: ListParts,
  wanted: Wanted,
  { after, countMax }: { readonly after: string | undefined; readonly countMax: number },
) {
  const records = parts.records.list("override");
  const { domains } = wanted;
  const isWanted = wantedOnes(parts, wanted);
  const scannedMax = isWanted === undefined ? countMax : overridesScannedMax;
  // A page token is an id, so it must be one that the caller may see.
  const all = domains === undefined ? records.keys() : parts.overrides.current().idsOf(domains);
  const ids = nextOf(all, after, scannedMax + 1);
  const overrides: ReturnType<typeof encodeOverride>[] = [];
  for (const [i, id] of ids.entries()) {
    // There is at least one more, which was not checked.
    if (i === scannedMax || overrides.length === countMax) return { overrides, next: ids[i - 1] };
    const record = records.get(id);
    const override = record && overrideFromJson(record.value);
    if (record === undefined || override === undefined) continue;
    if (isWanted?.(override) ?? true) overrides.push(encodeOverride(override, record.version));
  }
  return { overrides, next: undefined };
}

/** Returns a filter. Undefined: all overrides of the requested domains. */
function wantedOnes(
  parts: ListParts,
  { beginsWith, rule, isFrozenOnly }: Wanted,
): ((override: Override) => boolean) | undefined {
  if (rule === undefined && beginsWith.length === 0 && !isFrozenOnly) return undefined;
  const policy = rule && policyOf(parts);
  return (override) =>
    (!isFrozenOnly || override.effect.kind === "frozen") &&
    beginsSo(override.entries, beginsWith) &&
    (rule === undefined || policy === undefined || concernsRule(policy, rule, override));
}

function beginsSo(
  entries: readonly DescriptorEntry[],
  beginning: readonly DescriptorEntry[],
): boolean {
  return beginning.every(
    ({ key, value }, i) => entries[i]?.key === key && entries[i]?.value === value,
  );
}
