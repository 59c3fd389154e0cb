import { assert, assertNever, ServiceError } from "../core/errors.js";
import { type BucketTable, type Charge, decideRepeated, unitsPerHit } from "../core/gcra.js";
import { drainTimeUsMax, hitsMax, type Limit } from "../core/limit.js";
import type { LimitStore, StoreResult } from "../store/limit-store.js";
import type { DecidedRequest, Plan } from "./plan.js";

/** What an `on_store_failure: deny` tells the caller: ask again in a second, nothing is left. */
const deniedCharge = { hits: 1, periodUs: 1_000_000, burst: 1, cost: 1, isRefund: false } as const;

/**
 * Decides a plan without the store, each limit by its own failure mode, in one run of the same law,
 * so that all or nothing and the roles hold here too. Modes `error` are the caller's to sort out.
 */
export async function decideWithoutStore(
  plan: Plan,
  localStore: LimitStore,
  replicaCount: number,
): Promise<DecidedRequest> {
  const asked = plan.asks.map(({ limit, charge }) =>
    fallbackCharge(charge, limit.onStoreFailure, replicaCount),
  );
  const request = { charges: asked, multiplicity: 1 };
  const [local] = await localStore.take([request], Number.POSITIVE_INFINITY);
  if (local?.kind === "decided") return presentFallback(plan, asked, local.result);
  // No room for a new key here either: it is decided as one never seen, and not remembered.
  const result = decideRepeated(request, emptyTable, 0);
  return presentFallback(plan, asked, { ...result, nowUs: 0 });
}

const emptyTable: BucketTable = { get: () => undefined, set: forgetBucket, delete: forgetBucket };

function forgetBucket(): void {
  // Nothing is kept in a table that is always empty.
}

/** The charge that makes the law answer as the failure mode wants. */
function fallbackCharge(
  charge: Charge,
  mode: Limit["onStoreFailure"],
  replicaCount: number,
): Charge {
  switch (mode) {
    case "local":
      return localShare(charge, replicaCount);
    case "allow":
      // A peek into a bucket without bounds is never over and stores nothing.
      return { ...charge, cost: 0, burst: hitsMax, isRefund: false, peekExhausted: false };
    case "deny":
      return { ...charge, cost: Math.max(1, charge.cost), hits: 0, burst: 0 };
    case "error":
      throw new ServiceError("INTERNAL", "A limit that fails with the store has no fallback.");
    default:
      return assertNever(mode);
  }
}

/**
 * A replica's part of a limit: the exact rate divided by the replicas (over a longer period), and
 * the burst divided and rounded down, at least 1. Example: 10 a minute over 3 replicas becomes 10
 * in three minutes with a burst of 3. A period that would pass ten years stays there with fewer
 * hits, at least 1.
 */
export function localShare(charge: Charge, replicaCount: number): Charge {
  if (charge.burst === 0) return charge;
  const burst = Math.max(1, Math.floor(charge.burst / replicaCount));
  const periodUs = charge.periodUs * replicaCount;
  if (periodUs <= drainTimeUsMax) return { ...charge, periodUs, burst };
  const hits = Math.max(1, Math.floor(charge.hits * (drainTimeUsMax / periodUs)));
  return { ...charge, hits, periodUs: drainTimeUsMax, burst };
}

function presentFallback(plan: Plan, asked: readonly Charge[], local: StoreResult): DecidedRequest {
  const { nowUs, grantedCount } = local;
  const decided = plan.asks.map(({ limit }, i) => {
    const charge = asked[i];
    const result = local.results[i];
    assert(charge !== undefined && result !== undefined, "one charge and one result an ask");
    if (limit.onStoreFailure !== "deny" || !result.isOver) return { limit, charge, result };
    const full = { level: unitsPerHit, tUs: nowUs };
    return {
      limit,
      charge: { ...charge, ...deniedCharge },
      result: { isOver: true, bucket: full },
    };
  });
  return { isDenied: grantedCount === 0, decided, nowUs };
}
