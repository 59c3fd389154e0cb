import type { Charge } from "../../src/core/limits/bucket.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { Policy } from "../../src/policy/policy.js";
import type { StoreResult } from "../../src/store/limit-store.js";

/** The longest that a bucket may be believed, in milliseconds. */
const believedMsMax = 1_000;

/** A replica counts whole microseconds, rounded up: it may ask so much sooner, in milliseconds. */
const roundedMsMax = 0.001;

/** A bucket that a replica has been told with a refusal. */
interface KnownBucket {
  readonly policy: Policy;
  readonly sentMs: number;
  /** Whether it must be remembered, and not only may be. */
  isSure: boolean;
  readonly level: number;
  /** How long before the store's answer the level was true. */
  readonly agoUs: number;
}

/** Why a charge may be refused from memory. */
export interface KnownRefusal extends Pick<KnownBucket, "sentMs"> {
  readonly charge: Charge;
  /** From then on the store may have to be asked again. */
  readonly untilMs: number;
}

/** What a replica has been told about keys with refusals, as its memory of it should be. */
export class KnownRefusals {
  readonly #byKey = new Map<LimitKey, KnownBucket[]>();

  /** Takes note of what the store said of one repeatable request that it denied in part. */
  note(
    charges: readonly Charge[],
    { results, nowUs }: StoreResult,
    { policy, sentMs, isSure }: Pick<KnownBucket, "policy" | "sentMs" | "isSure">,
  ): void {
    charges.forEach(({ key }, i) => {
      const bucket = results[i]?.bucket;
      if (bucket === undefined) return;
      const known = this.#byKey.get(key)?.filter((one) => one.sentMs > sentMs - believedMsMax);
      const { level, tUs } = bucket;
      const one = { policy, sentMs, isSure, level, agoUs: nowUs - tUs };
      this.#byKey.set(key, [...(known ?? []), one]);
    });
  }

  /** Hits of the key may have been given back: what is known of it may be remembered no more. */
  doubt(key: LimitKey): void {
    for (const one of this.#byKey.get(key) ?? []) one.isSure = false;
  }

  /** Why a request may be refused from memory at that time. */
  holding(charges: readonly Charge[], policy: Policy, nowMs: number): readonly KnownRefusal[] {
    return charges.flatMap((charge) =>
      (this.#byKey.get(charge.key) ?? []).flatMap((one): KnownRefusal[] => {
        const untilMs = refusedUntilMs(one, charge);
        const isHeld = one.policy === policy && nowMs < untilMs;
        return isHeld ? [{ charge, sentMs: one.sentMs, untilMs }] : [];
      }),
    );
  }

  /** Why it must be: all its buckets are known, and as they were told last one is over. */
  sure(charges: readonly Charge[], policy: Policy, nowMs: number): KnownRefusal | undefined {
    let found: KnownRefusal | undefined;
    for (const charge of charges) {
      const last = this.#byKey.get(charge.key)?.at(-1);
      if (last?.isSure !== true || last.policy !== policy) return undefined;
      if (nowMs >= last.sentMs + believedMsMax) return undefined;
      const untilMs = refusedUntilMs(last, charge);
      if (nowMs < untilMs - roundedMsMax) found ??= { charge, sentMs: last.sentMs, untilMs };
    }
    return found;
  }
}

function refusedUntilMs({ level, agoUs, sentMs }: KnownBucket, charge: Charge): number {
  const waitUs = exactWaitUs(charge, level);
  const leftMs = waitUs === undefined ? believedMsMax : (waitUs - agoUs) / 1_000;
  return sentMs + Math.min(leftMs, believedMsMax);
}

/** Microseconds until the charge fits above a level, rounded up; undefined when it never does. */
function exactWaitUs({ hits, periodUs, burst, cost }: Charge, level: number): number | undefined {
  if (cost > burst || hits === 0) return undefined;
  const excess = BigInt(level) - BigInt(burst - cost) * 1_048_576n;
  if (excess <= 0n) return 0;
  const [needed, perPeriod] = [excess * BigInt(periodUs), BigInt(hits) * 1_048_576n];
  return Number((needed + perPeriod - 1n) / perPeriod);
}
