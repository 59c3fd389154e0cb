import { ServiceError } from "../../core/base/errors.js";
import { type Charge, delayOf, unitsPerHit } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import type { RegionalLimits } from "../../core/limits/lending.js";
import {
  type DecidedLimit,
  type DescriptorVerdict,
  descriptorVerdict,
  limitVerdict,
  unknownVerdict,
  unlimitedVerdict,
  unmatchedVerdict,
  type Verdict,
} from "../../core/limits/verdict.js";
import type { BatchOutcome } from "./batcher.js";
import type { DecidedRequest } from "./decision-observer.js";
import type { PreparedDescriptor, PreparedQuery } from "./prepared-query.js";
import { marksOf } from "./request-marks.js";

/** Returns the result of one of several identical calls. The store grants the first ones. */
export function decidedByStore(
  charges: readonly Charge[],
  { result, askedCount }: Extract<BatchOutcome, { kind: "decided" }>,
  index: number,
): DecidedRequest {
  const { grantedCount, results, nowUs } = result;
  const isDenied = index >= grantedCount;
  if (isDenied || askedCount === 1) {
    return { isDenied, charges, results, nowUs, isFromMemory: false };
  }
  // The store returns the level at the first denied call. Each earlier call saw a lower level.
  const laterCount = grantedCount - 1 - index;
  const own = results.map(({ bucket }, i): ChargeResult => {
    const cost = charges[i]?.cost ?? 0;
    const level = bucket.level - laterCount * cost * unitsPerHit;
    return { isOver: false, bucket: { level, tUs: bucket.tUs } };
  });
  return { isDenied, charges, results: own, nowUs, isFromMemory: false };
}

/** Builds the response to a request, with one status per descriptor, in the query's order. */
export function present(prepared: PreparedQuery, request: DecidedRequest): Verdict {
  // `map` allocates the exact size. An array that grows allocates room for 17 elements.
  const decided = { prepared, request };
  const statuses = prepared.descriptors.map((one) => presentDescriptor(one, decided));
  const delayUs = prepared.delayUs === 0 ? 0 : longestDelayUs(request);
  const isDenied = request.isDenied && !prepared.isShadow;
  const verdict = delayUs > 0 ? { isDenied: false, delayUs, statuses } : { isDenied, statuses };
  const marks = prepared.isMarking && !isDenied ? marksOf(prepared, request) : undefined;
  return marks === undefined ? verdict : { ...verdict, marks };
}

/** How long a request is delayed: until all charges that may delay it fit. */
function longestDelayUs(request: DecidedRequest): number {
  let longestUs = 0;
  for (let i = 0; i < request.charges.length; i += 1) {
    longestUs = Math.max(longestUs, chargeDelayUs(request, i));
  }
  return longestUs;
}

/** How long one of its charges delays a request. A shadow limit does not delay it. */
function chargeDelayUs({ isDenied, charges, results, nowUs }: DecidedRequest, i: number): number {
  const charge = charges[i];
  const result = results[i];
  if (isDenied || charge?.delayUs === undefined || result === undefined) return 0;
  return charge.role === "enforce" ? delayOf(charge, result.bucket, nowUs) : 0;
}

function presentDescriptor(
  descriptor: PreparedDescriptor,
  { prepared, request }: { readonly prepared: PreparedQuery; readonly request: DecidedRequest },
): DescriptorVerdict {
  if (descriptor.kind === "unlimited") return unlimitedVerdict;
  if (descriptor.kind !== "limited") return unmatchedVerdict;
  const { firstAsk, askCount } = descriptor;
  const first = decidedLimit(firstAsk, { prepared, request });
  // Nearly every rule has one limit.
  if (askCount === 1) {
    return first === undefined ? unknownVerdict : limitVerdict(first, request.nowUs);
  }
  const decided = first === undefined ? [] : [first];
  for (let i = firstAsk + 1; i < firstAsk + askCount; i += 1) {
    const one = decidedLimit(i, { prepared, request });
    if (one !== undefined) decided.push(one);
  }
  return decided.length === 0 ? unknownVerdict : descriptorVerdict(decided, request.nowUs);
}

/** A limit with its result. Undefined if it was not evaluated. */
function decidedLimit(
  i: number,
  { prepared, request }: { readonly prepared: PreparedQuery; readonly request: DecidedRequest },
): DecidedLimit | undefined {
  const ask = prepared.asks[i];
  const charge = request.charges[i];
  const result = request.results[i];
  if (ask === undefined || charge === undefined || i >= request.results.length) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  return result === undefined ? undefined : { limit: ask.limit, charge, result };
}

/** Reports decisions on global limits. Failure modes are skipped: they do not reflect the store. */
export function noteGlobal(
  { asks }: PreparedQuery,
  { charges, results, nowUs, isFallback }: DecidedRequest,
  regions: Pick<RegionalLimits, "note"> | undefined,
): void {
  if (isFallback === true) return;
  for (const [i, { limit }] of asks.entries()) {
    const charge = charges[i];
    const result = results[i];
    if (limit.spread === undefined || charge === undefined || result === undefined) continue;
    regions?.note({ limit, charge, result, nowUs });
  }
}

/**
 * Returns how the counters of the rule count the descriptor: over an enforced limit, over a shadow
 * limit only, within all limits after a delay or at once, or not evaluated.
 */
export function descriptorOutcome(
  descriptor: PreparedDescriptor,
  status: DescriptorVerdict | undefined,
  request: DecidedRequest,
): "ok" | "delayed" | "over" | "shadowOver" | "unknown" {
  if (status?.isOver === true) return "over";
  if (status !== undefined && status.isOver === undefined) return "unknown";
  if (descriptor.kind !== "limited") return "ok";
  const { firstAsk, askCount } = descriptor;
  for (let i = firstAsk; i < firstAsk + askCount; i += 1) {
    if (request.results[i]?.isOver === true) return "shadowOver";
  }
  for (let i = firstAsk; i < firstAsk + askCount; i += 1) {
    if (chargeDelayUs(request, i) > 0) return "delayed";
  }
  return "ok";
}
