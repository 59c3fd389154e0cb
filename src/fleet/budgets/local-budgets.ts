import type {
  AccountKey,
  AccountLaw,
  EntryResult,
  ReservedEntry,
  ReserveResult,
} from "../../core/budgets/account.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import { windowAt } from "../../core/limits/window.js";

/** Maximum number of accounts whose last answer from the store is remembered. */
const knownAccountsMax = 20_000;

/** The store's last answer for an account, and what was spent here without the store since. */
interface KnownAccount {
  /** Spent, and reserved by other replicas, at `atUs`. */
  used: number;
  /** Spent by calls that were admitted here without the store, at `atUs`. */
  localSpent: number;
  atUs: number;
  /** End of the window that both belong to. Infinity if there are no windows. */
  windowEndUs: number;
}

/** Estimates of this replica's calls in flight, by whether the store knows them. */
interface OwnReserved {
  stored: number;
  local: number;
}

/**
 * Decides reservations in this replica while the store does not.
 *
 * The rest of an account when the store last answered is divided by the number of replicas. If the
 * store has not answered for an account lately, its whole capacity is divided. For calls in flight,
 * each replica has at least one.
 *
 * Example: 1,000 tokens, of which 400 are used as far as is known, 3 replicas: each admits calls
 * whose estimates are 200 tokens in total.
 */
export class LocalBudgets {
  readonly #replicaCount: () => number;
  readonly #known = new GenerationalMap<AccountKey, KnownAccount>(knownAccountsMax);
  /** Accounts with calls of this replica in flight. */
  readonly #own = new Map<AccountKey, OwnReserved>();

  constructor(replicaCount: () => number) {
    this.#replicaCount = replicaCount;
  }

  /** Learns from an answer of the store. */
  learn(entries: readonly ReservedEntry[], { isReserved, entries: found, nowUs }: ReserveResult) {
    for (const [i, { account, law, estimate }] of entries.entries()) {
      const state = found[i];
      if (state === undefined) continue;
      const own = this.#own.get(account);
      if (law.kind !== "inFlight") {
        const known = this.#known.get(account) ?? this.#begin(account);
        known.used = Math.max(0, state.spent + state.reserved - (own?.stored ?? 0));
        known.localSpent = 0;
        known.atUs = nowUs;
        known.windowEndUs = windowEndUs(law, nowUs);
      }
      if (isReserved) this.#reserve(account, "stored", estimate);
    }
  }

  /** Decides without the store. Makes the reservation if it is allowed. */
  reserve(entries: readonly ReservedEntry[], nowUs: number): ReserveResult {
    const found = entries.map((entry) => this.#find(entry, nowUs));
    const isReserved = entries.every(({ isEnforced }, i) => !isEnforced || !found[i]?.isOver);
    if (isReserved) {
      for (const { account, estimate } of entries) this.#reserve(account, "local", estimate);
    }
    return { isReserved, entries: found, nowUs };
  }

  /**
   * Settles a call of this replica that has ended.
   *
   * @param isLocal whether `reserve` admitted it
   */
  settle(
    entries: readonly ReservedEntry[],
    costs: readonly number[],
    { isLocal, nowUs }: { readonly isLocal: boolean; readonly nowUs: number },
  ): void {
    for (const [i, { account, law, capacity, estimate }] of entries.entries()) {
      this.#reserve(account, isLocal ? "local" : "stored", -estimate);
      if (law.kind === "inFlight") continue;
      const known = this.#knownAt({ account, law, capacity }, nowUs);
      if (isLocal) known.localSpent += costs[i] ?? 0;
      else known.used += costs[i] ?? 0;
    }
  }

  #find(entry: ReservedEntry, nowUs: number): EntryResult {
    const { account, law, capacity, estimate, isEnforced, onStoreFailure } = entry;
    const own = this.#own.get(account) ?? { stored: 0, local: 0 };
    const replicaCount = Math.max(1, this.#replicaCount());
    let spent = 0;
    let isOver: boolean;
    if (law.kind === "inFlight") {
      const share = Math.min(capacity, Math.max(1, Math.floor(capacity / replicaCount)));
      isOver = own.stored + own.local + estimate > share;
    } else {
      const known = this.#knownAt(entry, nowUs);
      spent = known.used + known.localSpent;
      const rest = Math.max(0, capacity - known.used - own.stored);
      isOver = known.localSpent + own.local + estimate > Math.floor(rest / replicaCount);
    }
    if (onStoreFailure === "allow") isOver = false;
    if (onStoreFailure === "deny" && isEnforced) isOver = true;
    return { spent, reserved: own.stored + own.local, isOver };
  }

  /** Returns what is known of an account, updated to the present time. */
  #knownAt(
    { account, law, capacity }: Pick<ReservedEntry, "account" | "law" | "capacity">,
    nowUs: number,
  ): KnownAccount {
    const known = this.#known.get(account);
    if (known === undefined || nowUs >= known.windowEndUs) {
      const fresh = this.#begin(account);
      fresh.atUs = nowUs;
      fresh.windowEndUs = windowEndUs(law, nowUs);
      return fresh;
    }
    if (law.kind === "drain" && nowUs > known.atUs) {
      const drained = Math.floor((capacity * (nowUs - known.atUs)) / law.periodUs);
      const fromUsed = Math.min(known.used, drained);
      known.used -= fromUsed;
      known.localSpent = Math.max(0, known.localSpent - (drained - fromUsed));
      // While less than one unit has drained, `atUs` stays, so that its time still counts.
      if (drained > 0) known.atUs = nowUs;
    }
    return known;
  }

  #begin(account: AccountKey): KnownAccount {
    const fresh = { used: 0, localSpent: 0, atUs: 0, windowEndUs: 0 };
    this.#known.set(account, fresh);
    return fresh;
  }

  #reserve(account: AccountKey, kind: keyof OwnReserved, estimate: number): void {
    const own = this.#own.get(account) ?? { stored: 0, local: 0 };
    own[kind] = Math.max(0, own[kind] + estimate);
    if (own.stored + own.local > 0) this.#own.set(account, own);
    else this.#own.delete(account);
  }
}

function windowEndUs(law: AccountLaw, nowUs: number): number {
  return law.kind === "window" ? windowAt(law.windows, nowUs).endUs : Number.POSITIVE_INFINITY;
}
