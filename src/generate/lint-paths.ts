import { pathPrefixOf, urlPathOf } from "../core/base/path-pattern.js";
import type { Rule } from "../core/limits/limit.js";
import { ConditionCompiler } from "../policy/cel/cel.js";
import { pathHeader } from "../policy/cel/request-facts.js";
import { quoteText } from "../policy/problems/problem.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { PriorityPolicy } from "../policy/services/service-priority.js";
import type { GeneratedPolicy, TargetProblem } from "./base/generator.js";

/** Lints the paths of a policy. All problems are warnings. */
export function lintPaths({
  services,
  rules,
}: Pick<GeneratedPolicy, "services" | "rules">): readonly TargetProblem[] {
  return services.flatMap((service) => [
    ...service.priority.bypassPaths.flatMap((path) => reachOf(path, service, rules) ?? []),
    ...(["bypassPaths", "authPaths"] as const).flatMap((name) =>
      service.priority[name].flatMap((path) => lintSlash(path, name, service) ?? []),
    ),
  ]);
}

/** Maximum number of policy entries that one message names. */
const namedMax = 5;

/** Reports what a bypassed prefix exposes, as far as the policy knows paths below it. */
function reachOf(
  pattern: string,
  service: ServicePolicy,
  rules: readonly Rule[],
): TargetProblem | undefined {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return undefined;
  const isBelow = (path: string): boolean => `${urlPathOf(path)}/`.startsWith(`${prefix}/`);
  const found = [
    ...classRules(service.priority, isBelow),
    ...service.priority.authPaths.filter(isBelow).map((path) => `authPaths ${quoteText(path)}`),
    ...limitsByPath(service, rules, isBelow),
  ];
  const more = found.length > namedMax ? [`${found.length - namedMax} more`] : [];
  const named = [...found.slice(0, namedMax), ...more].join(", ");
  const place = prefix === "" ? "every path" : `${quoteText(prefix)} and every path below it`;
  const unused = named === "" ? "" : `; without effect there: ${named}`;
  return {
    id: "HG440",
    spot: { service: service.name, path: ["priority", "bypassPaths"] },
    message: `${place} pass uncounted, and are never refused${unused}`,
    hint: "list single paths, unless nothing below ever needs a limit",
  };
}

function classRules(
  { rules }: PriorityPolicy,
  isBelow: (path: string) => boolean,
): readonly string[] {
  const compiler = new ConditionCompiler();
  return rules.flatMap(({ when }, index) => {
    const tests = (compiler.alternatives(when) ?? []).flat();
    const found = tests.find(({ fact, test, text }) => {
      const isPath = fact.kind === "urlPath" || fact.name === pathHeader;
      return isPath && (test === "exact" || test === "prefix") && isBelow(text);
    });
    return found === undefined ? [] : [`rule ${index + 1} (${quoteText(found.text)})`];
  });
}

function limitsByPath(
  { rateLimit }: ServicePolicy,
  rules: readonly Rule[],
  isBelow: (path: string) => boolean,
): readonly string[] {
  const parts = (rateLimit?.descriptors ?? []).flatMap((descriptor) => descriptor.parts);
  const pathKeys = new Set(
    parts.flatMap((part) => (part.kind === "header" && part.header === pathHeader ? part.key : [])),
  );
  return rules
    .filter(({ domain, effect, path }) => {
      if (domain !== rateLimit?.domain || effect.kind !== "limited") return false;
      return path.some(
        ({ key, value }) => pathKeys.has(key) && value !== undefined && isBelow(value),
      );
    })
    .map(({ label }) => `the limit ${quoteText(label)}`);
}

function lintSlash(
  path: string,
  name: "bypassPaths" | "authPaths",
  service: ServicePolicy,
): TargetProblem | undefined {
  if (!path.endsWith("/") || path === "/") return undefined;
  return {
    id: "HG441",
    spot: { service: service.name, path: ["priority", name] },
    message: `${quoteText(path)} matches only that path, with its slash, and nothing below it`,
    hint: `${quoteText(`${path}*`)} for all paths below, or remove the slash`,
  };
}
