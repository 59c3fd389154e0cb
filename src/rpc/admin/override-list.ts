import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { Rule } from "../../core/limits/limit.js";
import type { Override } from "../../core/limits/override.js";
import { overrideFromJson } from "../../fleet/records/override-record.js";
import type { LimitService } from "../../gen/headgate/admin/v1/admin_pb.js";
import { askedDomains, notFound, visibleAmong } from "./call.js";
import { demandDomain, keyNameBounds, policyOf, readRuleLabel } from "./key-methods.js";
import { encodeOverride } from "./messages.js";
import { concernsRule } from "./override-checks.js";
import { nextOf, pageRule, pageToken, readPageToken } from "./pages.js";
import { RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** Overrides that one call reads: each costs some microseconds, for which decisions wait. */
export const overridesScannedMax = 2_000;

/** What lists of overrides are made of. */
type ListParts = Pick<AdminServiceParts, "policies" | "records" | "overrides">;

/** Lists overrides by their ids, those that are asked for. */
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

/** The rule of a name, as there is one. */
function ruleOf(
  parts: ListParts,
  { domain, label }: { readonly domain: string; readonly label: string },
  context: HandlerContext,
): Rule | undefined {
  const policy = policyOf(parts);
  demandDomain(policy, { domain, label }, context);
  return policy.rules.find((rule) => rule.domain === domain && rule.label === label);
}

/** Of a domain that the policy has no more there may be overrides left; of no other. */
function demandKnown(
  { policies, overrides }: ListParts,
  domain: string,
  context: HandlerContext,
): void {
  const domains = policies.current()?.domains;
  if (domains === undefined || domains.has(domain) || overrides.current().concerns(domain)) return;
  throw notFound("domain", domain, visibleAmong(context, domains.keys()));
}

/** Which overrides are asked for. */
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
  // A page token is an id: it must be one of those that the caller may see.
  const all = domains === undefined ? records.keys() : parts.overrides.current().idsOf(domains);
  const ids = nextOf(all, after, scannedMax + 1);
  const overrides: ReturnType<typeof encodeOverride>[] = [];
  for (const [i, id] of ids.entries()) {
    // At least one more is there, which nobody has looked at.
    if (i === scannedMax || overrides.length === countMax) return { overrides, next: ids[i - 1] };
    const record = records.get(id);
    const override = record && overrideFromJson(record.value);
    if (record === undefined || override === undefined) continue;
    if (isWanted?.(override) ?? true) overrides.push(encodeOverride(override, record.version));
  }
  return { overrides, next: undefined };
}

/** Undefined: all of the domains asked about. */
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
