import type { Clock } from "../../core/base/clock.js";
import type {
  AccountKey,
  AccountLaw,
  EntryResult,
  ReservedEntry,
} from "../../core/budgets/account.js";
import { budgetPart, budgetPartOf } from "../../core/budgets/account-key.js";
import {
  type Account,
  accountAt,
  drainedAt,
  entryResult,
  type Hold,
  keptUntilMs,
  lost,
  openAccount,
  reserved,
  spent,
  unreserved,
  withSpeed,
} from "../../core/budgets/account-law.js";
import type { ReservationId, Settlement } from "../../core/budgets/budget-ledger.js";
import { holderOf, numberOf } from "../../core/budgets/reservation-id.js";
import { type Expiring, ExpiryHeap } from "../../core/collections/expiry-heap.js";
import {
  type AccountRow,
  accountsMax,
  assertBudgetBatch,
  assertLease,
  assertRefund,
  assertUsage,
  type BudgetBatch,
  type BudgetOperation,
  type BudgetOutcome,
  type BudgetStore,
  expiredMax,
  lateRecordsMax,
  lateSettlementMsMax,
  leaseMsMax,
  pageRowsMax,
  type Refund,
  refundKeptMs,
  settledKeptMs,
  type UsageReport,
  type UsageRow,
} from "./budget-store.js";
import { MemoryUsage } from "./memory-usage.js";

/** The exact ledger of budgets in this process. */
export class MemoryBudgets implements BudgetStore {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #accounts = new Accounts();
  /** Never forgotten: a process has one, a test a few. */
  readonly #holders = new Map<string, Holder>();
  readonly #settled = new SettledIds();
  readonly #refunds = new Map<string, { readonly amount: number; readonly untilMs: number }>();
  readonly #usage: MemoryUsage;

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
    this.#usage = new MemoryUsage(clock);
  }

  async apply(batch: BudgetBatch): Promise<readonly BudgetOutcome[]> {
    assertBudgetBatch(batch);
    const nowUs = this.#clock.epochUs();
    this.#beat(batch.holder, batch.leaseMs, nowUs);
    return batch.operations.map((operation) => {
      return operation.kind === "reserve"
        ? this.#reserve(operation, nowUs)
        : this.#settle(operation, { by: batch.holder, nowUs });
    });
  }

  async renew(holder: string, leaseMs: number): Promise<{ readonly expiredCount: number }> {
    assertLease(holder, leaseMs);
    const nowUs = this.#clock.epochUs();
    const lastMs = msOf(nowUs) + leaseMsMax;
    // Ends beyond the longest lease are what a clock that stepped back has left.
    for (const one of this.#holders.values()) one.untilMs = Math.min(one.untilMs, lastMs);
    return { expiredCount: this.#beat(holder, leaseMs, nowUs) };
  }

  async leave(holder: string): Promise<void> {
    assertLease(holder, leaseMsMax);
    const nowUs = this.#clock.epochUs();
    this.#holderOf(holder).untilMs = 0;
    this.#expire(nowUs);
  }

  async read(
    accounts: readonly { readonly account: AccountKey; readonly law: AccountLaw }[],
  ): Promise<readonly (AccountRow | undefined)[]> {
    const nowUs = this.#clock.epochUs();
    return accounts.map(({ account: key, law }) => {
      const account = this.#accounts.get(key, nowUs);
      return account && rowOf(key, accountAt(account, law, nowUs));
    });
  }

  async list(query: {
    readonly budget: string;
    readonly law: AccountLaw;
    readonly cursor: string;
  }): Promise<{ readonly rows: readonly AccountRow[]; readonly cursor: string }> {
    const nowUs = this.#clock.epochUs();
    const { keys, cursor } = this.#accounts.page(query.budget, query.cursor, nowUs);
    const found = await this.read(keys.map((account) => ({ account, law: query.law })));
    return { rows: found.filter((row) => row !== undefined), cursor };
  }

  async refund(refund: Refund): Promise<number> {
    assertRefund(refund);
    const nowUs = this.#clock.epochUs();
    const nowMs = msOf(nowUs);
    for (const [id, { untilMs }] of this.#refunds) if (untilMs <= nowMs) this.#refunds.delete(id);
    const known = this.#refunds.get(refund.id);
    if (known !== undefined) return known.amount;
    const stored = this.#accounts.get(refund.account, nowUs);
    let amount = 0;
    if (stored !== undefined) {
      const account = accountAt(stored, refund.law, nowUs);
      amount = Math.min(account.spent, refund.amount);
      this.#accounts.set(refund.account, spent(account, account.windowId, -amount), nowUs);
    }
    this.#refunds.set(refund.id, { amount, untilMs: nowMs + refundKeptMs });
    return amount;
  }

  async addUsage(report: UsageReport): Promise<void> {
    assertUsage(report);
    this.#usage.add(report);
  }

  async usage(query: {
    readonly day: string;
    readonly cursor: string;
  }): Promise<{ readonly rows: readonly UsageRow[]; readonly cursor: string }> {
    return this.#usage.page(query.day, query.cursor);
  }

  #reserve(
    { id, entries }: Extract<BudgetOperation, { kind: "reserve" }>,
    nowUs: number,
  ): BudgetOutcome {
    const holder = this.#holderOf(holderOf(id));
    const number = numberOf(id);
    if (number <= holder.highestNumber) {
      const record = holder.open.get(id) ?? holder.lateOf(id, msOf(nowUs));
      return this.#again(entries, record?.isSettled ? undefined : record, nowUs);
    }
    holder.highestNumber = number;
    const accounts = entries.map((entry) => this.#accountFor(entry, nowUs));
    const results = entries.map((entry, i) => entryResult(accountIn(accounts, i), entry, nowUs));
    const isReserved = !entries.some(({ isEnforced }, i) => isEnforced && results[i]?.isOver);
    if (isReserved && entries.length > 0) {
      if (!this.#accounts.haveRoom(entries, nowUs)) return full;
      const holds = entries.map((entry, i): RecordedHold => {
        const { account: key, whenLost } = entry;
        const account = withSpeed(accountIn(accounts, i), entry);
        const [after, hold] = reserved(account, entry.estimate);
        this.#accounts.set(key, after, nowUs);
        const isOver = results[i]?.isOver ?? false;
        return { ...hold, key, isCharged: whenLost === "charge", isOver };
      });
      holder.open.set(id, { holds, isSettled: false, untilMs: 0 });
    }
    return { kind: "reserved", result: { isReserved, entries: results, nowUs } };
  }

  /** A reservation that is repeated; or that comes again after it was refused or settled. */
  #again(
    entries: readonly ReservedEntry[],
    record: Reservation | undefined,
    nowUs: number,
  ): BudgetOutcome {
    const results = entries.map((entry, i): EntryResult => {
      const account = this.#accountFor(entry, nowUs);
      if (record === undefined) return entryResult(account, entry, nowUs);
      const hold = record.holds[i];
      const other = hold === undefined || record.untilMs > 0 ? account : unreserved(account, hold);
      const isOver = hold?.isOver ?? false;
      return { spent: other.spent, reserved: other.reserved, isOver };
    });
    const result = { isReserved: record !== undefined, entries: results, nowUs };
    return { kind: "reserved", result };
  }

  #settle(
    settlement: Settlement,
    { by, nowUs }: { readonly by: string; readonly nowUs: number },
  ): BudgetOutcome {
    const { id, unreserved: entries } = settlement;
    const owner = holderOf(id);
    const holder = this.#holders.get(owner);
    const open = holder?.open.get(id);
    const record = open ?? holder?.lateOf(id, msOf(nowUs));
    if (record === undefined || record.isSettled) {
      const isKnown = record !== undefined || entries === undefined;
      if (isKnown || this.#settled.has(id, msOf(nowUs))) return unknown;
      return this.#charge({ ...settlement, unreserved: entries }, nowUs);
    }
    holder?.open.delete(id);
    holder?.late.delete(id);
    this.#settleHolds(settlement, record, nowUs);
    // Whoever reserved knows whether its own settlement has come.
    if (entries !== undefined || owner !== by) this.#settled.add(id, msOf(nowUs));
    return { kind: "settled", result: open === undefined ? "late" : "settled" };
  }

  /** Settles what is reserved, or what was when its holder was lost. */
  #settleHolds({ costs }: Settlement, { holds, untilMs }: Reservation, nowUs: number): void {
    holds.forEach((hold, i) => {
      const stored = this.#accounts.get(hold.key, nowUs);
      if (stored === undefined) return;
      let account = drainedAt(stored, nowUs);
      let amount = costs[i] ?? hold.held;
      if (untilMs === 0) account = unreserved(account, hold);
      else if (hold.isCharged) amount -= hold.held;
      else account = lost(account, hold, -1);
      this.#accounts.set(hold.key, spent(account, hold.windowId, amount), nowUs);
    });
  }

  /** Charges a call that was let in without a reservation. */
  #charge({ id, costs, unreserved: entries }: Required<Settlement>, nowUs: number): BudgetOutcome {
    if (!this.#accounts.haveRoom(entries, nowUs)) return full;
    entries.forEach((entry, i) => {
      const account = withSpeed(this.#accountFor(entry, nowUs), entry);
      const cost = costs[i] ?? entry.estimate;
      this.#accounts.set(entry.account, spent(account, account.windowId, cost), nowUs);
    });
    const nowMs = msOf(nowUs);
    this.#settled.add(id, nowMs);
    const holder = this.#holderOf(holderOf(id));
    const untilMs = nowMs + lateSettlementMsMax;
    holder.keepLate(id, { holds: [], isSettled: true, untilMs }, nowMs);
    holder.highestNumber = Math.max(holder.highestNumber, numberOf(id));
    return { kind: "settled", result: "settled" };
  }

  #accountFor(entry: ReservedEntry, nowUs: number): Account {
    const { account: key, law } = entry;
    const stored = this.#accounts.get(key, nowUs);
    const account = stored === undefined ? openAccount(law, nowUs) : accountAt(stored, law, nowUs);
    return account;
  }

  #holderOf(name: string): Holder {
    const known = this.#holders.get(name) ?? new Holder();
    this.#holders.set(name, known);
    return known;
  }

  #beat(name: string, leaseMs: number, nowUs: number): number {
    this.#holderOf(name).untilMs = msOf(nowUs) + leaseMs;
    return this.#expire(nowUs);
  }

  /** Expires some reservations of lost holders, those first whose leases ended first. */
  #expire(nowUs: number): number {
    const nowMs = msOf(nowUs);
    const ended = [...this.#holders].filter(([, { untilMs }]) => untilMs <= nowMs);
    ended.sort(([one, a], [other, b]) => a.untilMs - b.untilMs || (one < other ? -1 : 1));
    let count = 0;
    for (const [, holder] of ended) {
      for (const [id, record] of holder.open) {
        if (count >= expiredMax) return count;
        count += 1;
        holder.open.delete(id);
        for (const hold of record.holds) this.#lose(hold, nowUs);
        holder.keepLate(id, { ...record, untilMs: nowMs + lateSettlementMsMax }, nowMs);
      }
    }
    return count;
  }

  #lose(hold: RecordedHold, nowUs: number): void {
    const stored = this.#accounts.get(hold.key, nowUs);
    if (stored === undefined) return;
    const account = unreserved(drainedAt(stored, nowUs), hold);
    const { windowId, held } = hold;
    const after = hold.isCharged ? spent(account, windowId, held) : lost(account, hold, 1);
    this.#accounts.set(hold.key, after, nowUs);
  }
}

const unknown: BudgetOutcome = { kind: "settled", result: "unknown" };
const full: BudgetOutcome = { kind: "failed", code: "STORE_FULL" };

function msOf(us: number): number {
  return Math.floor(us / 1_000);
}

function accountIn(accounts: readonly Account[], index: number): Account {
  const account = accounts[index];
  if (account === undefined) throw new Error("assertion failed: each entry has an account");
  return account;
}

function rowOf(account: AccountKey, { spent, reserved, spentBefore, lost }: Account): AccountRow {
  return { account, spent, reserved, spentBefore, lost };
}

/** What a reservation holds in an account, as it is kept. */
interface RecordedHold extends Hold {
  readonly key: AccountKey;
  /** Whether it is charged when its holder is lost. */
  readonly isCharged: boolean;
  readonly isOver: boolean;
}

interface Reservation {
  readonly holds: readonly RecordedHold[];
  /** Whether only the id is kept, of a call that was charged without a reservation. */
  readonly isSettled: boolean;
  /** Until when a late settlement counts; 0 while it is open. */
  readonly untilMs: number;
}

/** A replica, and what it has reserved. */
class Holder {
  /** The end of its lease. */
  untilMs = 0;
  /** The highest one that was reserved, or refused. */
  highestNumber = -1;
  readonly open = new Map<ReservationId, Reservation>();
  readonly late = new Map<ReservationId, Reservation>();

  lateOf(id: ReservationId, nowMs: number): Reservation | undefined {
    const record = this.late.get(id);
    return record === undefined || record.untilMs <= nowMs ? undefined : record;
  }

  keepLate(id: ReservationId, record: Reservation, nowMs: number): void {
    if (this.late.size >= lateRecordsMax) this.forgetLate(nowMs);
    if (this.late.size < lateRecordsMax) this.late.set(id, record);
  }

  forgetLate(nowMs: number): void {
    for (const [id, { untilMs }] of this.late) if (untilMs <= nowMs) this.late.delete(id);
  }
}

/** Ids that were settled lately, for one to two times `settledKeptMs`. */
class SettledIds {
  #sinceMs = 0;
  #ids = new Set<ReservationId>();
  #idsBefore = new Set<ReservationId>();

  has(id: ReservationId, nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#ids.has(id) || this.#idsBefore.has(id);
  }

  add(id: ReservationId, nowMs: number): void {
    this.#forgetOld(nowMs);
    this.#ids.add(id);
  }

  #forgetOld(nowMs: number): void {
    if (nowMs >= this.#sinceMs && nowMs < this.#sinceMs + settledKeptMs) return;
    this.#sinceMs = nowMs;
    this.#idsBefore = this.#ids;
    this.#ids = new Set();
  }
}

interface StoredAccount extends Expiring {
  readonly key: AccountKey;
  /** Counts accounts, for pages. */
  readonly number: number;
  account: Account;
  expiresMs: number;
}

/** Accounts of one budget. */
interface BudgetAccounts {
  readonly byKey: Map<AccountKey, StoredAccount>;
  readonly heap: ExpiryHeap<StoredAccount>;
}

/** Accounts by budget, until they expire. */
class Accounts {
  readonly #budgets = new Map<string, BudgetAccounts>();
  #count = 0;

  get(key: AccountKey, nowUs: number): Account | undefined {
    const stored = this.#budgetOf(key)?.byKey.get(key);
    return stored === undefined || stored.expiresMs <= msOf(nowUs) ? undefined : stored.account;
  }

  set(key: AccountKey, account: Account, nowUs: number): void {
    const own = this.#budgetOf(key) ?? { byKey: new Map(), heap: new ExpiryHeap<StoredAccount>() };
    this.#budgets.set(budgetPartOf(key), own);
    const known = own.byKey.get(key);
    if (known !== undefined) own.heap.remove(known);
    const isLive = known !== undefined && known.expiresMs > msOf(nowUs);
    const expiresMs = keptUntilMs(account, nowUs, isLive ? known.expiresMs : 0);
    this.#count += 1;
    const number = known?.number ?? this.#count;
    const stored: StoredAccount = { key, number, account, expiresMs, heapPlace: undefined };
    own.byKey.set(key, stored);
    own.heap.push(stored);
  }

  /** Whether accounts of a call that do not exist yet can be made. */
  haveRoom(entries: readonly ReservedEntry[], nowUs: number): boolean {
    const counts = new Map<string, number>();
    for (const { account: key } of entries) {
      if (this.get(key, nowUs) !== undefined) continue;
      const budget = budgetPartOf(key);
      const own = this.#budgets.get(budget);
      if (own !== undefined) forgetExpired(own, msOf(nowUs));
      const count = (counts.get(budget) ?? own?.byKey.size ?? 0) + 1;
      if (count > accountsMax) return false;
      counts.set(budget, count);
    }
    return true;
  }

  page(
    budget: string,
    cursor: string,
    nowUs: number,
  ): { readonly keys: readonly AccountKey[]; readonly cursor: string } {
    const own = this.#budgets.get(budgetPart(budget));
    const after = Number(cursor);
    const keys: AccountKey[] = [];
    for (const { key, number, expiresMs } of own?.byKey.values() ?? []) {
      if (number <= after || expiresMs <= msOf(nowUs)) continue;
      keys.push(key);
      if (keys.length >= pageRowsMax) return { keys, cursor: String(number) };
    }
    return { keys, cursor: "" };
  }

  #budgetOf(key: AccountKey): BudgetAccounts | undefined {
    return this.#budgets.get(budgetPartOf(key));
  }
}

function forgetExpired({ byKey, heap }: BudgetAccounts, nowMs: number): void {
  for (
    let first = heap.first;
    first !== undefined && first.expiresMs <= nowMs;
    first = heap.first
  ) {
    heap.remove(first);
    byKey.delete(first.key);
  }
}
