import { ServiceError } from "../../core/base/errors.js";
import type { LimitKey } from "../../core/limits/limit.js";
import type { BudgetStore } from "../../store/coordination/budget-store.js";
import { MemoryBudgets } from "../../store/coordination/memory-budgets.js";
import { MemoryPermits } from "../../store/coordination/memory-permits.js";
import type {
  PermitAnswer,
  PermitBeat,
  PermitStore,
} from "../../store/coordination/permit-store.js";
import type {
  LimitStore,
  StoredBucket,
  StoreOutcome,
  StoreRequest,
} from "../../store/limit-store.js";
import type { EventCalendar } from "./calendar.js";
import type { DrawMs } from "./distributions.js";

interface StoreLinkParts {
  readonly calendar: EventCalendar;
  readonly latencyMs: DrawMs;
  /** Called if promises must run before time advances. */
  readonly onResolved: () => void;
}

/** Connection to the store, in simulated time. */
export class StoreLink {
  readonly #parts: StoreLinkParts;
  isAway = false;
  /** Replaces the regular latency while it is set. */
  slowLatencyMs: DrawMs | undefined;
  callCount = 0;

  constructor(parts: StoreLinkParts) {
    this.#parts = parts;
  }

  get nowMs(): number {
    return this.#parts.calendar.nowMs;
  }

  /** Makes a call. After a timeout, the store still decides, like a server that got the request. */
  call<T>(deadlineMs: number, decide: () => Promise<T>): Promise<T> {
    const { calendar, latencyMs, onResolved } = this.#parts;
    this.callCount += 1;
    const atMs = calendar.nowMs + (this.slowLatencyMs ?? latencyMs)();
    const { isAway } = this;
    return new Promise((resolve, reject) => {
      if (isAway || atMs > deadlineMs) {
        calendar.after(deadlineMs - calendar.nowMs, () => {
          reject(new ServiceError("STORE_TIMEOUT"));
          onResolved();
        });
      }
      if (isAway) return;
      calendar.after(atMs - calendar.nowMs, () => {
        resolve(decide());
        onResolved();
      });
    });
  }
}

/** A store of limits behind a link. */
export class VirtualStore implements LimitStore {
  readonly #link: StoreLink;
  readonly #store: LimitStore;

  /** @param store decides without taking time */
  constructor(link: StoreLink, store: LimitStore) {
    this.#link = link;
    this.#store = store;
  }

  /** Shortens a key like the store itself. */
  shorten(key: LimitKey): LimitKey {
    return this.#store.shorten?.(key) ?? key;
  }

  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#link.call(deadlineMs, () => this.#store.take(batch, deadlineMs));
  }

  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    return this.#link.call(deadlineMs, () => this.#store.peek(key, deadlineMs));
  }

  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    return this.#link.call(deadlineMs, () => this.#store.forget(keys, deadlineMs));
  }

  ping(deadlineMs: number): Promise<void> {
    return this.#link.call(deadlineMs, () => this.#store.ping(deadlineMs));
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

/** The store through which replicas share permits, behind a link. */
export class VirtualPermits implements PermitStore {
  readonly #link: StoreLink;
  readonly #permits: MemoryPermits;

  constructor(link: StoreLink) {
    this.#link = link;
    this.#permits = new MemoryPermits({ monotonicMs: () => link.nowMs });
  }

  claim(beat: PermitBeat, deadlineMs: number): Promise<readonly (PermitAnswer | undefined)[]> {
    return this.#link.call(deadlineMs, () => this.#permits.claim(beat));
  }

  leave(holder: Parameters<PermitStore["leave"]>[0], deadlineMs: number): Promise<void> {
    return this.#link.call(deadlineMs, () => this.#permits.leave(holder));
  }
}

/** Part of the store that a replica's side of the ledger uses. */
export type BudgetLedgerStore = Pick<BudgetStore, "apply" | "renew" | "leave" | "addUsage">;

/** The ledger of calls in flight by key, behind a link. */
export class VirtualBudgets implements BudgetLedgerStore {
  readonly #link: StoreLink;
  readonly #budgets: MemoryBudgets;

  constructor(link: StoreLink) {
    this.#link = link;
    this.#budgets = new MemoryBudgets({ epochUs: () => Math.floor(link.nowMs * 1_000) });
  }

  apply(...[batch, deadlineMs]: Parameters<BudgetStore["apply"]>) {
    return this.#link.call(deadlineMs, () => this.#budgets.apply(batch));
  }

  renew(...[holder, leaseMs, deadlineMs]: Parameters<BudgetStore["renew"]>) {
    return this.#link.call(deadlineMs, () => this.#budgets.renew(holder, leaseMs));
  }

  leave(...[holder, deadlineMs]: Parameters<BudgetStore["leave"]>) {
    return this.#link.call(deadlineMs, () => this.#budgets.leave(holder));
  }

  addUsage(...[report, deadlineMs]: Parameters<BudgetStore["addUsage"]>) {
    return this.#link.call(deadlineMs, () => this.#budgets.addUsage(report));
  }
}
