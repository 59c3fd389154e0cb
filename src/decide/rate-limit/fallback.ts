import { assertNever, ServiceError } from "../../core/base/errors.js";
import { type Charge, unitsPerHit } from "../../core/limits/bucket.js";
import { type BucketTable, decideRepeated } from "../../core/limits/gcra.js";
import { drainTimeUsMax, type FailureMode, hitsMax } from "../../core/limits/limit.js";
import type { LimitStore, StoreResult } from "../../store/limit-store.js";
import type { DecidedRequest } from "./decision-observer.js";

/** What an `on_store_failure: deny` tells the caller: ask again in a second, nothing is left. */
const deniedCharge = {
  hits: 1,
  periodUs: 1_000_000,
  burst: 1,
  cost: 1,
  isRefund: false,
  windows: undefined,
} as const;

/** What is asked while the store is away: charges, and the failure mode of each one's limit. */
interface FallbackAsk {
  readonly charges: readonly Charge[];
  /** One a charge; never `error`, which is the caller's to sort out. */
  readonly modes: readonly FailureMode[];
}

/**
 * Decides a request without the store, each limit by its own failure mode, in one run of the same
 * law, so that all or nothing and the roles hold here too.
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
  // No room for a new key here either: it is decided as one never seen, and not remembered.
  const result = decideRepeated(request, emptyTable, 0);
  return presentFallback(asked, modes, { ...result, nowUs: 0 });
}

const emptyTable: BucketTable = { get: () => undefined, set: forgetBucket, delete: forgetBucket };

function forgetBucket(): void {
  // Nothing is kept in a table that is always empty.
}

/** The charge that makes the law answer as the failure mode wants. */
function fallbackCharge(charge: Charge, mode: FailureMode, replicaCount: number): Charge {
  switch (mode) {
    case "local":
      return localShare(charge, replicaCount);
    case "allow":
      // A peek into a bucket without bounds is never over and stores nothing.
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
 * A replica's part of a limit: the exact rate divided by the replicas (over a longer period), and
 * the burst divided and rounded down, at least 1. Example: 10 a minute over 3 replicas becomes 10
 * in three minutes with a burst of 3. A period that would pass ten years stays there with fewer
 * hits, at least 1. A limit in windows keeps them.
 */
export function localShare(charge: Charge, replicaCount: number): Charge {
  if (charge.burst === 0) return charge;
  const burst = Math.max(1, Math.floor(charge.burst / replicaCount));
  if (charge.windows !== undefined) return { ...charge, burst };
  const periodUs = charge.periodUs * replicaCount;
  if (periodUs <= drainTimeUsMax) return { ...charge, periodUs, burst };
  const hits = Math.max(1, Math.floor(charge.hits * (drainTimeUsMax / periodUs)));
  return { ...charge, hits, periodUs: drainTimeUsMax, burst };
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
