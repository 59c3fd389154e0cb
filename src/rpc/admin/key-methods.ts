import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { auditEntry, reasonCharsMax } from "../../core/base/audit-entry.js";
import type { Rule } from "../../core/limits/limit.js";
import type { KeyLookup, KeySelector } from "../../decide/inspect/key-inspector.js";
import type { RuleSelector } from "../../decide/inspect/seen-key.js";
import {
  LimitService,
  type KeySelector as SelectorMessage,
  TopOrder,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { Policy } from "../../policy/policy.js";
import { isRule } from "../../policy/policy-size.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { askOthers } from "./ask-others.js";
import { actorOf, askedDomains, demandPart, demandRole, visibleAmong } from "./call.js";
import { AdminFailure, notFound } from "./failures.js";
import {
  encodeEntries,
  encodeKeyState,
  encodeLimit,
  encodePath,
  timeOf,
  wideOf,
} from "./messages.js";
import { pageRule, readVersionedToken, versionedToken } from "./pages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** The number of keys in a response. */
const keysRule = { max: 100, defaultValue: 10 } as const;

/** The methods that read rules and keys, and the one that resets a key. */
export function keyMethods(
  parts: AdminServiceParts,
): Pick<
  ServiceImpl<typeof LimitService>,
  "listRules" | "getKey" | "topKeys" | "nearLimitKeys" | "resetKey"
> {
  return {
    listRules: async (request, context) => {
      const reader = new RequestReader();
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      const { domains } = readAsked(parts, request, { reader, context });
      const policy = policyOf(parts);
      const own = listRules(parts, policy, {
        domains,
        countMax,
        after: readVersionedToken(request.pageToken, policy.version),
      });
      const { messages, silentReplicas } = await askOthers(parts, LimitService.method.listRules, {
        request,
        context,
      });
      // With the same policy, the same page has the same rules.
      const same = messages.filter(({ policyVersion }) => policyVersion === policy.version);
      const rules = own.rules.flatMap((rule, at) => {
        return [rule, ...same.flatMap((other) => other.rules[at] ?? [])];
      });
      return { ...own, rules, silentReplicas: silentReplicas + messages.length - same.length };
    },
    ...sightingMethods(parts),
    getKey: async (request, context) => {
      const keys = demandPart(parts.keys);
      const selector = readSelector(request.key);
      demandRole(context, "reader", selector.domain);
      const states = found(await keys.get(selector), parts, { selector, context });
      return { states: states.map(encodeKeyState) };
    },
    resetKey: resetMethod(parts),
  };
}

/** The methods for keys that replicas have seen. */
function sightingMethods(
  parts: AdminServiceParts,
): Pick<ServiceImpl<typeof LimitService>, "topKeys" | "nearLimitKeys"> {
  return {
    topKeys: async (request, context) => {
      const sightings = demandPart(parts.sightings);
      const reader = new RequestReader();
      const countMax = reader.count("count", request.count, keysRule);
      const order = request.order === TopOrder.DENIALS ? "denials" : "hits";
      if (TopOrder[request.order] === undefined) reader.report("order", "unknown order");
      const asked = readAsked(parts, request, { reader, context });
      const { keys, sinceEpochMs } = sightings.top(asked, { order, countMax });
      const since = timeOf(sinceEpochMs);
      const own = keys.map(({ domain, entries, ruleLabel, count, errorMax }) => ({
        key: { domain, entries: encodeEntries(entries) },
        ruleLabel,
        count: wideOf(count),
        errorMax: wideOf(errorMax),
        replica: parts.replica,
      }));
      const { messages, silentReplicas } = await askOthers(parts, LimitService.method.topKeys, {
        request,
        context,
      });
      const all = [...own, ...messages.flatMap((other) => other.keys)];
      all.sort((a, b) => Number(b.count - a.count));
      return { since, keys: all.slice(0, countMax), silentReplicas };
    },
    nearLimitKeys: async (request, context) => {
      const sightings = demandPart(parts.sightings);
      const reader = new RequestReader();
      const countMax = reader.count("count", request.count, keysRule);
      const ratioRule = { max: 1, defaultValue: 0.8 };
      const usedRatioMin = reader.part("used_ratio_min", request.usedRatioMin, ratioRule);
      const asked = readAsked(parts, request, { reader, context });
      const keys = sightings.near(asked, { usedRatioMin, countMax });
      const own = keys.map(({ domain, entries, limitName = "", seenEpochMs, ...key }) => ({
        key: { domain, entries: encodeEntries(entries), limitName },
        ruleLabel: key.ruleLabel,
        usedRatio: key.usedRatio,
        isOver: key.isOver,
        seenAt: timeOf(seenEpochMs),
        replica: parts.replica,
      }));
      const { nearLimitKeys: method } = LimitService.method;
      const { messages, silentReplicas } = await askOthers(parts, method, { request, context });
      const all = [...own, ...messages.flatMap((other) => other.keys)];
      all.sort((a, b) => b.usedRatio - a.usedRatio);
      return { keys: all.slice(0, countMax), silentReplicas };
    },
  };
}

function resetMethod(parts: AdminServiceParts): ServiceImpl<typeof LimitService>["resetKey"] {
  return async (request, context) => {
    const keys = demandPart(parts.keys);
    const reader = new RequestReader();
    const selector = readSelector(request.key, reader);
    const rule = { charsMax: reasonCharsMax, isNeeded: true };
    const reason = reader.text("reason", request.reason, rule);
    reader.end();
    const { domain } = selector;
    demandRole(context, "operator", domain);
    const states = found(await keys.get(selector), parts, { selector, context });
    const before = states.map(({ key, usedHits }) => ({ key: String(key), usedHits }));
    // First, so that no key is ever reset without a trace.
    await parts.records.note(
      auditEntry({
        actor: actorOf(context),
        action: "ResetKey",
        subject: subjectOf(selector),
        domain,
        before,
        after: undefined,
        reason,
        replica: parts.replica,
      }),
    );
    const resetCount = found(await keys.reset(selector), parts, { selector, context });
    return { resetCount, carriedLimitsLeft: keys.leavesCarriedLimits };
  };
}

interface RulesAsked {
  readonly domains: readonly string[] | undefined;
  readonly countMax: number;
  /** Index of the first rule to look at. */
  readonly after: number;
}

function listRules(
  { ruleCounters, replica, regionCount = 1 }: AdminServiceParts,
  policy: Policy,
  { domains, countMax, after }: RulesAsked,
) {
  const wanted = domains === undefined ? undefined : new Set(domains);
  const counters = ruleCounters(policy);
  const shown: Rule[] = [];
  let next = after;
  for (; next < policy.rules.length && shown.length < countMax; next += 1) {
    const rule = policy.rules[next];
    if (rule === undefined || !isRule(rule)) continue;
    if (wanted === undefined || wanted.has(rule.domain)) shown.push(rule);
  }
  const isMore = next < policy.rules.length;
  return {
    rules: shown.map(({ domain, label, path, effect, index }) => {
      const hits = counters[index]?.hits;
      return {
        domain,
        label,
        path: encodePath(path),
        limits:
          effect.kind === "limited"
            ? effect.limits.map((limit) => encodeLimit(limit, regionCount))
            : [],
        isUnlimited: effect.kind === "unlimited",
        counts: {
          hits: wideOf(hits?.total ?? 0),
          overLimitHits: wideOf(hits?.over ?? 0),
          nearLimitHits: wideOf(hits?.near ?? 0),
        },
        replica,
      };
    }),
    nextPageToken: isMore ? versionedToken(next, policy.version) : "",
    policyVersion: policy.version,
  };
}

/** Returns the active policy. */
export function policyOf({ policies }: Pick<AdminServiceParts, "policies">): Policy {
  const policy = policies.current();
  if (policy === undefined) throw new AdminFailure("unavailable", "no policy is loaded yet");
  return policy;
}

/**
 * Checks that the policy has a domain, and a rule if one is named.
 *
 * @throws AdminFailure notFound, with the nearest name
 */
export function demandDomain(
  policy: Policy,
  { domain, label }: { readonly domain: string; readonly label?: string | undefined },
  context: HandlerContext,
): void {
  const { domains } = policy;
  if (!domains.has(domain)) throw notFound("domain", domain, visibleAmong(context, domains.keys()));
  if (label === undefined) return;
  const labels = policy.rules.filter((rule) => rule.domain === domain).map((rule) => rule.label);
  if (!labels.includes(label)) throw notFound("rule", label, labels);
}

/**
 * Reads the domain and rule that a request is about, as its last fields. Only callers who may see
 * the domain learn whether they exist.
 *
 * @throws AdminFailure invalid for all that the reader has found, then forbidden, then notFound
 */
export function readAsked(
  parts: Pick<AdminServiceParts, "policies">,
  request: { readonly domain: string; readonly ruleLabel?: string },
  { reader, context }: { readonly reader: RequestReader; readonly context: HandlerContext },
): RuleSelector {
  const domain = reader.text("domain", request.domain, keyNameBounds);
  const label = readRuleLabel({ domain, ruleLabel: request.ruleLabel ?? "" }, reader);
  reader.end();
  const domains = askedDomains(context, domain);
  if (domain !== "") demandDomain(policyOf(parts), { domain, label }, context);
  return { domains, ruleLabel: label };
}

/** Reads the name of a rule of that domain. Undefined: none is named. */
export function readRuleLabel(
  { domain, ruleLabel }: { readonly domain: string; readonly ruleLabel: string },
  reader: RequestReader,
): string | undefined {
  const label = reader.text("rule_label", ruleLabel, keyNameBounds);
  if (label !== "" && domain === "") reader.report("rule_label", "set a domain");
  return label === "" ? undefined : label;
}

/** Reads the key that a request names. */
function readSelector(
  message: SelectorMessage | undefined,
  reader = new RequestReader(),
): KeySelector {
  if (message === undefined) throw new AdminFailure("invalid", "key: required");
  const domain = reader.text("key.domain", message.domain, { ...keyNameBounds, isNeeded: true });
  const entries = reader.entries("key.entries", message.entries);
  const limitName = reader.text("key.limit_name", message.limitName, keyNameBounds);
  reader.end();
  return { domain, entries, ...(limitName === "" ? {} : { limitName }) };
}

/** Returns what was found, or throws why nothing was. */
function found<T>(
  lookup: KeyLookup<T>,
  parts: AdminServiceParts,
  { selector, context }: { readonly selector: KeySelector; readonly context: HandlerContext },
): T {
  const { domain, entries, limitName = "" } = selector;
  switch (lookup.kind) {
    case "found":
      return lookup.value;
    case "domainUnknown":
      throw notFound("domain", domain, visibleAmong(context, policyOf(parts).domains.keys()));
    case "limitUnknown":
      throw notFound("limit of this rule", limitName, lookup.names);
    case "unmatched": {
      const isCarried = parts.keys?.leavesCarriedLimits === true;
      const carried = isCarried ? " (limits that requests carry cannot be read or reset)" : "";
      throw noRuleMeets(policyOf(parts), { domain, entries }, `this descriptor${carried}`);
    }
  }
}

/** Returns the failure that no limit applies to a descriptor, with the nearest known key. */
export function noRuleMeets(
  { rules }: Policy,
  { domain, entries }: Pick<KeySelector, "domain" | "entries">,
  whose: string,
): AdminFailure {
  const paths = rules.filter((rule) => rule.domain === domain).map(({ path }) => path);
  const keys = new Set(paths.flatMap((path) => path.map(({ key }) => key)));
  const strange = entries.find(({ key }) => !keys.has(key));
  const nearest = strange && findNearestName(strange.key, [...keys]);
  const hint = nearest === undefined ? "" : `; did you mean the key ${JSON.stringify(nearest)}?`;
  const text = `no rule with a limit matches ${whose}${hint}`;
  return new AdminFailure("notFound", hint === "" ? `${text}; explain it to see why` : text);
}

/** Returns the name of a key in the audit log. */
function subjectOf({ domain, entries, limitName }: KeySelector): string {
  const path = entries.map(({ key, value }) => `${key}=${value}`).join(",");
  return `${domain} ${path}${limitName === undefined ? "" : ` ${limitName}`}`;
}
