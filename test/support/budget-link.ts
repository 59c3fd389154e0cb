import type {
  BudgetBatch,
  BudgetOutcome,
  BudgetStore,
  Refund,
  UsageReport,
} from "../../src/store/coordination/budget-store.js";
import { LossyLink, type LossyLinkParts } from "./lossy-link.js";

/** Told of what the store did, right when it has. */
export interface BudgetWatcher {
  applied(batch: BudgetBatch, outcomes: readonly BudgetOutcome[]): void;
}

/** A store of budgets behind a network, as one replica sees it. */
export class BudgetLink extends LossyLink implements BudgetStore {
  readonly #inner: BudgetStore;
  readonly #watcher: BudgetWatcher | undefined;

  constructor(
    parts: LossyLinkParts & { readonly inner: BudgetStore; readonly watcher?: BudgetWatcher },
  ) {
    super(parts);
    this.#inner = parts.inner;
    this.#watcher = parts.watcher;
  }

  apply(batch: BudgetBatch, deadlineMs: number): Promise<readonly BudgetOutcome[]> {
    return this.call(deadlineMs, async () => {
      const outcomes = await this.#inner.apply(batch, deadlineMs);
      this.#watcher?.applied(batch, outcomes);
      return outcomes;
    });
  }

  renew(holder: string, leaseMs: number, deadlineMs: number) {
    return this.call(deadlineMs, () => this.#inner.renew(holder, leaseMs, deadlineMs));
  }

  leave(holder: string, deadlineMs: number): Promise<void> {
    return this.call(deadlineMs, () => this.#inner.leave(holder, deadlineMs));
  }

  read(accounts: Parameters<BudgetStore["read"]>[0], deadlineMs: number) {
    return this.call(deadlineMs, () => this.#inner.read(accounts, deadlineMs));
  }

  list(query: Parameters<BudgetStore["list"]>[0], deadlineMs: number) {
    return this.call(deadlineMs, () => this.#inner.list(query, deadlineMs));
  }

  refund(refund: Refund, deadlineMs: number): Promise<number> {
    return this.call(deadlineMs, () => this.#inner.refund(refund, deadlineMs));
  }

  addUsage(report: UsageReport, deadlineMs: number): Promise<void> {
    return this.call(deadlineMs, () => this.#inner.addUsage(report, deadlineMs));
  }

  usage(query: Parameters<BudgetStore["usage"]>[0], deadlineMs: number) {
    return this.call(deadlineMs, () => this.#inner.usage(query, deadlineMs));
  }
}
