import { Tally } from "../collections/tally.js";
import type { LoopTimes } from "./feedback-settings.js";

/** The target of one Envoy, and what it may hold. */
interface HeldShare {
  /** The owner of the Envoy. Undefined: not known. */
  readonly owner: string | undefined;
  readonly total: number;
  /** Infinity if it may hold an earlier share that is not known here. */
  readonly mayHold: number;
}

/**
 * Records which identities hold more than their part of a limit, and since when. One that does so
 * for long must not keep others from their parts, whatever names it uses. Shares that an earlier
 * leader gave do not count against it.
 */
export class ShareHolders {
  readonly #longMs: number;
  #sinceMs: ReadonlyMap<string | undefined, number> = new Map();

  constructor({ ttlMs, snapshotSpreadMs }: Pick<LoopTimes, "ttlMs" | "snapshotSpreadMs">) {
    this.#longMs = ttlMs + snapshotSpreadMs;
  }

  /** Whether no identity holds more than its part. */
  get isCalm(): boolean {
    return this.#sinceMs.size === 0;
  }

  /** @param leaving the identities of Envoys that have just left, which use `configuredShare` */
  note(
    shares: Iterable<HeldShare>,
    leaving: { readonly owners: Iterable<string | undefined>; readonly configuredShare: number },
    nowMs: number,
  ): void {
    const held = new Tally<string | undefined>();
    const parts = new Tally<string | undefined>();
    for (const { owner, total, mayHold } of shares) {
      held.add(owner, mayHold);
      parts.add(owner, total);
    }
    for (const owner of leaving.owners) held.add(owner, leaving.configuredShare);
    const sinceMs = new Map<string | undefined, number>();
    for (const owner of held.size < 2 ? [] : held.keys()) {
      const heldCount = held.get(owner);
      if (heldCount <= parts.get(owner) || heldCount === Number.POSITIVE_INFINITY) continue;
      sinceMs.set(owner, this.#sinceMs.get(owner) ?? nowMs);
    }
    this.#sinceMs = sinceMs;
  }

  /** Reports whether an identity has held more than its part for longer than shares are active. */
  isUnruly(owner: string | undefined, nowMs: number): boolean {
    return nowMs - (this.#sinceMs.get(owner) ?? nowMs) >= this.#longMs;
  }
}
