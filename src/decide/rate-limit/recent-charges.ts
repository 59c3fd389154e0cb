import type { Charge } from "../../core/limits/bucket.js";
import { isRepeatable } from "../../core/limits/gcra.js";
import type { LimitKey } from "../../core/limits/limit.js";
import { type CoalescingSlot, createSlot } from "./batcher.js";

/** Maximum number of keys whose last charge is kept, at most 0.5 KiB each. */
export const recentChargesMax = 1_024;

/** The last charge of a key, with the array and the slot that `Batcher.ask` takes. */
interface RecentCharge {
  readonly charges: readonly [Charge];
  /** Undefined if equal charges must be decided one by one. */
  readonly slot: CoalescingSlot | undefined;
}

/** Keeps the last charges outside of policies, so that the batcher combines equal ones. */
export class RecentCharges {
  readonly #byKey = new Map<LimitKey, RecentCharge>();

  /** Returns the last charge of the key if it is equal, otherwise this one. */
  alike(charge: Charge): RecentCharge {
    const known = this.#byKey.get(charge.key);
    if (known !== undefined && isAlike(known.charges[0], charge)) return known;
    if (this.#byKey.size >= recentChargesMax) this.#byKey.clear();
    const charges = [charge] as const;
    const recent = { charges, slot: isRepeatable(charges) ? createSlot() : undefined };
    this.#byKey.set(charge.key, recent);
    return recent;
  }
}

/** Charges outside of policies have neither windows nor the key of another limit. */
function isAlike(one: Charge, other: Charge): boolean {
  return (
    one.hits === other.hits &&
    one.periodUs === other.periodUs &&
    one.burst === other.burst &&
    one.cost === other.cost &&
    one.role === other.role
  );
}
