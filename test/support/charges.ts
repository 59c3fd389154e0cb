import { assert } from "../../src/core/base/errors.js";
import type { Digest } from "../../src/core/collections/keyed-hash.js";
import type { Charge } from "../../src/core/limits/bucket.js";
import { readShortKey } from "../../src/core/limits/key.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { LimitStore, StoreRequest, StoreResult } from "../../src/store/limit-store.js";

/** A key as a test writes it down. */
export function testKey(text: string): LimitKey {
  return text as LimitKey;
}

/** One enforced hit on key "k" at 10 a minute, burst 10, but for what the test says. */
export function testCharge(
  overrides: Omit<Partial<Charge>, "key"> & { readonly key?: string } = {},
): Charge {
  const { key = "k", ...rest } = overrides;
  return {
    hits: 10,
    periodUs: 60_000_000,
    burst: 10,
    cost: 1,
    role: "enforce",
    isRefund: false,
    peekExhausted: false,
    ...rest,
    key: testKey(key),
  };
}

/** A deadline that no test reaches. */
export const farDeadlineMs = Number.MAX_SAFE_INTEGER;

/** A request that is asked once. */
export function once(...charges: readonly Charge[]): StoreRequest {
  return { charges, multiplicity: 1 };
}

/** Sends one request alone and answers what was decided; any other outcome fails the test. */
export async function takeOne(
  store: LimitStore,
  charges: readonly Charge[],
  deadlineMs: number,
): Promise<StoreResult & { readonly isDenied: boolean }> {
  const [outcome] = await store.take([once(...charges)], deadlineMs);
  if (outcome?.kind !== "decided") throw new Error(`not decided: ${JSON.stringify(outcome)}`);
  return { ...outcome.result, isDenied: outcome.result.grantedCount === 0 };
}

/** The digest that a short key consists of. */
export function digestOf(key: LimitKey): Digest {
  const digest: Digest = { a: 0, b: 0, c: 0, d: 0 };
  assert(readShortKey(key, digest), "a short key");
  return digest;
}
