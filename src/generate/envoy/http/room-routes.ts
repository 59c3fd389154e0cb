import { httpStatuses } from "../../../core/base/http-status.js";
import { pathPrefixOf } from "../../../core/base/path-pattern.js";
import { roomRejectKey } from "../../../core/feedback/runtime-keys.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { type RoomPolicy, roomsOf } from "../../../policy/waiting-rooms/room-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere } from "../base/sides.js";
import { refusedHeader } from "./local-replies.js";
import { routeClasses } from "./route-classes.js";
import { matchesBut, type RouteMatch } from "./route-match.js";
import { allOff } from "./shed-routes.js";

/** Name of the external processor, which answers for waiting rooms. */
const extProcName = "envoy.filters.http.ext_proc";

/** Where the routes of rooms are added. */
interface RoomRoutesPlace {
  /** Names of the HTTP filters that requests pass before the routes. */
  readonly filters: readonly string[];
  /** Enables the external processor for a route. Undefined: the virtual host enables it. */
  readonly answering?: TreeMap;
}

/**
 * Returns the routes of a service's waiting rooms, none of which forwards. They precede all others:
 * first the paths on which pages and applications query a room, then the gates of proxies.
 */
export function roomRoutes(
  service: ServicePolicy,
  context: EnvoyContext,
  { filters, answering }: RoomRoutesPlace,
): readonly Tree[] {
  const rooms = isAskedHere(context) ? roomsOf(service, context.policy) : [];
  const others = filters.filter((filter) => filter !== extProcName);
  const isSaid = others.length > 0 || answering !== undefined;
  const paths = new Set(rooms.map(({ endpointPath }) => endpointPath));
  return [
    ...[...paths].map((path, index) => endpointRoute(path, `${service.name}-room-${index + 1}`)),
    ...rooms.flatMap((room, index) => {
      const matches = gateMatches(room, service, rooms.slice(0, index));
      if (typeof matches === "string") reportGate(room, context, matches);
      return typeof matches === "string" ? [] : gateRoutes(room, matches);
    }),
  ];

  /** Headgate answers before the router does, so this response is only seen without Headgate. */
  function endpointRoute(path: string, name: string): Tree {
    return noted("Headgate answers here. Without it: 503.", {
      name,
      match: { path_separated_prefix: path },
      direct_response: { status: httpStatuses.serviceUnavailable },
      response_headers_to_add: unstored(retryLostSeconds),
      typed_per_filter_config: isSaid ? { ...allOff(others), ...answering } : undefined,
    });
  }

  function gateRoutes({ name }: RoomPolicy, matches: readonly RouteMatch[]): readonly Tree[] {
    const whom = `visitors without a ticket of the waiting room ${name}`;
    const why = `The share of ${whom} that Headgate tells Envoy to turn away; 0 without Headgate.`;
    const routes = matches.map((match, way) => ({
      name: `${service.name}-room-${name}-gate${way === 0 ? "" : `-${way + 1}`}`,
      match: {
        ...match,
        runtime_fraction: {
          default_value: { numerator: 0, denominator: "HUNDRED" },
          runtime_key: roomRejectKey(name),
        },
      },
      direct_response: {
        status: httpStatuses.serviceUnavailable,
        body: { inline_string: "Too many visitors are waiting. Try again in a minute.\n" },
      },
      response_headers_to_add: [...unstored(retryTurnedAwaySeconds), { header: refusedHeader }],
      typed_per_filter_config: allOff(filters),
    }));
    return routes.map((route, way) => (way === 0 ? noted(why, route) : route));
  }
}

/** `retry-after` of a room's endpoint if Headgate did not answer, in seconds. */
const retryLostSeconds = 5;

/** `retry-after` for visitors whom a gate has turned away, in seconds. */
const retryTurnedAwaySeconds = 60;

function unstored(retrySeconds: number): readonly Tree[] {
  return [
    { header: { key: "retry-after", value: String(retrySeconds) } },
    { header: { key: "cache-control", value: "no-store" } },
  ];
}

/**
 * Matches visitors whom a gate may turn away: those whom the room guards, who do not have its
 * cookie, and who certainly do not bypass it. Empty if the room has no gate. A text says why routes
 * cannot distinguish them.
 *
 * @param before rooms that are checked first
 */
function gateMatches(
  room: RoomPolicy,
  service: ServicePolicy,
  before: readonly RoomPolicy[],
): readonly RouteMatch[] | string {
  if (room.gate === undefined || room.order === "passthrough") return [];
  const spared = bypassedMatches(room, service);
  if (typeof spared === "string") return spared;
  const former = before.flatMap((other) => guardedMatches(other, service));
  const others = [...former, ...spared].map(byPathAlone);
  const ways = guardedMatches(room, service).map((match) => {
    return matchesBut({ ...match, headers: [...(match.headers ?? []), ...asked(room)] }, others);
  });
  const matches = ways.flatMap((way) => way ?? []);
  if (ways.includes(undefined) || matches.length > gateRoutesMax) return "it has too many paths";
  return matches;
}

/** Maximum number of routes of one gate. */
const gateRoutesMax = 32;

/** Widens a match with a path to the path alone, so that never too little is left to Headgate. */
function byPathAlone(match: RouteMatch): RouteMatch {
  const { headers: _, ...place } = match;
  return place["prefix"] === "/" ? match : place;
}

/** Returns the requests that a room guards: a match for each of its paths and hosts. */
function guardedMatches({ match }: RoomPolicy, { hosts }: ServicePolicy): readonly RouteMatch[] {
  const paths = match.paths.length === 0 ? ["/*"] : match.paths;
  const isPart = match.hosts.length > 0 && !hosts.every((host) => match.hosts.includes(host));
  // A host may include a port.
  const authorities = isPart
    ? match.hosts.flatMap((host) => [{ exact: host }, { prefix: `${host}:` }])
    : [undefined];
  const methods =
    match.methods.length === 0
      ? []
      : [{ name: ":method", string_match: { safe_regex: { regex: match.methods.join("|") } } }];
  return paths.flatMap((path) =>
    authorities.map((authority) => ({
      ...placeOf(path),
      headers: [
        ...(authority === undefined
          ? []
          : [{ name: ":authority", string_match: { ...authority, ignore_case: true } }]),
        ...methods,
      ],
    })),
  );
}

function placeOf(pattern: string): TreeMap {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return { path: pattern };
  return prefix === "" ? { prefix: "/" } : { path_separated_prefix: prefix };
}

/**
 * Returns the header matches of a request that must ask the room: its cookie is missing. They may
 * match less than what Headgate guards, never more: see `requestKindOf`.
 */
function asked({ cookie, visitors, bypass }: RoomPolicy): readonly TreeMap[] {
  return [
    {
      name: "cookie",
      invert_match: true,
      treat_missing_header_as_empty: true,
      string_match: { contains: `${cookie.name}=` },
    },
    ...(visitors === "navigations"
      ? [
          { name: "accept", string_match: { contains: "text/html" } },
          {
            name: "sec-fetch-mode",
            treat_missing_header_as_empty: true,
            string_match: { safe_regex: { regex: "(navigate)?" } },
          },
        ]
      : [{ name: ":method", invert_match: true, string_match: { exact: "OPTIONS" } }]),
    // Ignores the value, which may be a secret. Headgate compares it.
    ...bypass.headers.map(({ name }) => ({ name, present_match: true, invert_match: true })),
  ];
}

/** Matches requests that bypass a room. A text says why routes cannot distinguish them. */
function bypassedMatches(
  { bypass }: RoomPolicy,
  { priority }: ServicePolicy,
): readonly RouteMatch[] | string {
  if (bypass.sources.length > 0) return "routes cannot tell the addresses that bypass it";
  const { classes, leftOut } = routeClasses(priority);
  const bypassed = classes.filter((one) => {
    return one.priority === "bypass" || bypass.priorities.includes(one.priority);
  });
  const isKnown = bypass.priorities.length === 0 || leftOut.length === 0;
  if (!isKnown || bypassed.some(({ name }) => name === "rest")) {
    return "routes cannot tell the classes that bypass it";
  }
  return bypassed.map(({ match }) => match);
}

function reportGate({ name }: RoomPolicy, { report }: EnvoyContext, why: string): void {
  report({
    id: "HG325",
    spot: { service: undefined, path: ["waitingRooms", name, "gate"] },
    message: `${why}: Headgate alone turns visitors away`,
    hint: "name fewer paths and hosts, or let visitors bypass by a header alone",
  });
}
