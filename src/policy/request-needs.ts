import type { BudgetPolicy, ServiceUsage } from "./budgets/budget-policy.js";
import { addressAttribute, pathHeader, routeAttribute } from "./cel/request-facts.js";
import type { RequestKey } from "./services/callers.js";
import type { PriorityClassifier } from "./services/priority-classifier.js";
import type { ServicePolicy } from "./services/service-policy.js";
import type { RoomPolicy } from "./waiting-rooms/room-policy.js";

/** Names of what has to be seen of requests to decide on them. */
export interface RequestNeeds {
  /** In lower case. */
  readonly headers: Set<string>;
  /** As Envoy calls them. */
  readonly attributes: Set<string>;
}

/** Adds what a service's policy looks at; what every service needs is no part of it. */
export function addRequestNeeds(
  service: ServicePolicy,
  classifier: PriorityClassifier,
  { headers, attributes }: RequestNeeds,
): void {
  for (const name of classifier.headerNames) headers.add(name);
  for (const name of classifier.attributeNames) attributes.add(name);
  for (const key of keysOf(service)) {
    if (key.kind === "header") headers.add(key.header);
    else attributes.add(key.kind === "route" ? routeAttribute : addressAttribute);
  }
  const deadlineHeader = service.admission?.deadline?.header;
  if (deadlineHeader !== undefined) headers.add(deadlineHeader);
  const splitBy = service.concurrency?.per?.header;
  if (splitBy !== undefined) headers.add(splitBy);
  for (const header of service.usage === undefined ? [] : usageHeaders(service.usage)) {
    headers.add(header);
  }
}

/** Of requests and responses: what a call is about, and what it used. */
function usageHeaders({ model, declaredMax, source }: ServiceUsage): readonly string[] {
  return [
    // A hint of what it will use.
    "content-length",
    ...(model.kind === "header" ? [model.header] : []),
    ...(model.kind === "path" ? [pathHeader] : []),
    ...(declaredMax?.kind === "header" ? [declaredMax.header] : []),
    ...(source.kind === "headers" ? Object.values(source.fields) : []),
  ];
}

/** Adds what tells the accounts of a budget apart. */
export function addBudgetNeeds({ per }: BudgetPolicy, { headers, attributes }: RequestNeeds): void {
  for (const part of per) {
    if (part.kind === "header") headers.add(part.header);
    if (part.kind === "remoteAddress") attributes.add(addressAttribute);
  }
}

/** What every waiting room looks at. */
const roomHeaders: readonly string[] = [
  ":method",
  ":authority",
  pathHeader,
  "cookie",
  "accept",
  "accept-language",
  // gRPC is answered in its own way.
  "content-type",
  // Navigations, and what browsers fetch before anybody asked for it.
  "sec-fetch-mode",
  "sec-purpose",
  "purpose",
  // Other sites must not move visitors.
  "sec-fetch-site",
  // A CORS preflight has no cookie.
  "origin",
  "access-control-request-method",
];

/** Adds what a waiting room looks at; what its service needs to find classes is apart. */
export function addRoomNeeds(room: RoomPolicy, { headers, attributes }: RequestNeeds): void {
  const { bypass, joinLimit, cookie } = room;
  for (const name of roomHeaders) headers.add(name);
  for (const { name } of bypass.headers) headers.add(name);
  if (joinLimit?.per.kind === "header") headers.add(joinLimit.per.header);
  const needsAddress =
    bypass.sources.length > 0 ||
    joinLimit?.per.kind === "remoteAddress" ||
    cookie.addressBits !== undefined;
  if (needsAddress) attributes.add(addressAttribute);
}

/** By what requests of a service are told apart. */
function keysOf({ admission, rateLimit }: ServicePolicy): readonly RequestKey[] {
  const keys: RequestKey[] = [];
  if (admission !== undefined) keys.push(admission.caller);
  const { per } = admission?.maxInFlightPer ?? {};
  // What finds a model is needed by `usage`.
  if (per !== undefined && per.kind !== "model") keys.push(per);
  if (rateLimit?.inExtProc !== true) return keys;
  for (const part of rateLimit.descriptors.flatMap(({ parts }) => parts)) {
    if (part.kind === "header" || part.kind === "remoteAddress") keys.push(part);
  }
  return keys;
}
