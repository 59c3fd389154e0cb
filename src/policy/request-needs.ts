import type { BudgetPolicy, ServiceUsage } from "./budgets/budget-policy.js";
import { addressAttribute, pathHeader, routeAttribute } from "./cel/request-facts.js";
import type { RequestKey } from "./services/callers.js";
import type { PriorityClassifier } from "./services/priority-classifier.js";
import type { ServicePolicy } from "./services/service-policy.js";
import type { RoomPolicy } from "./waiting-rooms/room-policy.js";

/** Names of the parts of requests that decisions depend on. */
export interface RequestNeeds {
  /** In lower case. */
  readonly headers: Set<string>;
  /** By Envoy's names. */
  readonly attributes: Set<string>;
}

/** Adds what a service's policy reads, without what every service needs. */
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

/** Returns headers of requests and responses that describe a call and its usage. */
function usageHeaders({ model, declaredMax, source }: ServiceUsage): readonly string[] {
  return [
    // A hint of its usage.
    "content-length",
    ...(model.kind === "header" ? [model.header] : []),
    ...(model.kind === "path" ? [pathHeader] : []),
    ...(declaredMax?.kind === "header" ? [declaredMax.header] : []),
    ...(source.kind === "headers" ? Object.values(source.fields) : []),
  ];
}

/** Adds what distinguishes the accounts of a budget. */
export function addBudgetNeeds({ per }: BudgetPolicy, { headers, attributes }: RequestNeeds): void {
  for (const part of per) {
    if (part.kind === "header") headers.add(part.header);
    if (part.kind === "remoteAddress") attributes.add(addressAttribute);
  }
}

/** Headers that every waiting room reads. */
const roomHeaders: readonly string[] = [
  ":method",
  ":authority",
  pathHeader,
  "cookie",
  "accept",
  "accept-language",
  // gRPC calls are answered differently.
  "content-type",
  // For navigations, and for what browsers fetch before a visitor asks for it.
  "sec-fetch-mode",
  "sec-purpose",
  "purpose",
  // Other sites must not move visitors.
  "sec-fetch-site",
  // A CORS preflight has no cookie.
  "origin",
  "access-control-request-method",
];

/** Adds what a waiting room reads, without what its service needs to find classes. */
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

/** Returns what distinguishes requests of a service. */
function keysOf({ admission, rateLimit }: ServicePolicy): readonly RequestKey[] {
  const keys: RequestKey[] = [];
  if (admission !== undefined) keys.push(admission.caller);
  const { per } = admission?.maxInFlightPer ?? {};
  // `usage` adds what determines the model.
  if (per !== undefined && per.kind !== "model") keys.push(per);
  if (rateLimit?.inExtProc !== true) return keys;
  for (const part of rateLimit.descriptors.flatMap(({ parts }) => parts)) {
    if (part.kind === "header" || part.kind === "remoteAddress") keys.push(part);
  }
  return keys;
}
