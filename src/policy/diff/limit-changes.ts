import {
  denialOf,
  type FailureMode,
  isSettled,
  type Limit,
  limitsOf,
  type Role,
  type Rule,
  type RuleDisclosure,
} from "../../core/limits/limit.js";
import { defaultOverrideMax } from "../../core/limits/override.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { descriptorForms } from "../limits/descriptors.js";
import { rateLimitForms } from "../limits/rate-limit.js";
import type { ChangeEffect } from "../text/form.js";
import { fieldChanges } from "./field-changes.js";
import {
  fieldWords,
  hitsPerSecond,
  limitWords,
  overEffect,
  overWords,
  rateWords,
  windowWords,
} from "./limit-words.js";
import { opposite, type PolicyChange } from "./policy-change.js";

/** Returns the domains that are removed or added. */
export function compareDomains(
  before: readonly string[],
  after: readonly string[],
): readonly PolicyChange[] {
  const gone = before.filter((domain) => !after.includes(domain));
  const added = after.filter((domain) => !before.includes(domain));
  return [
    ...gone.map((domain): PolicyChange => {
      return { effect: "looser", place: domain, words: "the domain is removed: its requests pass" };
    }),
    ...added.map((domain): PolicyChange => {
      return { effect: "different", place: domain, words: "the domain is new" };
    }),
  ];
}

/** Returns the changes of limits. Rules are matched by domain and path. */
export function compareRules(
  before: readonly Rule[],
  after: readonly Rule[],
): readonly PolicyChange[] {
  const old = new Map(before.map((rule) => [identityOf(rule), rule]));
  const young = new Map(after.map((rule) => [identityOf(rule), rule]));
  const changes: PolicyChange[] = [];
  for (const [identity, rule] of old) {
    const now = young.get(identity);
    changes.push(...(now === undefined ? goneRule(rule) : changedRule(rule, now)));
  }
  for (const [identity, rule] of young) if (!old.has(identity)) changes.push(...newRule(rule));
  return [...changes, ...laterCosts(old, young), ...reordered({ old, young })];
}

/** Reports what descriptors lose when they leave a ratelimit file, once for each domain. */
function laterCosts(
  old: ReadonlyMap<string, Rule>,
  young: ReadonlyMap<string, Rule>,
): readonly PolicyChange[] {
  const counts = new Map<string, number>();
  for (const [identity, { settlesOncePeeked }] of old) {
    const now = young.get(identity);
    if (settlesOncePeeked !== true || now === undefined || now.settlesOncePeeked === true) continue;
    if (limitsOf(now).every(({ role }) => isSettled(role))) continue;
    counts.set(now.domain, (counts.get(now.domain) ?? 0) + 1);
  }
  return [...counts].map(([place, count]): PolicyChange => {
    const what = count === 1 ? "1 descriptor moves out of" : `${count} descriptors move out of`;
    const words =
      `${what} a ratelimit file: costs reported after the response are charged ` +
      "only if they fit; to always charge them, set charge: settle";
    return { effect: "different", place, words };
  });
}

function identityOf({ domain, path }: Rule): string {
  return JSON.stringify([domain, path.map(({ key, value }) => [key, value])]);
}

/** Returns the place of a limit, in the notation of metrics. */
function placeOf({ domain, label }: Rule, limit?: Pick<Limit, "name">): string {
  const name = limit?.name;
  return name === undefined ? `${domain}/${label}` : `${domain}/${label} ${name}`;
}

function goneRule(rule: Rule): readonly PolicyChange[] {
  if (rule.effect.kind === "none") return [];
  if (rule.effect.kind === "unlimited") {
    return [{ effect: "stricter", place: placeOf(rule), words: "the exception is removed" }];
  }
  return limitsOf(rule).map((limit) => goneLimit(rule, limit));
}

function goneLimit(rule: Rule, limit: Limit): PolicyChange {
  const words = `the limit of ${limitWords(limit)} is removed, with its state`;
  return { effect: opposite(bites(limit)), place: placeOf(rule, limit), words };
}

function newRule(rule: Rule): readonly PolicyChange[] {
  if (rule.effect.kind === "none") return [];
  if (rule.effect.kind === "unlimited") {
    return [{ effect: "looser", place: placeOf(rule), words: "a new exception: no limit" }];
  }
  return limitsOf(rule).map((limit) => newLimit(rule, limit));
}

function newLimit(rule: Rule, limit: Limit): PolicyChange {
  const role = limit.role === "enforce" ? "" : ` (${limit.role})`;
  const words = `a new limit${role}: ${limitWords(limit)}; its bucket starts empty`;
  return { effect: bites(limit), place: placeOf(rule, limit), words };
}

/** Returns the effect of adding a limit. */
function bites({ role }: Limit): ChangeEffect {
  return denialOf(role) === "shadow" ? "different" : "stricter";
}

function changedRule(before: Rule, after: Rule): readonly PolicyChange[] {
  const changes = [...comparePairs(before, after)];
  const [was, is] = [before.effect.kind, after.effect.kind];
  if (was === "unlimited" && is !== "unlimited") {
    changes.push({
      effect: "stricter",
      place: placeOf(after),
      words: "now has a limit; it had none",
    });
  }
  if (was !== "unlimited" && is === "unlimited") {
    changes.push({ effect: "looser", place: placeOf(after), words: "now passes without a limit" });
  }
  return [...changes, ...settingsOf(before, after)];
}

/** Compares the limits of one rule, matched by their keys, then by name, then by place. */
function comparePairs(before: Rule, after: Rule): readonly PolicyChange[] {
  const rest = [...limitsOf(after)];
  const unmatched: Limit[] = [];
  const changes: PolicyChange[] = [];
  const isShared = sameText(before.sharePatterns, after.sharePatterns);
  for (const old of limitsOf(before)) {
    const index = rest.findIndex((one) => keyOf(one) === keyOf(old));
    const [now] = index < 0 ? [] : rest.splice(index, 1);
    if (now === undefined) unmatched.push(old);
    else changes.push(...changedLimit({ rule: after, old, now, isKept: isShared }));
  }
  for (const old of unmatched) {
    const index = rest.findIndex((one) => one.name !== undefined && one.name === old.name);
    const [now] = rest.splice(Math.max(0, index), 1);
    if (now === undefined) changes.push(goneLimit(before, old));
    else changes.push(...changedLimit({ rule: after, old, now, isKept: false }));
  }
  return [...changes, ...rest.map((limit) => newLimit(after, limit))];
}

/** Returns a limit's part of its buckets' keys, without domain and entries: see `limitKey`. */
function keyOf({ name, periodUs, algorithm }: Limit): string {
  return JSON.stringify([algorithm?.kind ?? "gcra", name ?? periodUs]);
}

interface LimitPair {
  readonly rule: Rule;
  readonly old: Limit;
  readonly now: Limit;
  /** Whether its buckets stay the same. */
  readonly isKept: boolean;
}

function changedLimit({ rule, old, now, isKept }: LimitPair): readonly PolicyChange[] {
  const place = placeOf(rule, now);
  const changes: PolicyChange[] = [];
  const state = isKept ? "its state is kept" : whyEmpty(old, now);
  const [words, effect] = rateChange(old, now);
  if (words !== undefined) changes.push({ effect, place, words: `${words}; ${state}` });
  else if (!isKept) {
    changes.push({ effect: "looser", place, words: `still ${limitWords(now)}; ${state}` });
  }
  const isDelayed = isDelayAtMost(old) && isDelayAtMost(now);
  // A limit that annotates or falls back refuses no request, as its role already states.
  if (old.role !== now.role && isDelayed) {
    changes.push({ place, ...roleChange(old.role, now.role) });
  }
  if (old.onStoreFailure !== now.onStoreFailure) {
    changes.push({ place, ...failureChange(old.onStoreFailure, now.onStoreFailure) });
  }
  if (old.peek !== now.peek) {
    const over = now.peek === "debt" ? "only when in debt" : "also when nothing remains";
    changes.push({ effect: "different", place, words: `a call of zero hits is denied ${over}` });
  }
  if (old.spread !== now.spread) changes.push({ place, ...spreadChange(now) });
  if (!isDelayed) {
    const [was, is] = [old, now].map(({ over }) => (over ? overWords(over) : "refuses"));
    const words = `over the limit, it now ${is} where it ${was}`;
    if (was !== is) changes.push({ effect: overEffect(old.over, now.over), place, words });
  }
  const others = {
    before: { ...plainSettings(old), ...(isDelayed && { over: old.over }) },
    after: { ...plainSettings(now), ...(isDelayed && { over: now.over }) },
    form: rateLimitForms.headgate,
    isGenerated: false,
  };
  const reported = fieldChanges(others).map(({ effect, words }) => ({ effect, place, words }));
  return [...changes, ...reported];
}

/** Settings of a limit without wording of their own: reported by their names in the policy. */
function plainSettings(limit: Limit): object {
  const { name, hits, unit, unitMultiplier, periodUs, burst, algorithm, ...rest } = limit;
  const { role, peek, onStoreFailure, over, warn, spread, ...plain } = rest;
  return {
    overrideMax: defaultOverrideMax,
    ...plain,
    warnAt: warn?.atRatio,
    warnHeaders: warn?.headers.map(fieldWords),
  };
}

/** Reports whether it refuses or delays, which differ by a number only. */
function isDelayAtMost({ over }: Limit): boolean {
  return over === undefined || over.kind === "delay";
}

/** Explains why buckets start empty. */
function whyEmpty(old: Limit, now: Limit): string {
  if (old.name !== now.name) {
    const was = old.name === undefined ? "it had no name" : `its name was ${old.name}`;
    return `its bucket starts empty, because ${was} and the name is part of the key`;
  }
  if ((old.algorithm?.kind ?? "gcra") !== (now.algorithm?.kind ?? "gcra")) {
    return "its bucket starts empty, because the algorithm changes";
  }
  if (old.periodUs !== now.periodUs) {
    return "its bucket starts empty, because the period of an unnamed limit is part of the key";
  }
  return "its bucket starts empty, because other values share it";
}

/** Describes the change of what a limit admits; undefined: none. */
function rateChange(old: Limit, now: Limit): readonly [string | undefined, ChangeEffect] {
  const parts: string[] = [];
  const ratios: number[] = [];
  if (rateWords(old) !== rateWords(now)) {
    const [was, is] = [hitsPerSecond(old), hitsPerSecond(now)];
    const how = was === is ? "the same rate" : ratioWords(was, is);
    parts.push(`${rateWords(old)} becomes ${rateWords(now)} (${how})`);
    ratios.push(ratioOf(was, is));
  }
  // An unset burst equals the period's hits, which are reported already.
  const isDefault = old.burst === old.hits && now.burst === now.hits;
  const followsHits = isDefault && old.periodUs === now.periodUs;
  if (old.burst !== now.burst && !followsHits) {
    parts.push(`at most ${old.burst} at once becomes ${now.burst}`);
    ratios.push(ratioOf(old.burst, now.burst));
  }
  if (windowWords(old) !== windowWords(now)) {
    parts.push(
      `${windowWords(old)} becomes ${windowWords(now)}`.replace("no windows becomes", "now in"),
    );
  }
  if (parts.length === 0) return [undefined, "different"];
  if (denialOf(now.role) === "shadow" || ratios.length === 0)
    return [parts.join(", "), "different"];
  if (ratios.some((ratio) => ratio < 1)) return [parts.join(", "), "stricter"];
  return [parts.join(", "), ratios.some((ratio) => ratio > 1) ? "looser" : "different"];
}

function ratioOf(was: number, is: number): number {
  if (was === is) return 1;
  return was === 0 ? Number.POSITIVE_INFINITY : is / was;
}

/** Compares a number with the one before. Example: `half as much`, `20 % more`. */
function ratioWords(was: number, is: number): string {
  if (is === 0) return "nothing at all";
  if (was === 0) return "something instead of nothing";
  const ratio = is / was;
  if (ratio === 0.5) return "half as much";
  if (ratio === 2) return "twice as much";
  if (ratio > 2) return `${rounded(ratio)} times as much`;
  if (ratio < 0.1) return `1 in ${rounded(1 / ratio)}`;
  const percent = rounded(Math.abs(ratio - 1) * 100);
  return `${percent} % ${ratio < 1 ? "less" : "more"}`;
}

/** Rounds to three significant digits. */
function rounded(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** What a role does, as the end of a sentence that begins with "it". */
const roleWords: Readonly<Record<Role, string>> = {
  enforce: "denies requests over the limit",
  shadow: "counts but never denies",
  quota: "denies only when all quota limits of a request are over",
  settle: "charges everything, into debt, and denies while in debt",
  shadowSettle: "charges everything, into debt, and never denies",
  quotaSettle:
    "charges everything, into debt, and denies only together with all other quota limits",
};

function roleChange(was: Role, is: Role): Omit<PolicyChange, "place"> {
  const [wasShadow, isShadow] = [was, is].map((role) => denialOf(role) === "shadow");
  const effect = wasShadow === isShadow ? "different" : isShadow ? "looser" : "stricter";
  return { effect, words: `${was} becomes ${is}: it ${roleWords[is]}; its state is kept` };
}

/** Without regions, a new spread has no effect. With n regions, n or 1/n times the hits pass. */
function spreadChange({ spread }: Limit): Omit<PolicyChange, "place"> {
  const words =
    spread === "global"
      ? "all regions together now have what each of them had"
      : "each region now has what all of them together had";
  const effect = spread === "global" ? "stricter" : "looser";
  return { effect, words: `${words}; its state is kept` };
}

/** What happens while the store is unreachable. */
const failureWords: Readonly<Record<FailureMode, string>> = {
  local: "each replica enforces its share",
  allow: "requests pass",
  deny: "requests are denied",
  error: "the call fails, and Envoy decides",
};

function failureChange(was: FailureMode, is: FailureMode): Omit<PolicyChange, "place"> {
  const effect =
    is === "deny" || was === "allow" ? "stricter" : is === "allow" ? "looser" : "different";
  return {
    effect,
    words: `while the store is unreachable, ${failureWords[is]} (${was} becomes ${is})`,
  };
}

/** Returns the changes of a rule's settings other than its limits. */
function settingsOf(before: Rule, after: Rule): readonly PolicyChange[] {
  const rows = [
    ["replaces", "the limits it replaces", before.replaces, after.replaces],
    ["metricPath", "its name in metrics", before.metricPath, after.metricPath],
    ["metadata", "the metadata of allowed requests", before.metadata, after.metadata],
    ["headers", "the headers of its responses", before.headers, after.headers],
    ["body", "the body of its denials", before.body, after.body],
    ["tellRule", "where its denials name it", tellingOf(before), tellingOf(after)],
    ["name", "its name", exceptionName(before), exceptionName(after)],
  ] as const;
  const words = rows
    .filter(([, , was, is]) => !sameText(was, is))
    .map(([, what]) => `it changes ${what}`);
  const others = {
    before: otherSettings(before),
    after: otherSettings(after),
    form: descriptorForms.headgate,
    isGenerated: false,
  };
  const reported = fieldChanges(others).map((change) => change.words);
  return [...words, ...reported].map((each) => {
    return { effect: "different", place: placeOf(after), words: each };
  });
}

function exceptionName({ effect }: Rule): string | undefined {
  return effect.kind === "unlimited" ? effect.name : undefined;
}

/** Settings of a rule without wording of their own: reported by their names in the policy. */
function otherSettings(rule: Rule): object {
  const { domain, path, effect, label, index, sharePatterns, settlesOncePeeked, ...rest } = rule;
  const { replaces, metricPath, metadata, headers, body, disclosure, ...others } = rest;
  return others;
}

function tellingOf({ disclosure = defaultDisclosure }: Rule): RuleDisclosure {
  return disclosure;
}

function sameText(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Reports a new order of descriptors, which matters if several patterns match. */
function reordered({
  old,
  young,
}: {
  readonly old: ReadonlyMap<string, Rule>;
  readonly young: ReadonlyMap<string, Rule>;
}): readonly PolicyChange[] {
  const orderOf = (rules: ReadonlyMap<string, Rule>, other: ReadonlyMap<string, Rule>) => {
    const byDomain = new Map<string, string[]>();
    for (const [identity, { domain }] of rules) {
      if (!other.has(identity)) continue;
      byDomain.set(domain, [...(byDomain.get(domain) ?? []), identity]);
    }
    return byDomain;
  };
  const [was, is] = [orderOf(old, young), orderOf(young, old)];
  return [...was]
    .filter(([domain, order]) => !sameText(order, is.get(domain)))
    .map(([domain]) => ({
      effect: "different",
      place: domain,
      words: "its descriptors change order, which matters if several patterns match",
    }));
}
