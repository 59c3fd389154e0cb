import { type Priority, priorities } from "../../../core/admission/priority.js";
import { pathPrefixOf } from "../../../core/base/path-pattern.js";
import { ConditionCompiler } from "../../../policy/cel/cel.js";
import { quoteText } from "../../../policy/problems/problem.js";
import type { PriorityPolicy } from "../../../policy/services/service-priority.js";
import type { TreeMap } from "../../base/document.js";
import { type RouteMatch, routeMatch } from "./route-match.js";

/** Requests of a service that a proxy can distinguish from others, in the order of its routes. */
export interface RouteClass {
  /** In words, for a comment, without a full stop. */
  readonly words: string;
  /** Part of a route's name. Example: `rule-2`. */
  readonly name: string;
  readonly match: RouteMatch;
  /** "bypass": neither counted nor refused. */
  readonly priority: Priority | "bypass";
  /** False if Headgate may assign another class to them, so that only Headgate refuses them. */
  readonly mayShed: boolean;
  /** Requests with this header may have another class, so only Headgate refuses them. */
  readonly unlessHeader: string | undefined;
}

/** The classes of a service, and the parts of its priorities that proxies cannot evaluate. */
interface RouteClasses {
  readonly classes: readonly RouteClass[];
  /** What is left to Headgate, for people to read. */
  readonly leftOut: readonly string[];
}

/**
 * Returns the classes of a service's requests as routes distinguish them: bypassed paths, rules in
 * order, the header if every caller is trusted, authentication paths, and the default, which comes
 * last and matches all other requests.
 */
export function routeClasses(policy: PriorityPolicy): RouteClasses {
  const { rules, leftOut, spared } = ruleClasses(policy);
  const { header, trust } = policy;
  const isHeaderRead = trust.anyone || trust.sources.length > 0 || trust.principals.length > 0;
  const isLeft = isHeaderRead && !trust.anyone;
  const unlessHeader = isLeft ? header : undefined;
  const rest = (more: Omit<RouteClass, "mayShed" | "unlessHeader">): RouteClass => {
    return { ...more, mayShed: mayShedAs(more.priority, spared), unlessHeader };
  };
  const stated = priorities.map((priority) => {
    const value = { exact: priority, ignore_case: true };
    const match = { prefix: "/", headers: [{ name: header, string_match: value }] };
    const words = `Callers that send ${header}: ${priority}`;
    return rest({ words, name: `stated-${priority}`, match, priority });
  });
  const headerWords =
    `trusted callers may set a class in ${header}: this proxy alone does not ` +
    "refuse such requests, and handles them at default priority";
  return {
    classes: [
      ...policy.bypassPaths.map((path, index) => pathClass(path, `bypass-${index + 1}`, "bypass")),
      ...rules,
      ...(trust.anyone ? stated : []),
      ...policy.authPaths.map((path, index) => pathClass(path, `auth-${index + 1}`, "critical")),
      rest({
        words: "All others",
        name: "rest",
        match: { prefix: "/" },
        priority: policy.default,
      }),
    ],
    leftOut: isLeft ? [...leftOut, headerWords] : leftOut,
  };
}

interface RuleClasses {
  readonly rules: readonly RouteClass[];
  readonly leftOut: readonly string[];
  /** The most urgent class of a rule that proxies cannot evaluate. */
  readonly spared: Priority | undefined;
}

/**
 * A rule that proxies cannot evaluate may match requests of a later rule. So later classes are only
 * shed if they are at least as urgent as that rule's class: never too early.
 */
function ruleClasses({ rules }: PriorityPolicy): RuleClasses {
  const compiler = new ConditionCompiler();
  const classes: RouteClass[] = [];
  const leftOut: string[] = [];
  let spared: Priority | undefined;
  rules.forEach(({ when, is }, index) => {
    const matches = compiler.alternatives(when)?.map((tests) => routeMatch(tests));
    const known = matches?.filter((match) => match !== undefined) ?? [];
    if (matches === undefined || known.length < matches.length) {
      leftOut.push(`the rule ${quoteText(when)}, which makes requests ${is}`);
      if (spared === undefined || isMoreUrgent(is, spared)) spared = is;
      return;
    }
    const mayShed = mayShedAs(is, spared);
    const isOne = known.length === 1;
    known.forEach((match, place) => {
      classes.push({
        words: `Rule ${index + 1}${isOne ? "" : `, way ${place + 1}`}: ${is}`,
        name: `rule-${index + 1}${isOne ? "" : `-${place + 1}`}`,
        match,
        priority: is,
        mayShed,
        unlessHeader: undefined,
      });
    });
  });
  return { rules: classes, leftOut, spared };
}

function mayShedAs(priority: Priority | "bypass", spared: Priority | undefined): boolean {
  if (priority === "bypass" || priority === "critical") return false;
  return spared === undefined || !isMoreUrgent(spared, priority);
}

function isMoreUrgent(one: Priority, other: Priority): boolean {
  return priorities.indexOf(one) < priorities.indexOf(other);
}

/** Returns the class of one path, or of a path and everything below it, as in `matchesPath`. */
function pathClass(path: string, name: string, priority: "bypass" | "critical"): RouteClass {
  return {
    words: priority === "bypass" ? "Neither counted nor refused" : "Authentication: critical",
    name,
    match: pathMatch(path),
    priority,
    mayShed: false,
    unlessHeader: undefined,
  };
}

/**
 * Below a prefix, a path that another server may interpret differently does not match. Otherwise a
 * caller could send `/static/%2e%2e/orders` uncounted.
 */
function pathMatch(pattern: string): RouteMatch {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return { path: pattern };
  const place = prefix === "" ? { prefix: "/" } : { path_separated_prefix: prefix };
  return { ...place, headers: [plainPath] };
}

/** The same test as `isPlainPath`. Envoy accepts patterns of at most about a hundred steps. */
const plainPath: TreeMap = {
  name: ":path",
  invert_match: true,
  string_match: {
    safe_regex: {
      regex: String.raw`(?i)[^?#]*(/(\.|%2e){1,2}([/;?#].*)?|(//|\\|%2f|%5c).*)`,
    },
  },
};
