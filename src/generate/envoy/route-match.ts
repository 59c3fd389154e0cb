import type { FactTest } from "../../policy/condition-alternatives.js";
import type { TreeMap } from "../document.js";

/** A match of a route. Source: envoy.config.route.v3.RouteMatch. */
export interface RouteMatch extends TreeMap {
  readonly headers?: readonly TreeMap[] | undefined;
}

/**
 * The match of a route for tests that hold together; undefined where routes cannot test them.
 *
 * Source: envoy.config.route.v3.HeaderMatcher.
 */
export function routeMatch(tests: readonly FactTest[]): RouteMatch | undefined {
  const place = tests.find((test) => placeOf(test) !== undefined);
  const headers: TreeMap[] = [];
  for (const test of tests) {
    if (test === place) continue;
    const header = headerMatch(test);
    if (header === undefined) return undefined;
    headers.push(header);
  }
  return {
    ...((place && placeOf(place)) ?? { prefix: "/" }),
    headers: headers.length === 0 ? undefined : headers,
  };
}

/** A test that is a route's path; undefined where it is none. */
function placeOf({ fact, test, text }: FactTest): TreeMap | undefined {
  const isUrlPath = fact.kind === "urlPath";
  if (isUrlPath && test === "exact") return { path: text };
  const isPath = isUrlPath || fact.name === ":path";
  if (!isPath || test !== "prefix" || !text.startsWith("/")) return undefined;
  // A path without its query never has these; one with it is looked at as a header.
  return /[?#]/.test(text) ? undefined : { prefix: text };
}

function headerMatch({ fact, test, text }: FactTest): TreeMap | undefined {
  if (fact.kind === "urlPath") {
    // Behind it may come a query, which only the beginning of a path is sure to be without.
    if (test !== "prefix" || /[?#]/.test(text)) return undefined;
    return { name: ":path", string_match: { prefix: text } };
  }
  const { name } = fact;
  if (test === "present") return { name, present_match: true };
  return { name, string_match: { [test]: text } };
}
