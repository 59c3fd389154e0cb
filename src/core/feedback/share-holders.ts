import { Tally } from "../collections/tally.js";
import type { LoopTimes } from "./feedback-settings.js";

/** What one Envoy is to have, and what it may hold. */
interface HeldShare {
  /** Whose the Envoy is; undefined: nobody has said so. */
  readonly owner: string | undefined;
  readonly total: number;
  /** Without end where somebody else has given it what nobody here knows of. */
  readonly mayHold: number;
}

/**
 * Which identities hold more than their part of a limit, and since when: one that does for long
 * keeps nobody else from theirs, by whatever names. What a leader before this one gave is not told
 * against them.
 */
export class ShareHolders {
  readonly #longMs: number;
  #sinceMs: ReadonlyMap<string | undefined, number> = new Map();

  constructor({ ttlMs, snapshotSpreadMs }: Pick<LoopTimes, "ttlMs" | "snapshotSpreadMs">) {
    this.#longMs = ttlMs + snapshotSpreadMs;
  }

  /** Whether none holds more than its part. */
  get isCalm(): boolean {
    return this.#sinceMs.size === 0;
  }

  /** @param leaving the identities of Envoys that have just left, which go by `configuredShare` */
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

  /** Whether an identity has held more than its part for longer than shares live. */
  isUnruly(owner: string | undefined, nowMs: number): boolean {
    return nowMs - (this.#sinceMs.get(owner) ?? nowMs) >= this.#longMs;
  }
}
