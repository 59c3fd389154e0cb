import { type Priority, priorities } from "../../../core/admission/priority.js";
import { pathPrefixOf } from "../../../core/base/path-pattern.js";
import { ConditionCompiler } from "../../../policy/cel/cel.js";
import { quoteText } from "../../../policy/problems/problem.js";
import type { PriorityPolicy } from "../../../policy/services/service-priority.js";
import type { TreeMap } from "../../base/document.js";
import { type RouteMatch, routeMatch } from "./route-match.js";

/** Requests of a service that a proxy can tell from the others, in the order of its routes. */
export interface RouteClass {
  /** In words: a comment, without a dot. */
  readonly words: string;
  /** Example: `rule-2`; of a route's name. */
  readonly name: string;
  readonly match: RouteMatch;
  /** "bypass": neither counted nor refused. */
  readonly priority: Priority | "bypass";
  /** Where not, Headgate may see another class in them, and only Headgate refuses them. */
  readonly mayShed: boolean;
  /** Requests with this header may be of another class: they are Headgate's to refuse. */
  readonly unlessHeader: string | undefined;
}

/** The classes of a service, and what of its priorities proxies cannot tell. */
interface RouteClasses {
  readonly classes: readonly RouteClass[];
  /** For a person: what is left to Headgate. */
  readonly leftOut: readonly string[];
}

/**
 * The classes of a service's requests as routes tell them: bypassed paths, then rules in order, the
 * header where everybody is believed, paths of authentication, and the default, which comes last
 * and takes all the rest.
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
  /** The most urgent class that a rule gives which is not understood here. */
  readonly spared: Priority | undefined;
}

/**
 * A rule that proxies cannot test may hold for what a later one is about. So what comes after it is
 * only refused as a class that is at least as urgent as that rule's: never too soon.
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

/** A path, or one and all below it, as `matchesPath` has it. */
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
 * Below a prefix, a path that another server may read as a different one does not match: who could
 * write `/static/%2e%2e/orders` would pass uncounted.
 */
function pathMatch(pattern: string): RouteMatch {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return { path: pattern };
  const place = prefix === "" ? { prefix: "/" } : { path_separated_prefix: prefix };
  return { ...place, headers: [plainPath] };
}

/** What `isPlainPath` does. Envoy takes patterns of about a hundred steps at most. */
const plainPath: TreeMap = {
  name: ":path",
  invert_match: true,
  string_match: {
    safe_regex: {
      regex: String.raw`(?i)[^?#]*(/(\.|%2e){1,2}([/;?#].*)?|(//|\\|%2f|%5c).*)`,
    },
  },
};
