import type { Cancel, Clock } from "../../core/base/clock.js";
import type { JsonObject } from "../../core/base/json.js";
import { amountMax } from "../../core/budgets/account.js";
import { type TopUp, type TopUps, TopUpTable } from "../../core/budgets/top-up.js";
import type { ChangeOutcome } from "../../store/coordination/record-store.js";
import type { SharedRecords } from "./shared-records.js";

/** A top-up as it is stored. */
interface StoredTopUp {
  readonly topUp: TopUp;
  /** The version of its record, at least 1. */
  readonly version: number;
}

/** Interval of checks for expired top-ups, while there are any, in milliseconds. */
const expiryLookMs = 60_000;

/**
 * Top-ups of budgets by operators, the same at all replicas. Expiry is checked at each use, and any
 * replica may then remove the top-up. This is not an operator's action, so it is not in the audit
 * log.
 */
export class TopUpRegistry implements TopUps {
  readonly #records: SharedRecords;
  readonly #clock: Clock;
  readonly #stopFollowing: () => void;
  #stored: readonly StoredTopUp[] = [];
  #table = new TopUpTable([]);
  #unreadableCount = 0;
  #cancelLook: Cancel | undefined;

  constructor({ records, clock }: { readonly records: SharedRecords; readonly clock: Clock }) {
    this.#records = records;
    this.#clock = clock;
    this.#stopFollowing = records.onChange((kind) => {
      if (kind === "topUp") this.#remake();
    });
    this.#remake();
  }

  /** Records that were skipped because they have a later version or are invalid. */
  get unreadableCount(): number {
    return this.#unreadableCount;
  }

  topUpOf(budget: string, values: readonly string[], nowMs: number): number {
    return this.#table.topUpOf(budget, values, nowMs);
  }

  /** Returns all top-ups that have not expired, in no order. */
  list(): readonly StoredTopUp[] {
    const nowMs = this.#clock.epochUs() / 1_000;
    return this.#stored.filter(({ topUp }) => nowMs < topUp.untilMs);
  }

  /**
   * Adds a top-up, or removes one if it is undefined, and writes its audit entry.
   *
   * @param change with the version that is replaced; 0 if there must be none
   * @throws ServiceError STORE_ codes; it is then unknown whether it was changed
   */
  change(
    id: string,
    topUp: TopUp | undefined,
    change: { readonly expectedVersion: number; readonly audit: JsonObject },
  ): Promise<ChangeOutcome> {
    return this.#records.change({
      kind: "topUp",
      id,
      value: topUp && topUpToJson(topUp),
      ...change,
    });
  }

  /** Stops following changes. */
  close(): void {
    this.#stopFollowing();
    this.#cancelLook?.();
  }

  #remake(): void {
    const stored: StoredTopUp[] = [];
    this.#unreadableCount = 0;
    for (const { id, version, value } of this.#records.list("topUp").values()) {
      const topUp = topUpFromJson(id, value);
      if (topUp === undefined) this.#unreadableCount += 1;
      else stored.push({ topUp, version });
    }
    this.#stored = stored;
    this.#table = new TopUpTable(stored.map(({ topUp }) => topUp));
    this.#awaitLook();
  }

  #awaitLook(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    if (this.#stored.length === 0) return;
    this.#cancelLook = this.#clock.schedule(expiryLookMs, () => {
      this.#takeExpired();
      this.#awaitLook();
    });
  }

  #takeExpired(): void {
    const nowMs = this.#clock.epochUs() / 1_000;
    for (const { topUp, version } of this.#stored) {
      if (nowMs < topUp.untilMs + expiryLookMs) continue;
      const removal = { kind: "topUp", id: topUp.id, value: undefined } as const;
      this.#records.change({ ...removal, expectedVersion: version, audit: undefined }).catch(() => {
        // The store is unavailable: the next check finds it again, and it has no effect meanwhile.
      });
    }
  }
}

/** Converts a top-up to the format of a record. */
function topUpToJson({ budget, values, amount, untilMs, reason, actor }: TopUp): JsonObject {
  return { budget, values: [...values], amount, untilMs, reason, actor };
}

/** Undefined for a record of a later version and for an invalid one. */
function topUpFromJson(id: string, value: JsonObject): TopUp | undefined {
  const { budget, values, amount, untilMs, reason, actor } = value;
  if (typeof budget !== "string" || typeof reason !== "string" || typeof actor !== "string") {
    return undefined;
  }
  if (!Array.isArray(values) || !values.every((text) => typeof text === "string")) return undefined;
  if (typeof amount !== "number" || !Number.isInteger(amount)) return undefined;
  if (amount < 1 || amount > amountMax || typeof untilMs !== "number") return undefined;
  return { id, budget, values, amount, untilMs, reason, actor };
}
