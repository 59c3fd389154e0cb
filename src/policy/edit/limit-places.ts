import { parseDocument } from "yaml";
import type { Rule } from "../../core/limits/limit.js";
import type { PolicyText } from "../parse.js";
import type { TextPath } from "./edit-text.js";

/** Where something of a policy is written. */
export interface WrittenPlace {
  readonly source: PolicyText;
  readonly path: TextPath;
  /** Whether the file is of `kind: Policy`, in which limits may have a `burst`. */
  readonly isPolicy: boolean;
}

/** The part of a rule's path that is written already. */
interface WrittenSteps extends WrittenPlace {
  /** How many steps of the path lead there; 0: the domain. */
  readonly stepCount: number;
  /** What stands there. */
  readonly names: ReadonlySet<string>;
}

/** Where a rule would have to be added; undefined: its domain is not written. */
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

/** Where a limit of a rule is written. Undefined: what is written there cannot be told. */
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

/** Where a service is written, and what stands there. */
export function findService(
  sources: readonly PolicyText[],
  name: string,
): (WrittenPlace & { readonly value: Readonly<Record<string, unknown>> }) | undefined {
  return findItem(sources, "services", name);
}

/** Where a budget is written, and what stands there. */
export function findBudget(
  sources: readonly PolicyText[],
  name: string,
): ReturnType<typeof findService> {
  return findItem(sources, "budgets", name);
}

/** The item of a list of `spec` that has this name. */
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

/** Where `spec` is written, in the first file that has one, and what stands there. */
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

/** Descriptors at the end of a rule's path; several where a domain repeats what is above them. */
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

/** What a policy says of a key or value; an empty value is none. */
function textOf(value: unknown): string | undefined {
  return value === undefined || value === null || value === "" ? undefined : String(value);
}

function isNamed(value: unknown, name: string): boolean {
  return isObject(value) && value[name] !== undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a text says, as plain values. It was read before, so its aliases are bounded. */
function readPlain({ text }: PolicyText): unknown {
  return parseDocument(text, { logLevel: "silent", merge: true }).toJS({ maxAliasCount: -1 });
}
