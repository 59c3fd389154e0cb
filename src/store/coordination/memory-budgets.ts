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
  lose,
  openAccount,
  release,
  reserve,
  spend,
  withSpeed,
} from "../../core/budgets/account-law.js";
import type { Settlement } from "../../core/budgets/budget-ledger.js";
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
  type UsageReport,
  type UsageRow,
} from "./budget-store.js";
import { MemoryUsage } from "./memory-usage.js";

/** The exact ledger of budgets in this process. */
export class MemoryBudgets implements BudgetStore {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #accounts = new Accounts();
  /** Never removed: a process has one holder, a test a few. */
  readonly #holders = new Map<string, Holder>();
  readonly #refunds = new Map<string, { readonly amount: number; readonly untilMs: number }>();
  readonly #usage: MemoryUsage;

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
    this.#usage = new MemoryUsage(clock);
  }

  async apply(batch: BudgetBatch): Promise<readonly BudgetOutcome[]> {
    assertBudgetBatch(batch);
    const nowUs = this.#clock.epochUs();
    this.#holderOf(batch.holder).untilMs = msOf(nowUs) + batch.leaseMs;
    return batch.operations.map((operation) => {
      return operation.kind === "reserve"
        ? this.#reserve(operation, nowUs)
        : this.#settle(operation, nowUs);
    });
  }

  async renew(holder: string, leaseMs: number): Promise<{ readonly expiredCount: number }> {
    assertLease(holder, leaseMs);
    const nowUs = this.#clock.epochUs();
    const lastMs = msOf(nowUs) + leaseMsMax;
    // If the clock has stepped back, leases may end later than the maximum duration from now.
    for (const one of this.#holders.values()) one.untilMs = Math.min(one.untilMs, lastMs);
    this.#holderOf(holder).untilMs = msOf(nowUs) + leaseMs;
    return { expiredCount: this.#expire(nowUs) };
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
      spend(account, account.windowId, -amount);
      this.#accounts.set(refund.account, account, nowUs);
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
    const record = holder.find(number, msOf(nowUs));
    if (record !== undefined || holder.marks.has(number)) {
      return this.#again(entries, record, nowUs);
    }
    const accounts = entries.map((entry) => this.#accountFor(entry, nowUs));
    const results = entries.map((entry, i) => entryResult(accountIn(accounts, i), entry, nowUs));
    const isReserved = !entries.some(({ isEnforced }, i) => isEnforced && results[i]?.isOver);
    if (isReserved && entries.length > 0) {
      if (!this.#accounts.haveRoom(entries, nowUs)) return full;
      const holds = entries.map((entry, i): RecordedHold => {
        const { account: key, whenLost } = entry;
        const account = withSpeed(accountIn(accounts, i), entry);
        const { windowId } = account;
        const held = reserve(account, entry.estimate);
        this.#accounts.set(key, account, nowUs);
        const isOver = results[i]?.isOver ?? false;
        return { windowId, held, key, isCharged: whenLost === "charge", isOver };
      });
      holder.open.set(number, { holds, untilMs: 0 });
    }
    return { kind: "reserved", result: { isReserved, entries: results, nowUs } };
  }

  /** Answers a repeated reservation, or one that arrives after its settlement. */
  #again(
    entries: readonly ReservedEntry[],
    record: Reservation | undefined,
    nowUs: number,
  ): BudgetOutcome {
    const results = entries.map((entry, i): EntryResult => {
      const account = this.#accountFor(entry, nowUs);
      if (record === undefined) return entryResult(account, entry, nowUs);
      const hold = record.holds[i];
      const other = { ...account };
      if (hold !== undefined && record.untilMs === 0) release(other, hold);
      const isOver = hold?.isOver ?? false;
      return { spent: other.spent, reserved: other.reserved, isOver };
    });
    const result = { isReserved: record !== undefined, entries: results, nowUs };
    return { kind: "reserved", result };
  }

  #settle(settlement: Settlement, nowUs: number): BudgetOutcome {
    const { id, unreserved: entries } = settlement;
    const number = numberOf(id);
    const holder = this.#holders.get(holderOf(id));
    const record = holder?.find(number, msOf(nowUs));
    if (record === undefined) {
      if (entries === undefined || holder?.marks.has(number)) return unknown;
      return this.#charge({ ...settlement, unreserved: entries }, nowUs);
    }
    if (!holder?.open.delete(number)) holder?.late.delete(number);
    this.#settleHolds(settlement, record, nowUs);
    holder?.marks.add(number);
    return record.untilMs === 0 ? settled : late;
  }

  /** Settles the holds of an open reservation, or of one whose holder was lost. */
  #settleHolds({ costs }: Settlement, { holds, untilMs }: Reservation, nowUs: number): void {
    holds.forEach((hold, i) => {
      const stored = this.#accounts.get(hold.key, nowUs);
      if (stored === undefined) return;
      const account = drainedAt(stored, nowUs);
      let amount = costs[i] ?? hold.held;
      if (untilMs === 0) release(account, hold);
      else if (hold.isCharged) amount -= hold.held;
      else lose(account, hold, -1);
      spend(account, hold.windowId, amount);
      this.#accounts.set(hold.key, account, nowUs);
    });
  }

  /** Charges a call that was admitted without a reservation. */
  #charge({ id, costs, unreserved: entries }: Required<Settlement>, nowUs: number): BudgetOutcome {
    if (!this.#accounts.haveRoom(entries, nowUs)) return full;
    entries.forEach((entry, i) => {
      const account = withSpeed(this.#accountFor(entry, nowUs), entry);
      spend(account, account.windowId, costs[i] ?? entry.estimate);
      this.#accounts.set(entry.account, account, nowUs);
    });
    this.#holderOf(holderOf(id)).marks.add(numberOf(id));
    return settled;
  }

  #accountFor(entry: ReservedEntry, nowUs: number): Account {
    const { account: key, law } = entry;
    const stored = this.#accounts.get(key, nowUs);
    const account = stored === undefined ? openAccount(law, nowUs) : accountAt(stored, law, nowUs);
    return account;
  }

  #holderOf(name: string): Holder {
    const known = this.#holders.get(name);
    if (known !== undefined) return known;
    const holder = new Holder();
    this.#holders.set(name, holder);
    return holder;
  }

  /** Expires some reservations of lost holders, starting with the leases that ended first. */
  #expire(nowUs: number): number {
    const nowMs = msOf(nowUs);
    const ended = [...this.#holders].filter(([, { untilMs }]) => untilMs <= nowMs);
    ended.sort(([one, a], [other, b]) => a.untilMs - b.untilMs || (one < other ? -1 : 1));
    let count = 0;
    for (const [, holder] of ended) {
      for (const [number, record] of holder.open) {
        if (count >= expiredMax) break;
        count += 1;
        holder.open.delete(number);
        for (const hold of record.holds) this.#lose(hold, nowUs);
        holder.marks.add(number);
        holder.keepLate(number, { ...record, untilMs: nowMs + lateSettlementMsMax }, nowMs);
      }
    }
    this.#accounts.forgetExpired(nowUs);
    return count;
  }

  #lose(hold: RecordedHold, nowUs: number): void {
    const stored = this.#accounts.get(hold.key, nowUs);
    if (stored === undefined) return;
    const account = drainedAt(stored, nowUs);
    release(account, hold);
    if (hold.isCharged) spend(account, hold.windowId, hold.held);
    else lose(account, hold, 1);
    this.#accounts.set(hold.key, account, nowUs);
  }
}

const settled: BudgetOutcome = { kind: "settled", result: "settled" };
const late: BudgetOutcome = { kind: "settled", result: "late" };
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

/** The part of an account that a reservation holds, as stored. */
interface RecordedHold extends Hold {
  readonly key: AccountKey;
  /** Whether the hold is charged when its holder is lost. */
  readonly isCharged: boolean;
  readonly isOver: boolean;
}

interface Reservation {
  readonly holds: readonly RecordedHold[];
  /** Time until which a late settlement counts; 0 while the reservation is open. */
  readonly untilMs: number;
}

/** A replica and its reservations, by their numbers. */
class Holder {
  /** End of its lease. */
  untilMs = 0;
  readonly open = new Map<number, Reservation>();
  readonly late = new Map<number, Reservation>();

  /**
   * Numbers of reservations that are settled or expired. A settlement without a record is charged
   * only if its number is not among them.
   */
  readonly marks = new Marks();

  /** Returns a reservation that is open, or that is lost and may still be settled. */
  find(number: number, nowMs: number): Reservation | undefined {
    const open = this.open.get(number);
    if (open !== undefined) return open;
    const record = this.late.get(number);
    return record === undefined || record.untilMs <= nowMs ? undefined : record;
  }

  keepLate(number: number, record: Reservation, nowMs: number): void {
    if (this.late.size >= lateRecordsMax) this.forgetLate(nowMs);
    if (this.late.size < lateRecordsMax) this.late.set(number, record);
  }

  forgetLate(nowMs: number): void {
    for (const [number, { untilMs }] of this.late) {
      if (untilMs <= nowMs) this.late.delete(number);
    }
  }
}

/** Numbers per block of marks. A block takes 8 KiB. */
const blockSize = 65_536;

/** Maximum number of blocks per holder: 8,388,608 numbers. The oldest are removed. */
const blocksMax = 128;

/** A set of increasing numbers, with one bit for each. */
class Marks {
  readonly #blocks = new Map<number, Uint32Array>();

  has(number: number): boolean {
    const bits = this.#blocks.get(Math.floor(number / blockSize));
    if (bits === undefined) return false;
    const place = number % blockSize;
    return ((bits[place >>> 5] ?? 0) & (1 << (place & 31))) !== 0;
  }

  add(number: number): void {
    const block = Math.floor(number / blockSize);
    const bits = this.#blocks.get(block) ?? this.#begin(block);
    const place = number % blockSize;
    bits[place >>> 5] = (bits[place >>> 5] ?? 0) | (1 << (place & 31));
  }

  #begin(block: number): Uint32Array {
    const [oldest] = this.#blocks.keys();
    if (oldest !== undefined && this.#blocks.size >= blocksMax) this.#blocks.delete(oldest);
    const bits = new Uint32Array(blockSize / 32);
    this.#blocks.set(block, bits);
    return bits;
  }
}

interface StoredAccount extends Expiring {
  readonly key: AccountKey;
  /** Sequence number of the account, for paging. */
  readonly number: number;
  account: Account;
  expiresMs: number;
}

/** Accounts, until they expire. */
class Accounts {
  readonly #byKey = new Map<AccountKey, StoredAccount>();
  /** The same accounts, by budget. */
  readonly #budgets = new Map<string, Set<StoredAccount>>();
  readonly #heap = new ExpiryHeap<StoredAccount>();
  #count = 0;

  get(key: AccountKey, nowUs: number): Account | undefined {
    const stored = this.#byKey.get(key);
    return stored === undefined || stored.expiresMs <= msOf(nowUs) ? undefined : stored.account;
  }

  set(key: AccountKey, account: Account, nowUs: number): void {
    const known = this.#byKey.get(key);
    if (known === undefined) {
      this.#count += 1;
      const expiresMs = keptUntilMs(account, nowUs, 0);
      const stored = { key, number: this.#count, account, expiresMs, heapPlace: undefined };
      this.#byKey.set(key, stored);
      this.#ofBudget(key).add(stored);
      this.#heap.push(stored);
      return;
    }
    known.account = account;
    const isLive = known.expiresMs > msOf(nowUs);
    const expiresMs = keptUntilMs(account, nowUs, isLive ? known.expiresMs : 0);
    if (known.expiresMs === expiresMs) return;
    this.#heap.remove(known);
    known.expiresMs = expiresMs;
    this.#heap.push(known);
  }

  #ofBudget(key: AccountKey): Set<StoredAccount> {
    const budget = budgetPartOf(key);
    const known = this.#budgets.get(budget);
    if (known !== undefined) return known;
    const own = new Set<StoredAccount>();
    this.#budgets.set(budget, own);
    return own;
  }

  /** Reports whether there is room for the accounts of a call that do not exist yet. */
  haveRoom(entries: readonly ReservedEntry[], nowUs: number): boolean {
    const missing = entries.filter(({ account }) => this.get(account, nowUs) === undefined);
    if (missing.length === 0) return true;
    this.forgetExpired(nowUs);
    const counts = new Map<string, number>();
    for (const { account } of missing) {
      const budget = budgetPartOf(account);
      const count = (counts.get(budget) ?? this.#budgets.get(budget)?.size ?? 0) + 1;
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
    const after = Number(cursor);
    const keys: AccountKey[] = [];
    for (const stored of this.#budgets.get(budgetPart(budget)) ?? []) {
      const { key, number, expiresMs } = stored;
      if (number <= after || expiresMs <= msOf(nowUs)) continue;
      keys.push(key);
      if (keys.length >= pageRowsMax) return { keys, cursor: String(number) };
    }
    return { keys, cursor: "" };
  }

  forgetExpired(nowUs: number): void {
    const nowMs = msOf(nowUs);
    for (let first = this.#heap.first; first !== undefined; first = this.#heap.first) {
      if (first.expiresMs > nowMs) return;
      this.#heap.remove(first);
      this.#byKey.delete(first.key);
      const budget = budgetPartOf(first.key);
      this.#budgets.get(budget)?.delete(first);
      if (this.#budgets.get(budget)?.size === 0) this.#budgets.delete(budget);
    }
  }
}
