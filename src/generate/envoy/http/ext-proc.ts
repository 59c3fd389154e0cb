import { expectedTimeoutHeader, grpcTimeoutHeader } from "../../../core/admission/deadline.js";
import { orcaHeader } from "../../../core/admission/orca.js";
import { readsBodies } from "../../../policy/budgets/budget-policy.js";
import {
  addBudgetNeeds,
  addRequestNeeds,
  addRoomNeeds,
  type RequestNeeds,
} from "../../../policy/request-needs.js";
import { asksForAdmission } from "../../../policy/services/configured-share.js";
import { createPriorityClassifier } from "../../../policy/services/priority-classifier.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { serviceWaits } from "../../../policy/services/service-waits.js";
import { softAnswers } from "../../../policy/services/soft-answers.js";
import type { RoomPolicy } from "../../../policy/waiting-rooms/room-policy.js";
import { type PolicyRooms, roomsOf } from "../../../policy/waiting-rooms/room-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { GeneratedPolicy } from "../../base/generator.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { envoyGrpc, httpFilter } from "../base/http-filter.js";
import { durationText, typed } from "../base/values.js";

/**
 * Returns how long Envoy waits for an answer, in milliseconds. If requests pass without an answer,
 * it is Envoy's own default. If they are refused without one, a longer wait can only help.
 */
export function messageTimeoutMs({ policy }: EnvoyContext): number {
  return policy.proxies.headgate.deniesWithoutAnswer ? 1_000 : 200;
}

/** Margin that Headgate adds to announced waits. Source: `waitTimeoutMarginMs` of admission. */
export const announcedWaitMarginMs = 200;

/** Reports whether a service's requests use ext_proc for admission, limits or a waiting room. */
export function usesExtProc(service: ServicePolicy, policy: PolicyRooms): boolean {
  const isLimited = service.rateLimit?.inExtProc === true || service.usage !== undefined;
  return isLimited || asksForAdmission(service) || roomsOf(service, policy).length > 0;
}

/**
 * Returns the filter that requests admission. Undefined if no service uses it. It sends Headgate
 * the headers and attributes that the policy reads, and no others.
 *
 * Source: envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor.
 */
export function extProcFilter(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): Tree | undefined {
  const asking = services.filter((service) => usesExtProc(service, context.policy));
  if (asking.length === 0) return undefined;
  const { deniesWithoutAnswer } = context.policy.proxies.headgate;
  const rooms = asking.flatMap((service) => roomsOf(service, context.policy));
  const needs = needsOf(asking, rooms, context.policy);
  const [headers, attributes] = [[...needs.headers].sort(), [...needs.attributes].sort()];
  const isSampled = asking.some(({ admission }) => (admission?.sampleRatio ?? 1) < 1);
  const answersOf = softAnswers(context.policy);
  return httpFilter("ext_proc", "ExternalProcessor", {
    grpc_service: envoyGrpc(context.headgateClusters.decisions),
    stat_prefix: "headgate",
    failure_mode_allow: noted(
      deniesWithoutAnswer
        ? "Without an answer, the request is refused."
        : "Without an answer, the request passes.",
      !deniesWithoutAnswer,
    ),
    status_on_error: hasFeature(context, "extProcErrorStatus")
      ? { code: "ServiceUnavailable" }
      : undefined,
    message_timeout: durationText(messageTimeoutMs(context)),
    max_message_timeout: waitOf(asking, context),
    processing_mode: processingMode(),
    allow_mode_override: isSampled
      ? noted("Headgate samples the responses of some requests only (sampleRatio).", true)
      : undefined,
    request_attributes: attributes.length === 0 ? undefined : attributes,
    forward_rules: noted("The headers that the policy uses. Other headers are not sent.", {
      allowed_headers: { patterns: headers.map((exact) => ({ exact })) },
    }),
    mutation_rules: mutationRules(asking, answersOf, rooms.length > 0),
    metadata_options: metadataOptions(asking),
    // If requests can fall back, Envoy selects the route again when Headgate asks for it.
    ...(asking.some((service) => answersOf(service).isRouted) ? {} : keptRoute(context)),
  });
}

function metadataOptions(services: readonly ServicePolicy[]): Tree {
  const isMeasured = services.some(({ usage }) => usage !== undefined);
  const namespaces = services.flatMap(({ usage }) =>
    usage?.source.kind === "metadata" ? [usage.source.namespace] : [],
  );
  const words = isMeasured ? "priority, service, reservation, model" : "priority, service";
  return noted(`\`headgate: {${words}}\`, for later filters and access logs.`, {
    receiving_namespaces: { untyped: ["headgate"] },
    forwarding_namespaces:
      namespaces.length === 0
        ? undefined
        : noted("Where other filters say what calls used.", {
            untyped: [...new Set(namespaces)].sort(),
          }),
  });
}

/** Older Envoys have a switch instead of the three actions. */
function keptRoute(context: EnvoyContext): TreeMap {
  const why = "Keeps the route that was chosen from the original request.";
  return hasFeature(context, "routeCacheAction")
    ? { route_cache_action: noted(why, "RETAIN") }
    : { disable_clear_route_cache: noted(why, true) };
}

/**
 * Tells Headgate which service a route leads to: the value of `envoy.filters.http.ext_proc` under
 * typed_per_filter_config. Returns `extProcOff` for services that do not use it.
 *
 * Source: envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute.
 */
export function extProcPerRoute(service: ServicePolicy, { policy }: EnvoyContext): TreeMap {
  if (!usesExtProc(service, policy)) return extProcOff();
  return perRoute({
    overrides: {
      processing_mode: readsBodies(service) ? processingMode(service) : undefined,
      grpc_initial_metadata: [{ key: "x-headgate-service", value: service.name }],
    },
  });
}

/** Disables ext_proc for a route, including routes that Envoy answers itself. */
export function extProcOff(): TreeMap {
  return perRoute({ disabled: true });
}

function perRoute(fields: TreeMap): TreeMap {
  return typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", fields);
}

/** Undefined: no request waits, and Envoy does not extend its timeout. */
function waitOf(services: readonly ServicePolicy[], { policy }: EnvoyContext): Tree | undefined {
  const longestMs = Math.max(...services.map(serviceWaits(policy.rules)));
  if (longestMs === 0) return undefined;
  const why = "The longest delay of a limit and maxWait of a queue, plus 200 ms.";
  return noted(why, durationText(longestMs + announcedWaitMarginMs));
}

/** @param service the only service that it is for. Undefined: any */
export function processingMode(service?: ServicePolicy): Tree {
  const isBodyRead = service !== undefined && readsBodies(service);
  const why =
    `${isBodyRead ? "The body of a request says what it may cost." : "Headers only."} Trailers ` +
    "keep the stream open until the response is complete; otherwise a permit would be released " +
    "at the response headers.";
  return noted(why, {
    request_header_mode: "SEND",
    response_header_mode: "SEND",
    request_body_mode: isBodyRead ? "BUFFERED" : "NONE",
    response_body_mode: "NONE",
    // After an empty body, trailers would overtake a filter that waits for the body.
    request_trailer_mode: isBodyRead ? "SEND" : "SKIP",
    response_trailer_mode: "SEND",
  });
}

function mutationRules(
  services: readonly ServicePolicy[],
  answersOf: ReturnType<typeof softAnswers>,
  hasRooms: boolean,
): Tree {
  const names = services.flatMap((service) => {
    const { priority, admission } = service;
    const stated = admission?.deadline?.header;
    const own = [priority.header, ...answersOf(service).headers];
    return stated === undefined ? own : [...own, stated];
  });
  const own = names.filter((name) => !name.startsWith("x-headgate-"));
  const hasMarks = own.length < names.length;
  const regex = mutableHeaderPattern(
    own,
    hasRooms ? setByRooms : hasMarks ? setByBudgets : alwaysSet,
  );
  if (regex === undefined) {
    const why = "Too many names for a pattern: all but pseudo-headers, host and x-envoy-*.";
    return noted(why, { disallow_system: true });
  }
  const why = hasRooms
    ? "The class and the remaining time of requests; of responses, cookies and pages of waiting " +
      "rooms, retry-after and causes."
    : "The class and the remaining time of requests, and the retry-after and cause of refusals.";
  return noted(why, { disallow_all: true, allow_expression: { regex } });
}

/** Headers that admission reads from all requests and responses. */
const commonHeaders: readonly string[] = [
  ":authority",
  ":method",
  ":path",
  "content-type",
  grpcTimeoutHeader,
  expectedTimeoutHeader,
  ":status",
  "grpc-status",
  orcaHeader,
  "x-envoy-overloaded",
];

/** Returns what admission to these services reads. A test compares it with admission itself. */
function needsOf(
  services: readonly ServicePolicy[],
  rooms: readonly RoomPolicy[],
  { budgets }: Pick<GeneratedPolicy, "budgets">,
): RequestNeeds {
  const needs = { headers: new Set(commonHeaders), attributes: new Set<string>() };
  for (const room of rooms) addRoomNeeds(room, needs);
  for (const budget of budgets) addBudgetNeeds(budget, needs);
  for (const service of services) {
    addRequestNeeds(service, createPriorityClassifier(service.priority), needs);
  }
  return needs;
}

/**
 * Patterns of header names, and the length of a pattern with more names that Envoy surely accepts:
 * it refuses programs of more than 100 steps. Source: Envoy, `re2.max_program_size.error_level`.
 */
interface MutableHeaders {
  readonly patterns: readonly string[];
  readonly lengthMax: number;
}

/**
 * Headers that Headgate sets in requests and refusals with every policy. The patterns are shorter
 * than the names `grpc-timeout`, `grpc-status-details-bin`, `grpc-retry-pushback-ms` and
 * `x-headgate-reason`. 108 characters have 100 steps.
 */
const alwaysSet: MutableHeaders = {
  patterns: ["grpc-[a-z-]+", "x-headgate-[a-z]+", "retry-after", "content-type"],
  lengthMax: 104,
};

/** The same with longer names, such as `x-headgate-budget-warning`. A class is one step. */
const setByBudgets: MutableHeaders = {
  patterns: ["grpc-[a-z-]+", "x-headgate-[a-z-]+", "retry-after", "content-type"],
  lengthMax: 105,
};

/**
 * The same with waiting rooms, which also set headers of pages, tickets and sessions. Families of
 * names, since all names would not fit. 107 characters have 94 steps, and 114 have 102.
 */
export const setByRooms: MutableHeaders = {
  patterns: ["(cache|content|grpc|set|x-(content|headgate))-[a-z-]+", "allow|re[a-z-]+", "vary"],
  lengthMax: 110,
};

/**
 * Returns a pattern for the headers that Headgate sets: those of every policy, and names from the
 * policy. Common prefixes are written once. Undefined if the pattern would be too long for Envoy.
 *
 * @param names in lower case; of the letters that header names are made of
 */
export function mutableHeaderPattern(
  names: readonly string[],
  { patterns, lengthMax }: MutableHeaders = alwaysSet,
): string | undefined {
  const byBeginning = new Map<string, string[]>();
  for (const name of [...new Set([...patterns, ...names.map(literal)])].sort()) {
    const end = name.indexOf("-") + 1;
    const rest = byBeginning.get(name.slice(0, end));
    if (rest === undefined) byBeginning.set(name.slice(0, end), [name.slice(end)]);
    else rest.push(name.slice(end));
  }
  const parts = [...byBeginning].map(([beginning, rests]) =>
    rests.length === 1 ? beginning + rests.join("") : `${beginning}(${rests.join("|")})`,
  );
  const pattern = parts.join("|");
  return pattern.length > lengthMax ? undefined : pattern;
}

/** Escapes characters of header names that have a meaning in a pattern. Source: RFC 9110, token. */
function literal(text: string): string {
  return text.replace(/[.*+^$|?(){}[\]\\]/g, "\\$&");
}
