import type { Charge } from "../../src/core/bucket.js";
import type { LimitKey } from "../../src/core/limit.js";
import type { Policy } from "../../src/policy/policy.js";
import type { StoreResult } from "../../src/store/limit-store.js";

/** The longest that a refusal may be believed, in milliseconds. */
export const believedMsMax = 1_000;

/** A refusal that a replica has been told. */
export interface KnownRefusal {
  readonly policy: Policy;
  readonly cost: number;
  readonly sentMs: number;
  /** Whether it must be remembered, and not only may be. */
  readonly isSure: boolean;
  /** From then on the store may have to be asked again. */
  readonly untilMs: number;
}

/** What a replica has been told about keys that are over, as its memory of it should be. */
export class KnownRefusals {
  readonly #byKey = new Map<LimitKey, KnownRefusal[]>();

  /** Takes note of what the store said of one repeatable request that it denied in part. */
  note(
    charges: readonly Charge[],
    { results, nowUs }: StoreResult,
    { policy, sentMs, isSure }: Pick<KnownRefusal, "policy" | "sentMs" | "isSure">,
  ): void {
    charges.forEach((charge, i) => {
      const result = results[i];
      if (result === undefined || !result.isOver) return;
      const waitUs = exactWaitUs(charge, result.bucket.level);
      const leftUs = waitUs === undefined ? undefined : waitUs - (nowUs - result.bucket.tUs);
      const leftMs = leftUs === undefined ? believedMsMax : leftUs / 1_000;
      const untilMs = sentMs + Math.min(leftMs, believedMsMax);
      const known = this.#byKey.get(charge.key)?.filter((one) => one.untilMs > sentMs) ?? [];
      known.push({ policy, cost: charge.cost, sentMs, isSure, untilMs });
      this.#byKey.set(charge.key, known);
    });
  }

  /** The refusals that hold for a charge at that time. */
  holding(charge: Charge, policy: Policy, nowMs: number): readonly KnownRefusal[] {
    const known = this.#byKey.get(charge.key) ?? [];
    return known.filter(
      (one) => one.policy === policy && one.cost <= charge.cost && nowMs < one.untilMs,
    );
  }
}

/** Microseconds until the charge fits above a level, rounded up; undefined when it never does. */
function exactWaitUs({ hits, periodUs, burst, cost }: Charge, level: number): number | undefined {
  if (cost > burst || hits === 0) return undefined;
  const excess = BigInt(level) - BigInt(burst - cost) * 1_048_576n;
  if (excess <= 0n) return 0;
  const [needed, perPeriod] = [excess * BigInt(periodUs), BigInt(hits) * 1_048_576n];
  return Number((needed + perPeriod - 1n) / perPeriod);
}
