import type { ParsedNode } from "yaml";
import {
  defaultDefaults,
  type Limit,
  type LimitDefaults,
  type Rule,
} from "../../core/limits/limit.js";
import type { LimitNames } from "../limits/limit-names.js";
import { type RuleList, rulesMax, stepLabel } from "../limits/rule-list.js";
import { quoteText } from "../problems/problem.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import { LimitPaths, mayMeet } from "../services/limit-paths.js";
import { DefinedNames } from "../text/defined-names.js";
import { findNearestName } from "../text/nearest-name.js";
import type { NodeReader } from "../text/node-reader.js";
import type { QuotaPart } from "./quota-parts.js";
import type { ExpiredQuota, QuotaPolicy, QuotaRate } from "./quota-policy.js";
import { isDivisible, quotaLimit, type ReadExpiry, type ReadQuotaRate } from "./quota-settings.js";

/** Maximum number of quotas of one policy. Each is a filter in every Envoy that it applies to. */
export const quotasMax = 128;

/** A quota as read, and its places. Its domain and services may be defined in other files. */
export interface QuotaDraft {
  readonly quota: Omit<QuotaPolicy, "afterExpiry">;
  readonly reader: NodeReader;
  /** Undefined: the quota uses a limit of the domain, or the rate is wrong. */
  readonly rate: ReadQuotaRate | undefined;
  /** Whether a rate is written, valid or not. */
  readonly isRated: boolean;
  readonly expiry: ReadExpiry;
  readonly nodes: {
    readonly domain: ParsedNode;
    /** One for each named service. */
    readonly services: readonly ParsedNode[];
    readonly bucket: ParsedNode;
    readonly rate: ParsedNode;
  };
}

/** Data that a quota is checked against after all files are read. */
interface QuotaContext {
  readonly domains: readonly string[];
  /** Including the rules of quotas' own rates. */
  readonly rules: readonly Rule[];
  readonly services: readonly string[];
  readonly proxies: ProxyPolicy;
}

/** The quotas of a policy while it is read, from all its files. */
export class QuotaList {
  readonly names: LimitNames;
  readonly #drafts: QuotaDraft[] = [];
  readonly named = new DefinedNames("HG261", (name) => `a quota named ${name} is already defined`);
  readonly #defaults = new Map<string, LimitDefaults>();
  readonly #doubted = new Set<string>();
  #isEachDoubted = false;

  /** @param names of limits, including quotas' own rates */
  constructor(names: LimitNames) {
    this.names = names;
  }

  /** Adds a quota at the end; false, and not added, when there are `quotasMax` already. */
  add(draft: QuotaDraft): boolean {
    if (this.#drafts.length >= quotasMax) return false;
    this.#drafts.push(draft);
    return true;
  }

  /** Records a domain's defaults for its limits. */
  defineDomain(domain: string, defaults: LimitDefaults): void {
    this.#defaults.set(domain, defaults);
  }

  /** Like `ServiceList.doubt`. */
  doubt(domain: string | undefined): void {
    if (domain === undefined) this.#isEachDoubted = true;
    else this.#doubted.add(domain);
  }

  /** Adds a quota's own rate as a limit of its domain, unless its path is taken. */
  addRules(rules: RuleList): void {
    const rated = this.#drafts.filter(({ rate }) => rate !== undefined);
    if (rated.length === 0) return;
    const taken = new Map<string, string>();
    for (const { domain, path, label } of rules.rules) {
      taken.set(pathText(domain, path), `the descriptor ${quoteText(label)}`);
    }
    for (const draft of rated) this.#addRule(draft, rules, taken);
  }

  #addRule(draft: QuotaDraft, rules: RuleList, taken: Map<string, string>): void {
    const { quota, rate, reader, nodes } = draft;
    if (rate === undefined) return;
    const { name, domain, bucket } = quota;
    const path = bucket.map(stepOf);
    const text = pathText(domain, path);
    const other = taken.get(text);
    if (other !== undefined) {
      const message = `${other} of the domain ${quoteText(domain)} already has this path`;
      const expected = "no rate here: the quota also enforces the existing limits";
      reader.report(nodes.rate, { id: "HG268", message, expected });
      return;
    }
    taken.set(text, `the quota ${quoteText(name)}`);
    const limit = quotaLimit(name, rate, this.#defaults.get(domain) ?? defaultDefaults);
    const { disclosure } = this.#defaults.get(domain) ?? defaultDefaults;
    const label = path.map(stepLabel).join(".");
    const effect = { kind: "limited", limits: [limit] } as const;
    const reported = disclosure === undefined ? {} : { disclosure };
    if (rules.add({ domain, path, effect, label, ...reported })) return;
    const message = `a policy cannot hold more than ${rulesMax} descriptors`;
    reader.report(nodes.rate, { id: "HG160", message });
  }

  /** Returns the quotas in the order of the files; reports those that do not fit the policy. */
  finish(around: QuotaContext): readonly QuotaPolicy[] {
    const paths = new Map(around.domains.map((domain) => [domain, new LimitPaths()]));
    for (const rule of this.#drafts.length === 0 ? [] : around.rules) {
      paths.get(rule.domain)?.add(rule);
    }
    return this.#drafts.map((draft, index) => {
      const { quota, expiry } = draft;
      reportServices(draft, around.services);
      const isSure = !this.#isEachDoubted && !this.#doubted.has(quota.domain);
      if (isSure) reportLimit(draft, paths);
      const met = around.rules.filter(
        ({ domain, path, effect }) =>
          domain === quota.domain && effect.kind !== "none" && mayMeet(path, quota.bucket),
      );
      if (isSure) reportUndivided(draft, met);
      reportTwice(this.#drafts.slice(0, index), draft);
      const sharers =
        around.proxies.expectedCount * (1 + Object.keys(quota.classes?.weights ?? {}).length);
      return { ...quota, afterExpiry: expiredQuota(expiry, met, sharers) };
    });
  }
}

function stepOf(part: QuotaPart): Rule["path"][number] {
  return part.kind === "fixed" ? { key: part.key, value: part.value } : { key: part.key };
}

function pathText(domain: string, path: Rule["path"]): string {
  return JSON.stringify([domain, path.map(({ key, value }) => [key, value])]);
}

function reportServices({ quota, reader, nodes }: QuotaDraft, known: readonly string[]): void {
  quota.services?.forEach((name, index) => {
    const node = nodes.services[index];
    if (node === undefined || known.includes(name)) return;
    reader.report(node, {
      id: "HG262",
      message: `the policy has no service named ${quoteText(name)}`,
      suggestion: findNearestName(name, known),
    });
  });
}

function reportLimit(draft: QuotaDraft, paths: ReadonlyMap<string, LimitPaths>): void {
  const { quota, reader, nodes, isRated } = draft;
  const limits = paths.get(quota.domain);
  if (limits === undefined) {
    reader.reportContent(nodes.domain, {
      id: "HG263",
      message: `the policy has no domain named ${quoteText(quota.domain)}`,
      expected: "a domain of rateLimits, with or without descriptors",
      suggestion: findNearestName(quota.domain, [...paths.keys()]),
    });
    return;
  }
  if (isRated || limits.canMeet(quota.bucket)) return;
  const keys = quota.bucket.map(({ key }) => key);
  const stranger = keys.find((key) => !limits.keys.has(key));
  const path = quoteText(keys.join(", "));
  reader.report(nodes.bucket, {
    id: "HG264",
    message: `no limit of the domain ${quoteText(quota.domain)} has the path ${path}`,
    expected: "the keys and fixed values of a limit's path, or rate: {hits: 100, period: 1s}",
    suggestion: stranger === undefined ? undefined : findNearestName(stranger, [...limits.keys]),
  });
}

/** Reports limits that cannot be divided: they must drain all the time, and fast enough. */
function reportUndivided({ quota, reader, nodes }: QuotaDraft, met: readonly Rule[]): void {
  for (const { effect, label } of met) {
    for (const limit of effect.kind === "limited" ? effect.limits : []) {
      const isWindow = limit.algorithm?.kind === "fixed_window";
      if (!isWindow && isDivisible(limit)) continue;
      const why = isWindow ? "counts in windows" : "is too slow to be divided among proxies";
      reader.report(nodes.bucket, {
        id: "HG267",
        message: `the limit of ${quoteText(label)}, which ${quoteText(quota.name)} matches, ${why}`,
        expected: isWindow ? "algorithm: gcra there" : "at least one hit an hour there",
      });
      return;
    }
  }
}

/** Reports two quotas that would charge the same limit for the same request. */
function reportTwice(others: readonly QuotaDraft[], { quota, reader, nodes }: QuotaDraft): void {
  const before = others.find(({ quota: one }) => {
    if (one.domain !== quota.domain || !shareService(one, quota)) return false;
    return reachSame(one.bucket, quota.bucket);
  });
  if (before === undefined) return;
  const name = quoteText(before.quota.name);
  const message = `the quota ${name} charges the same limit for these requests`;
  const expected = "different services or keys, or one quota for both";
  reader.report(nodes.bucket, { id: "HG265", message, expected });
}

function shareService(
  one: Pick<QuotaPolicy, "services">,
  other: Pick<QuotaPolicy, "services">,
): boolean {
  if (one.services === undefined || other.services === undefined) return true;
  return one.services.some((name) => other.services?.includes(name) === true);
}

function reachSame(one: readonly QuotaPart[], other: readonly QuotaPart[]): boolean {
  if (one.length !== other.length) return false;
  return one.every((part, index) => {
    const twin = other[index];
    if (twin === undefined || part.key !== twin.key) return false;
    return part.kind !== "fixed" || twin.kind !== "fixed" || part.value === twin.value;
  });
}

/** Maximum period of a share of at least one hit: an Envoy refills its bucket continuously. */
const sharePeriodSecondsMax = 86_400;

/**
 * Returns what an Envoy does with a bucket after its assignment expires. `limit` is the smallest
 * limit that the bucket may match, divided by all sharers. It needs no communication, and the
 * sharers together admit at most the limit while there are no more of them than expected.
 *
 * @param met the rules that a bucket of the quota may match
 * @param sharers proxies, each counted once for each of its buckets of one limit
 */
export function expiredQuota(
  { fallback, forSeconds }: ReadExpiry,
  met: readonly Rule[],
  sharers: number,
): ExpiredQuota {
  if (fallback !== "limit") return { forSeconds, fallback: { kind: "blanket", rule: fallback } };
  const limits = met
    .flatMap(({ effect }) => (effect.kind === "limited" ? effect.limits : []))
    .filter(({ role }) => role !== "shadow");
  const [first, ...others] = limits;
  // Without an enforced limit, an Envoy also admits on its own.
  if (first === undefined) return { forSeconds, fallback: { kind: "blanket", rule: "allow" } };
  const least = others.reduce((slow, one) => (isSlower(one, slow) ? one : slow), first);
  if (least.hits === 0) return { forSeconds, fallback: { kind: "blanket", rule: "deny" } };
  const burst = Math.min(...limits.map((one) => one.burst));
  return { forSeconds, fallback: { kind: "tokens", rate: shareOf({ ...least, burst }, sharers) } };
}

function isSlower(one: Limit, other: Limit): boolean {
  return one.hits / one.periodUs < other.hits / other.periodUs;
}

/**
 * Divides a limit among its sharers; never more than its part.
 *
 * Example: 1,000 a second among 3 are 1,000 in 3 s; 10 a day among 100 are 1 in 10 days.
 */
export function shareOf(
  { hits, periodUs, burst }: Pick<Limit, "hits" | "periodUs" | "burst">,
  sharers: number,
): QuotaRate {
  const burstShare = Math.max(1, Math.floor(burst / sharers));
  const periodSeconds = (periodUs / 1_000_000) * sharers;
  if (periodSeconds <= sharePeriodSecondsMax) return { hits, periodSeconds, burst: burstShare };
  const dayHits = Math.floor((hits * sharePeriodSecondsMax) / periodSeconds);
  return dayHits >= 1
    ? { hits: dayHits, periodSeconds: sharePeriodSecondsMax, burst: burstShare }
    : { hits: 1, periodSeconds: Math.ceil(periodSeconds / hits), burst: burstShare };
}
