import { ServiceError } from "../../core/base/errors.js";
import { type Charge, unitsPerHit } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import {
  type DecidedLimit,
  type DescriptorVerdict,
  descriptorVerdict,
  unknownVerdict,
  unlimitedVerdict,
  unmatchedVerdict,
  type Verdict,
} from "../../core/limits/verdict.js";
import type { BatchOutcome } from "./batcher.js";
import type { DecidedRequest } from "./decision-observer.js";
import type { PreparedDescriptor, PreparedQuery } from "./prepared-query.js";

/** One call's share of what was decided for all identical ones: the first ones are granted. */
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
  // What was over was so for the first that was denied; those before it left less behind.
  const laterCount = grantedCount - 1 - index;
  const own = results.map(({ bucket }, i): ChargeResult => {
    const cost = charges[i]?.cost ?? 0;
    const level = bucket.level - laterCount * cost * unitsPerHit;
    return { isOver: false, bucket: { level, tUs: bucket.tUs } };
  });
  return { isDenied, charges, results: own, nowUs, isFromMemory: false };
}

/**
 * What a request is told: one status a descriptor, in the query's order.
 */
export function present(prepared: PreparedQuery, request: DecidedRequest): Verdict {
  const statuses: DescriptorVerdict[] = [];
  for (const descriptor of prepared.descriptors) {
    statuses.push(presentDescriptor(descriptor, { prepared, request }));
  }
  return { isDenied: request.isDenied && !prepared.isShadow, statuses };
}

function presentDescriptor(
  descriptor: PreparedDescriptor,
  { prepared, request }: { readonly prepared: PreparedQuery; readonly request: DecidedRequest },
): DescriptorVerdict {
  if (descriptor.kind === "unlimited") return unlimitedVerdict;
  if (descriptor.kind !== "limited") return unmatchedVerdict;
  const { firstAsk, askCount } = descriptor;
  const decided: DecidedLimit[] = [];
  for (let i = firstAsk; i < firstAsk + askCount; i += 1) {
    const ask = prepared.asks[i];
    const charge = request.charges[i];
    const result = request.results[i];
    if (ask === undefined || charge === undefined || i >= request.results.length) {
      throw new ServiceError("STORE_PROTOCOL");
    }
    if (result !== undefined) decided.push({ limit: ask.limit, charge, result });
  }
  return decided.length === 0 ? unknownVerdict : descriptorVerdict(decided, request.nowUs);
}

/**
 * How the descriptor's rule counts it: over a limit that counts, over a shadow limit only, neither,
 * or not at all, since nobody looked.
 */
export function descriptorOutcome(
  descriptor: PreparedDescriptor,
  status: DescriptorVerdict | undefined,
  { results }: DecidedRequest,
): "ok" | "over" | "shadowOver" | "unknown" {
  if (status?.isOver === true) return "over";
  if (status !== undefined && status.isOver === undefined) return "unknown";
  if (descriptor.kind !== "limited") return "ok";
  const { firstAsk, askCount } = descriptor;
  for (let i = firstAsk; i < firstAsk + askCount; i += 1) {
    if (results[i]?.isOver === true) return "shadowOver";
  }
  return "ok";
}
