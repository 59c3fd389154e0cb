import type { FactTest } from "../../../policy/cel/condition-alternatives.js";
import type { TreeMap } from "../../base/document.js";

/** A route's match. Source: envoy.config.route.v3.RouteMatch. */
export interface RouteMatch extends TreeMap {
  readonly headers?: readonly TreeMap[] | undefined;
}

/**
 * Returns a route's match for tests that must all be true. Undefined if routes cannot test them.
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

/** Returns the path match of a test. Undefined if routes cannot match it as a path. */
function placeOf({ fact, test, text }: FactTest): TreeMap | undefined {
  const isUrlPath = fact.kind === "urlPath";
  if (isUrlPath && test === "exact") return { path: text };
  const isPath = isUrlPath || fact.name === ":path";
  if (!isPath || test !== "prefix" || !text.startsWith("/")) return undefined;
  // A path without its query never contains these. One with a query is matched as a header.
  return /[?#]/.test(text) ? undefined : { prefix: text };
}

function headerMatch({ fact, test, text }: FactTest): TreeMap | undefined {
  if (fact.kind === "urlPath") {
    // A query may follow the path in `:path`, so only a prefix of the path can be tested.
    if (test !== "prefix" || /[?#]/.test(text)) return undefined;
    return { name: ":path", string_match: { prefix: text } };
  }
  const { name } = fact;
  if (test === "present") return { name, present_match: true };
  return { name, string_match: { [test]: text } };
}

/** Maximum number of matches to distinguish a class. */
const matchesMax = 32;

/**
 * Returns matches that together match everything that `match` matches and none of `others` does.
 * There may be several, since a match has no "or". Undefined if more than 32 would be needed.
 *
 * They may share one runtime key for a share of all their requests: Envoy draws one number for each
 * request, whatever number of routes it tries.
 */
export function matchesBut(
  match: RouteMatch,
  others: readonly RouteMatch[],
): readonly RouteMatch[] | undefined {
  let ways: readonly HeaderTests[] = [new Map()];
  for (const other of others) {
    const misses = missesOf(other);
    ways = withoutNarrower(ways.flatMap((way) => misses.map((miss) => new Map([...way, ...miss]))));
    if (ways.length > matchesMax) return undefined;
  }
  return ways.map((way) => {
    const headers = [...(match.headers ?? []), ...way.values()];
    return { ...match, headers: headers.length === 0 ? undefined : headers };
  });
}

/** Header matches that must all be true, by their text. */
type HeaderTests = ReadonlyMap<string, TreeMap>;

function headerTests(headers: readonly TreeMap[]): HeaderTests {
  return new Map(headers.map((header) => [JSON.stringify(header), header]));
}

/** A way adds nothing if another way matches everything that it matches. */
function withoutNarrower(ways: readonly HeaderTests[]): readonly HeaderTests[] {
  const isNarrower = (way: HeaderTests, other: HeaderTests): boolean =>
    way.size > other.size && [...other.keys()].every((text) => way.has(text));
  const distinct = new Map(ways.map((way) => [[...way.keys()].sort().join("\n"), way]));
  const all = [...distinct.values()];
  return all.filter((way) => !all.some((other) => isNarrower(way, other)));
}

/** Returns the ways in which a request can fail to match a route. */
function missesOf(match: RouteMatch): readonly HeaderTests[] {
  const { headers = [] } = match;
  const place = placeMiss(match);
  return [
    ...(place === undefined ? [] : [headerTests(place)]),
    ...headers.map((header) => headerTests([opposite(header)])),
  ];
}

/** Matches the paths that a route does not match. Undefined if the route matches all paths. */
function placeMiss(match: RouteMatch): readonly TreeMap[] | undefined {
  const { path, prefix, path_separated_prefix: folder } = match;
  const isNot = (test: TreeMap): TreeMap => {
    return { name: ":path", invert_match: true, string_match: test };
  };
  if (typeof path === "string") return [isNot({ exact: path }), isNot({ prefix: `${path}?` })];
  if (typeof folder === "string") {
    return [isNot({ exact: folder }), ...["/", "?"].map((end) => isNot({ prefix: folder + end }))];
  }
  return prefix === "/" || prefix === undefined ? undefined : [isNot({ prefix })];
}

/** A missing header has no value that a match could require. */
function opposite(header: TreeMap): TreeMap {
  const { invert_match: wasInverted, ...rest } = header;
  if (wasInverted === true) return rest;
  const isPresence = header["present_match"] === true;
  const missing = isPresence ? undefined : { treat_missing_header_as_empty: true };
  return { ...rest, invert_match: true, ...missing };
}
