import { many } from "../core/base/many.js";
import { globMatches, parseGlob } from "../core/collections/glob.js";
import { isSettled, type PathStep, type Rule } from "../core/limits/limit.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import { findNearestName } from "../policy/text/nearest-name.js";
import {
  type Asked,
  type AskedDescriptor,
  type AskedEntry,
  findAsked,
} from "./asked-descriptors.js";
import { type Diagnostic, type DoctorCheck, type DoctorPolicy, findingsOr } from "./diagnostic.js";
import { findHeadgateFilters } from "./headgate-filters.js";
import { shownName } from "./json-access.js";

/** Maximum number of distinct descriptors of one Envoy that are compared with the policy. */
export const comparedDescriptorsMax = 2_000;

/** Maximum number of optional entries in a descriptor for which all variants are followed. */
const optionalEntriesMax = 6;

/** Checks whether the descriptors of routes match the limits of the policy. */
export const checkDescriptors: DoctorCheck = (input) => {
  const { policy } = input;
  if (policy === undefined) {
    return [{ kind: "unseen", id: "HG507", seen: "descriptors and limits: set --policy" }];
  }
  if (!findHeadgateFilters(input).some(({ kind }) => kind === "ratelimit")) return [];
  const asked = findAsked(input);
  return [
    ...checkDomains(asked, policy),
    ...checkLimits(asked, policy),
    ...checkLaterCosts(asked, policy),
    ...checkServices(asked, policy),
  ];
};

function checkDomains({ domains }: Asked, policy: DoctorPolicy): readonly Diagnostic[] {
  const strange = [...domains].filter((domain) => !policy.domains.has(domain));
  const findings = strange.map((domain): Diagnostic => {
    const nearest = findNearestName(domain, [...policy.domains]);
    const hint = nearest === undefined ? "" : `; did you mean ${shownName(nearest)}?`;
    const seen = `the domain "${shownName(domain)}" is not in the policy${hint}`;
    return { kind: "finding", id: "HG506", severity: "error", seen };
  });
  const seen = `domains in requests: ${[...domains].map(shownName).join(", ") || "none"}`;
  return findingsOr(findings, { id: "HG506", seen });
}

function checkLimits(asked: Asked, policy: DoctorPolicy): readonly Diagnostic[] {
  const known = asked.descriptors.filter(({ domain }) => policy.domains.has(domain));
  const compared = known.slice(0, comparedDescriptorsMax);
  const paths = new Paths(policy.rules);
  const reached = new Set<Rule>();
  const lost: Diagnostic[] = [];
  for (const descriptor of compared) {
    const rules = paths.reachedBy(descriptor);
    if (rules === undefined) continue;
    for (const rule of rules) reached.add(rule);
    if (rules.length > 0) continue;
    const seen =
      `${shownDescriptor(descriptor)} matches no limit ` + `(${shownName(descriptor.where)})`;
    lost.push({ kind: "finding", id: "HG507", severity: "error", seen });
  }
  const diagnostics = findingsOr(lost, {
    id: "HG507",
    seen: `${many(compared.length, "descriptor")}, and each can match a limit`,
  });
  // Descriptors that are unknown may reach any rule.
  const isAllKnown = known.every(({ entries }) => entries !== undefined);
  if (!isAllKnown || known.length > compared.length) return diagnostics;
  // Envoys count these themselves, and request no decision.
  for (const { domain, bucket } of policy.quotas) {
    const entries = bucket.map((part) => ({
      key: part.key,
      value: part.kind === "fixed" ? part.value : undefined,
      isOptional: false,
    }));
    const rules = paths.reachedBy({ domain, entries });
    for (const rule of rules ?? []) reached.add(rule);
  }
  return [...diagnostics, ...checkUnreached(asked, policy, reached)];
}

/** Checks whether costs reported after responses are charged as in envoyproxy/ratelimit. */
function checkLaterCosts(asked: Asked, policy: DoctorPolicy): readonly Diagnostic[] {
  const id = "HG513";
  const known = asked.descriptors.slice(0, comparedDescriptorsMax);
  const later = known.filter(({ isChargedLater }) => isChargedLater);
  const paths = new Paths(policy.rules);
  const rulesOf = (descriptors: readonly AskedDescriptor[]): Set<Rule> =>
    new Set(descriptors.flatMap((one) => paths.reachedBy(one) ?? []));
  const peeked = rulesOf(known.filter(({ isPeeked }) => isPeeked));
  const findings = [...rulesOf(later)].flatMap((rule): readonly Diagnostic[] => {
    const found = laterCostsOf(rule, peeked.has(rule));
    if (found === undefined) return [];
    const seen = `${shownName(rule.domain)}/${shownName(rule.label)}: ${found.seen}`;
    return [{ kind: "finding", id, severity: "warning", seen, todo: found.todo }];
  });
  const reported = later.length === 0 ? "none" : "all are charged";
  return findingsOr(findings, { id, seen: `costs reported after responses: ${reported}` });
}

/** Returns what happens to a cost that does not fit; undefined: it is counted in full. */
function laterCostsOf(
  { effect, settlesOncePeeked }: Rule,
  isPeeked: boolean,
): { readonly seen: string; readonly todo: string } | undefined {
  if (effect.kind !== "limited") return undefined;
  const unsettled = effect.limits.filter(({ role }) => !isSettled(role));
  if (unsettled.length === 0) return undefined;
  if (settlesOncePeeked !== true) {
    const seen = "costs reported after responses are charged only if they fit";
    return { seen, todo: "charge: settle" };
  }
  if (!isPeeked) {
    const seen =
      "costs reported after responses are charged only if they fit, because nothing checks first";
    return { seen, todo: "hits_addend: {number: 0} on a rate limit for the request itself" };
  }
  if (unsettled.every(({ algorithm }) => algorithm?.kind === "fixed_window")) return undefined;
  const seen =
    "costs reported after responses are charged up to twice the limit and drain at " +
    "its rate; envoyproxy/ratelimit counts them in full until its window ends";
  return { seen, todo: "HEADGATE_ALGORITHM=fixed_window, if that matters" };
}

function checkUnreached(
  { domains }: Asked,
  { rules, services }: DoctorPolicy,
  reached: ReadonlySet<Rule>,
): readonly Diagnostic[] {
  // ext_proc checks these limits inside Headgate.
  const inside = new Set(
    services.flatMap(({ rateLimit }) => (rateLimit?.inExtProc === true ? [rateLimit.domain] : [])),
  );
  const wanted = rules.filter(
    ({ domain, effect }) => effect.kind === "limited" && domains.has(domain) && !inside.has(domain),
  );
  const unreached = wanted.filter((rule) => !reached.has(rule));
  const findings = unreached.map(({ domain, label }): Diagnostic => {
    const seen = `no route sends ${shownName(domain)}/${shownName(label)}`;
    return { kind: "finding", id: "HG509", severity: "warning", seen };
  });
  return findingsOr(findings, {
    id: "HG509",
    seen: `${many(wanted.length, "limit")}, and each can be reached`,
  });
}

function checkServices(asked: Asked, { services }: DoctorPolicy): readonly Diagnostic[] {
  const id = "HG508";
  const limited = services.filter(
    ({ rateLimit }) =>
      rateLimit !== undefined && !rateLimit.inExtProc && rateLimit.descriptors.length > 0,
  );
  const findings: Diagnostic[] = [];
  const right: string[] = [];
  for (const service of limited) {
    const here = clusterNames(service).filter((name) => asked.clusters.has(name));
    // No route of this Envoy leads to the service.
    if (here.length === 0) continue;
    const isAsking = here.some((name) => asked.clusters.get(name) === true);
    if (isAsking) right.push(service.name);
    else {
      const names = here.map(shownName).join(", ");
      const seen =
        `routes lead to ${names} (service ${shownName(service.name)}), and none of ` +
        "them checks its limits";
      findings.push({ kind: "finding", id, severity: "error", seen });
    }
  }
  if (findings.length === 0 && right.length === 0) return [];
  return findingsOr(findings, { id, seen: `checked: ${right.map(shownName).join(", ")}` });
}

function shownDescriptor({ domain, entries }: AskedDescriptor): string {
  const parts = (entries ?? []).map(({ key, value }) =>
    value === undefined ? shownName(key) : `${shownName(key)}=${shownName(value)}`,
  );
  return `${shownName(domain)}: (${parts.join(", ")})`;
}

/** Paths of all rules with an effect, by domain and keys. */
class Paths {
  readonly #byKeys = new Map<string, Rule[]>();
  /** Rules with a `*` in a key. */
  readonly #patterned: Rule[] = [];

  constructor(rules: readonly Rule[]) {
    for (const rule of rules) {
      if (rule.effect.kind === "none") continue;
      if (rule.path.some(({ key }) => key.includes("*"))) this.#patterned.push(rule);
      else {
        const text = keysText(rule.domain, rule.path);
        const known = this.#byKeys.get(text);
        if (known === undefined) this.#byKeys.set(text, [rule]);
        else known.push(rule);
      }
    }
  }

  /** Returns the rules that a request's descriptor may reach; undefined if unknown. */
  reachedBy({
    domain,
    entries,
  }: Pick<AskedDescriptor, "domain" | "entries">): readonly Rule[] | undefined {
    if (entries === undefined) return undefined;
    const optional = entries.filter(({ isOptional }) => isOptional);
    if (optional.length > optionalEntriesMax) return undefined;
    return variantsOf(entries).flatMap((variant) => {
      const named = this.#byKeys.get(keysText(domain, variant)) ?? [];
      const patterned = this.#patterned.filter((rule) => rule.domain === domain);
      return [...named, ...patterned].filter(({ path }) => fits(path, variant));
    });
  }
}

/** Returns the combinations with and without each optional entry. */
function variantsOf(entries: readonly AskedEntry[]): readonly (readonly AskedEntry[])[] {
  let variants: readonly (readonly AskedEntry[])[] = [[]];
  for (const entry of entries) {
    const longer = variants.map((variant) => [...variant, entry]);
    variants = entry.isOptional ? [...longer, ...variants] : longer;
  }
  return variants;
}

function keysText(domain: string, steps: readonly { readonly key: string }[]): string {
  return JSON.stringify([domain, ...steps.map(({ key }) => key)]);
}

function fits(path: readonly PathStep[], entries: readonly AskedEntry[]): boolean {
  if (path.length !== entries.length) return false;
  return path.every(({ key, value }, i) => {
    const entry = entries[i];
    if (entry === undefined || !globMatches(parseGlob(key), entry.key)) return false;
    if (value === undefined || entry.value === undefined) return true;
    return globMatches(parseGlob(value), entry.value);
  });
}
