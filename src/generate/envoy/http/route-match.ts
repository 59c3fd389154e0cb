import type { FactTest } from "../../../policy/cel/condition-alternatives.js";
import type { TreeMap } from "../../base/document.js";

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

/** Matches beyond which a class is not told apart. */
const matchesMax = 32;

/**
 * Matches that together hold for what `match` holds for and none of `others` does: several, since a
 * match has no "or". Undefined where they would be more than 32.
 *
 * A share that each of them takes by one runtime key is the share of all: Envoy draws one number
 * for a request, whatever routes it tries.
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

/** Header matches that hold together, by their text. */
type HeaderTests = ReadonlyMap<string, TreeMap>;

function headerTests(headers: readonly TreeMap[]): HeaderTests {
  return new Map(headers.map((header) => [JSON.stringify(header), header]));
}

/** What holds for a part of what another way holds for adds nothing to it. */
function withoutNarrower(ways: readonly HeaderTests[]): readonly HeaderTests[] {
  const isNarrower = (way: HeaderTests, other: HeaderTests): boolean =>
    way.size > other.size && [...other.keys()].every((text) => way.has(text));
  const distinct = new Map(ways.map((way) => [[...way.keys()].sort().join("\n"), way]));
  const all = [...distinct.values()];
  return all.filter((way) => !all.some((other) => isNarrower(way, other)));
}

/** The ways in which a request is not what a route matches. */
function missesOf(match: RouteMatch): readonly HeaderTests[] {
  const { headers = [] } = match;
  const place = placeMiss(match);
  return [
    ...(place === undefined ? [] : [headerTests(place)]),
    ...headers.map((header) => headerTests([opposite(header)])),
  ];
}

/** What the path of a request is when a match's place is not its own; undefined: it always is. */
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

/** A header that is not there is no value that a match could ask for. */
function opposite(header: TreeMap): TreeMap {
  const { invert_match: wasInverted, ...rest } = header;
  if (wasInverted === true) return rest;
  const isPresence = header["present_match"] === true;
  const missing = isPresence ? undefined : { treat_missing_header_as_empty: true };
  return { ...rest, invert_match: true, ...missing };
}
