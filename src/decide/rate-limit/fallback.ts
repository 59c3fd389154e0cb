import { assertNever, ServiceError } from "../../core/base/errors.js";
import { type Charge, unitsPerHit } from "../../core/limits/bucket.js";
import { type BucketTable, decideRepeated } from "../../core/limits/gcra.js";
import { divideCharge } from "../../core/limits/lending.js";
import { type FailureMode, hitsMax } from "../../core/limits/limit.js";
import type { LimitStore, StoreResult } from "../../store/limit-store.js";
import type { DecidedRequest } from "./decision-observer.js";

/** The result of `on_store_failure: deny`: nothing remains, retry in one second. */
const deniedCharge = {
  hits: 1,
  periodUs: 1_000_000,
  burst: 1,
  cost: 1,
  isRefund: false,
  windows: undefined,
} as const;

/** A request during a store outage: its charges, and the failure mode of each limit. */
export interface FallbackAsk {
  readonly charges: readonly Charge[];
  /** One per charge. Never `error`: the caller handles that mode. */
  readonly modes: readonly FailureMode[];
}

/**
 * Decides a request without the store, each limit by its failure mode, in one GCRA evaluation. So a
 * request is still charged against all of its limits or none, and roles apply.
 */
export async function decideWithoutStore(
  { charges, modes }: FallbackAsk,
  localStore: LimitStore,
  replicaCount: number,
): Promise<DecidedRequest> {
  const asked = charges.map((charge, i) =>
    fallbackCharge(charge, modes[i] ?? "error", replicaCount),
  );
  const request = { charges: asked, multiplicity: 1 };
  const [local] = await localStore.take([request], Number.POSITIVE_INFINITY);
  if (local?.kind === "decided") return presentFallback(asked, modes, local.result);
  // The local table has no room for a new key: decide as for an unseen key, and store nothing.
  const result = decideRepeated(request, emptyTable, 0);
  return presentFallback(asked, modes, { ...result, nowUs: 0 });
}

const emptyTable: BucketTable = { get: () => undefined, set: forgetBucket, delete: forgetBucket };

function forgetBucket(): void {
  // An always-empty table keeps nothing.
}

/** The charge that makes GCRA return the result of the failure mode. */
function fallbackCharge(charge: Charge, mode: FailureMode, replicaCount: number): Charge {
  switch (mode) {
    case "local":
      return localShare(charge, replicaCount);
    case "allow":
      // Peeking at a bucket without bounds is never over the limit and stores nothing.
      return { ...charge, cost: 0, burst: hitsMax, isRefund: false, peekExhausted: false };
    case "deny":
      return { ...charge, cost: Math.max(1, charge.cost), hits: 0, burst: 0 };
    case "error":
      throw new ServiceError("INTERNAL", "A limit with the failure mode error has no fallback.");
    default:
      return assertNever(mode);
  }
}

/**
 * A replica's share of a limit: the rate divided by the number of replicas (as a longer period),
 * and the burst divided and rounded down, at least 1. Example: 10 per minute on 3 replicas becomes
 * 10 per three minutes with a burst of 3. Window limits keep their windows.
 */
export function localShare(charge: Charge, replicaCount: number): Charge {
  return divideCharge(charge, replicaCount, Math.max(1, Math.floor(charge.burst / replicaCount)));
}

function presentFallback(
  asked: readonly Charge[],
  modes: readonly FailureMode[],
  { nowUs, grantedCount, results }: StoreResult,
): DecidedRequest {
  const isShut = (i: number): boolean => modes[i] === "deny" && results[i]?.isOver === true;
  return {
    isDenied: grantedCount === 0,
    charges: asked.map((charge, i) => (isShut(i) ? { ...charge, ...deniedCharge } : charge)),
    results: results.map((result, i) =>
      isShut(i) ? { isOver: true, bucket: { level: unitsPerHit, tUs: nowUs } } : result,
    ),
    nowUs,
    isFromMemory: false,
    isFallback: true,
  };
}
