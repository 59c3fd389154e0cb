import { assert } from "../../../core/base/errors.js";
import { httpStatuses } from "../../../core/base/http-status.js";
import { shedKey } from "../../../core/feedback/runtime-keys.js";
import { hasCriticalRoutes } from "../../../policy/services/configured-share.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { isDefaultBypass, type PriorityPolicy } from "../../../policy/services/service-priority.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere, isHeldHere } from "../base/sides.js";
import { filterOff } from "../base/values.js";
import { refusedHeader } from "./local-replies.js";
import { isInQuota } from "./quota-filter.js";
import { filterDescriptors } from "./rate-limit-actions.js";
import { type RouteClass, routeClasses } from "./route-classes.js";
import { matchesBut } from "./route-match.js";

/**
 * Returns routes that refuse shares of a service's requests, none of which forwards. They precede
 * routes of others, which decide what reaches the service and through which filters.
 */
export function shedRoutes(
  service: ServicePolicy,
  context: EnvoyContext,
  filters: readonly string[],
): readonly Tree[] {
  reportUnreported(service, context);
  if (!shedsHere(service, context)) return [];
  const { classes, unshed } = shedClasses(service.priority);
  if (unshed.length > 0) reportUnshed(service, context, unshed);
  return classes.map((one) => shedRoute(one, service, filters));
}

/**
 * Returns the classes of which proxies refuse shares. Their matches do not overlap, so their order
 * does not matter. `unshed` names the classes that would need too many matches.
 */
export function shedClasses(policy: PriorityPolicy): {
  readonly classes: readonly RouteClass[];
  readonly unshed: readonly string[];
} {
  const { classes } = routeClasses(policy);
  const unshed: string[] = [];
  const shed = classes.flatMap((one, index): readonly RouteClass[] => {
    if (!one.mayShed) return [];
    const others = classes.slice(0, index).filter((other) => !isShedAlike(one, other));
    const otherMatches = others.map(({ match }) => match);
    const matches = matchesBut(one.match, otherMatches);
    if (matches === undefined) unshed.push(one.name);
    return (matches ?? []).map((match, way) => {
      return { ...one, name: way === 0 ? one.name : `${one.name}-${way + 1}`, match };
    });
  });
  return { classes: shed, unshed };
}

function isShedAlike(one: RouteClass, other: RouteClass): boolean {
  return other.mayShed && other.priority === one.priority;
}

/** Reports effects of our own routes that are missing if all routes belong to others. */
function reportUnreported(service: ServicePolicy, context: EnvoyContext): void {
  const { name, priority, rateLimit } = service;
  const isCounted =
    filterDescriptors(rateLimit).length > 0 ||
    context.policy.quotas.some((quota) => isInQuota(quota, service));
  const isBypassed = priority.bypassPaths.length > 0 && !isDefaultBypass(priority);
  const unreported = [
    ...(isBypassed && isCounted && isAskedHere(context)
      ? [
          {
            path: "bypassPaths",
            words: "requests of bypassed paths count against limits",
            hint: "rateLimit: {inExtProc: true} with admission, and Headgate exempts them",
          },
        ]
      : []),
    ...(hasCriticalRoutes(service) && isHeldHere(service, context)
      ? [
          {
            path: "rules",
            words: "breakers refuse critical requests like all others",
            hint: "let admission refuse by class, below the limits of the breakers",
          },
        ]
      : []),
  ];
  const whose =
    context.options.form === "fragments"
      ? "fragments add no routes by class next to yours"
      : "the routes of a gateway are your own";
  for (const { path, words, hint } of unreported) {
    context.report({
      id: "HG366",
      spot: { service: name, path: ["priority", path] },
      message: `${whose}, and ${words} there`,
      hint,
    });
  }
}

function reportUnshed(
  { name }: ServicePolicy,
  { report }: EnvoyContext,
  classes: readonly string[],
): void {
  report({
    id: "HG365",
    spot: { service: name, path: ["priority", "rules"] },
    message:
      `routes cannot tell ${classes.join(", ")} from the classes before: only ` +
      "Headgate refuses their requests",
    hint: "write rules with fewer conditions, or fewer rules",
  });
}

/** Reports whether this proxy refuses a service's requests itself when Headgate tells it to. */
export function shedsHere(service: ServicePolicy, context: EnvoyContext): boolean {
  const { admission, concurrency } = service;
  const isReported = (concurrency?.feedback.length ?? 0) > 0 || admission?.gate !== undefined;
  return isReported && isHeldHere(service, context);
}

/**
 * Refuses the share of a class that Headgate sets, before anything is requested or counted. No
 * filter sees the request, or a controller would take refusals for fast responses of the service.
 */
export function shedRoute(
  { name, match, priority, unlessHeader }: RouteClass,
  service: ServicePolicy,
  filters: readonly string[],
): Tree {
  assert(priority !== "bypass", "bypassed requests are not refused");
  const { reject } = service.admission ?? {};
  const headers = [
    ...(match.headers ?? []),
    ...(unlessHeader === undefined
      ? []
      : [{ name: unlessHeader, present_match: true, invert_match: true }]),
  ];
  const tree: TreeMap = {
    name: `${service.name}-${name}-shed`,
    match: {
      ...match,
      headers: headers.length === 0 ? undefined : headers,
      runtime_fraction: {
        default_value: { numerator: 0, denominator: "HUNDRED" },
        runtime_key: shedKey(service.name, priority),
      },
    },
    direct_response: {
      status: reject?.statusByCause.gate ?? httpStatuses.serviceUnavailable,
      body: { inline_string: "The service is overloaded." },
    },
    response_headers_to_add: [
      { header: { key: "retry-after", value: String(reject?.retryAfterSecondsMin ?? 1) } },
      { header: refusedHeader },
    ],
    typed_per_filter_config: allOff(filters),
  };
  return noted(
    `The share of ${priority} requests that Headgate tells Envoy to refuse; 0 without Headgate.`,
    tree,
  );
}

/** Disables these filters for a route. Priority headers are still removed. */
export function allOff(filters: readonly string[]): TreeMap | undefined {
  if (filters.length === 0) return undefined;
  return Object.fromEntries(filters.map((name) => [name, filterOff()]));
}
