import { parseDocument } from "yaml";
import type { Rule } from "../../core/limits/limit.js";
import type { PolicyText } from "../parse.js";
import type { TextPath } from "./edit-text.js";

/** The place of a part of a policy. */
export interface WrittenPlace {
  readonly source: PolicyText;
  readonly path: TextPath;
  /** Whether the file is of `kind: Policy`, in which limits may have a `burst`. */
  readonly isPolicy: boolean;
}

/** The part of a rule's path that the policy already contains. */
interface WrittenSteps extends WrittenPlace {
  /** Number of steps of the path to it; 0: the domain. */
  readonly stepCount: number;
  /** Names that it contains. */
  readonly names: ReadonlySet<string>;
}

/** Returns where to add a rule; undefined if the policy does not contain its domain. */
export function findDeepest(
  sources: readonly PolicyText[],
  domain: string,
  steps: Rule["path"],
): WrittenSteps | undefined {
  const place = domainsOf(sources).find((one) => one.domain === domain);
  if (place === undefined) return undefined;
  for (let stepCount = steps.length; stepCount >= 0; stepCount -= 1) {
    const [found] = descendants(place, steps.slice(0, stepCount));
    if (found === undefined) continue;
    const names = new Set(isObject(found.value) ? Object.keys(found.value) : []);
    return { ...place, path: found.at, stepCount, names };
  }
  return undefined;
}

/** Returns the place of a limit of a rule; undefined if it cannot be determined. */
export function findLimit(
  sources: readonly PolicyText[],
  { domain, path }: Pick<Rule, "domain" | "path">,
  limitIndex: number,
): WrittenPlace | undefined {
  for (const place of domainsOf(sources)) {
    if (place.domain !== domain) continue;
    for (const { value, at } of descendants(place, path)) {
      if (isNamed(value, "rate_limit") && limitIndex === 0) {
        return { ...place, path: [...at, "rate_limit"] };
      }
      const limits = isObject(value) ? value["rate_limits"] : undefined;
      if (Array.isArray(limits) && limitIndex < limits.length) {
        return { ...place, path: [...at, "rate_limits", limitIndex] };
      }
    }
  }
  return undefined;
}

/** Returns the place of a service, and its content. */
export function findService(
  sources: readonly PolicyText[],
  name: string,
): (WrittenPlace & { readonly value: Readonly<Record<string, unknown>> }) | undefined {
  return findItem(sources, "services", name);
}

/** Returns the place of a budget, and its content. */
export function findBudget(
  sources: readonly PolicyText[],
  name: string,
): ReturnType<typeof findService> {
  return findItem(sources, "budgets", name);
}

/** Returns the item of a list of `spec` that has this name. */
function findItem(
  sources: readonly PolicyText[],
  list: "services" | "budgets",
  name: string,
): ReturnType<typeof findService> {
  for (const source of sources) {
    const root = readPlain(source);
    const spec = isObject(root) ? root["spec"] : undefined;
    const items = isObject(spec) ? spec[list] : undefined;
    for (const [i, value] of (Array.isArray(items) ? items : []).entries()) {
      if (!isObject(value) || value["name"] !== name) continue;
      return { source, path: ["spec", list, i], isPolicy: true, value };
    }
  }
  return undefined;
}

/** Returns the place of `spec` in the first file that has one, and its content. */
export function findSpec(sources: readonly PolicyText[]): ReturnType<typeof findService> {
  for (const source of sources) {
    const root = readPlain(source);
    const value = isObject(root) ? root["spec"] : undefined;
    if (isObject(value)) return { source, path: ["spec"], isPolicy: true, value };
  }
  return undefined;
}

interface DomainPlace extends WrittenPlace {
  readonly domain: string;
  readonly value: unknown;
}

function domainsOf(sources: readonly PolicyText[]): readonly DomainPlace[] {
  return sources.flatMap((source): readonly DomainPlace[] => {
    const root = readPlain(source);
    if (!isObject(root)) return [];
    const spec = root["spec"];
    if (!isObject(spec)) {
      return [{ source, path: [], isPolicy: false, domain: String(root["domain"]), value: root }];
    }
    const domains = spec["rateLimits"];
    return (Array.isArray(domains) ? domains : []).map((value: unknown, i) => ({
      source,
      path: ["spec", "rateLimits", i],
      isPolicy: true,
      domain: isObject(value) ? String(value["domain"]) : "",
      value,
    }));
  });
}

/** Yields the descriptors at the end of a rule's path; several if a domain repeats parents. */
function* descendants(
  { value, path }: DomainPlace,
  steps: Rule["path"],
): Generator<{ readonly value: unknown; readonly at: TextPath }> {
  let level: readonly { readonly value: unknown; readonly at: TextPath }[] = [{ value, at: path }];
  for (const step of steps) {
    level = level.flatMap(({ value: above, at }) => {
      const below = isObject(above) ? above["descriptors"] : undefined;
      return (Array.isArray(below) ? below : []).flatMap((one: unknown, i) => {
        const isStep = isObject(one) && textOf(one["key"]) === step.key;
        if (!isStep || textOf(one["value"]) !== step.value) return [];
        return [{ value: one, at: [...at, "descriptors", i] }];
      });
    });
  }
  yield* level;
}

/** Returns a key or value of a policy as text; an empty value counts as absent. */
function textOf(value: unknown): string | undefined {
  return value === undefined || value === null || value === "" ? undefined : String(value);
}

function isNamed(value: unknown, name: string): boolean {
  return isObject(value) && value[name] !== undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a text as plain values. It was read before, so its aliases are bounded. */
function readPlain({ text }: PolicyText): unknown {
  return parseDocument(text, { logLevel: "silent", merge: true }).toJS({ maxAliasCount: -1 });
}
