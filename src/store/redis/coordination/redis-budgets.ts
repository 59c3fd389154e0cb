import { assert, ServiceError } from "../../../core/base/errors.js";
import type { AccountKey, AccountLaw } from "../../../core/budgets/account.js";
import {
  accountKeyLengthMax,
  budgetPart,
  isAccountKey,
} from "../../../core/budgets/account-key.js";
import { numberOf } from "../../../core/budgets/reservation-id.js";
import { type UsageCount, usageCounts } from "../../../core/budgets/usage.js";
import {
  type AccountRow,
  assertBudgetBatch,
  assertLease,
  assertRefund,
  assertUsage,
  type BudgetBatch,
  type BudgetOutcome,
  type BudgetStore,
  leaseMsMax,
  pageRowsMax,
  type Refund,
  type UsageReport,
  type UsageRow,
} from "../../coordination/budget-store.js";
import { usageRowKey } from "../../coordination/memory-usage.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../scripts/connection.js";
import {
  listScript,
  readAccountsScript,
  refundScript,
  renewScript,
} from "./budget-account-scripts.js";
import { packBatch, packLaw, ReplyReader, readKey, readOutcomes, readRow } from "./budget-pack.js";
import { applyBudgetsScript } from "./budget-scripts.js";
import { addUsageScript, usagePageScript } from "./budget-usage-scripts.js";
import { replyBytes } from "./fleet-script.js";

interface RedisBudgetsParts {
  /** For operations that calls wait for. */
  readonly decisions: StoreConnection;
  readonly heartbeats: StoreConnection;
  /** For pages and reports. */
  readonly bulk: StoreConnection;
  readonly keyPrefix: string;
}

/** Maximum number of accounts that one run of a script reads. */
const readMax = 512;

/** The exact ledger of budgets in Redis; see `budget-texts` for the keys. */
export class RedisBudgets implements BudgetStore {
  readonly #parts: RedisBudgetsParts;
  readonly #base: string;

  constructor(parts: RedisBudgetsParts) {
    this.#parts = parts;
    this.#base = `${parts.keyPrefix}{budgets}:`;
  }

  async apply(batch: BudgetBatch, deadlineMs: number): Promise<readonly BudgetOutcome[]> {
    assertBudgetBatch(batch);
    const { holder, leaseMs, operations } = batch;
    const { holders, accounts, ids, bytes } = packBatch(holder, operations);
    const head = [holder, String(leaseMs), String(holders.length)];
    const reply = await this.#run(this.#parts.decisions, applyBudgetsScript, {
      names: holders.map((name) => `o:${name}`),
      args: [...head, bytes, ...ids.map((id) => String(numberOf(id))), ...accounts],
      deadlineMs,
    });
    return readOutcomes(new ReplyReader(replyBytes(reply)), operations);
  }

  async renew(
    holder: string,
    leaseMs: number,
    deadlineMs: number,
  ): Promise<{ readonly expiredCount: number }> {
    assertLease(holder, leaseMs);
    return { expiredCount: await this.#renew(holder, leaseMs, deadlineMs) };
  }

  async leave(holder: string, deadlineMs: number): Promise<void> {
    assertLease(holder, leaseMsMax);
    await this.#renew(holder, 0, deadlineMs);
  }

  async #renew(holder: string, leaseMs: number, deadlineMs: number): Promise<number> {
    const call = { names: [], args: [holder, String(leaseMs)], deadlineMs };
    const reply = await this.#run(this.#parts.heartbeats, renewScript, call);
    if (typeof reply !== "number") throw new ServiceError("STORE_PROTOCOL");
    return reply;
  }

  async read(
    accounts: readonly { readonly account: AccountKey; readonly law: AccountLaw }[],
    deadlineMs: number,
  ): Promise<readonly (AccountRow | undefined)[]> {
    const rows: (AccountRow | undefined)[] = [];
    for (let from = 0; from < accounts.length; from += readMax) {
      const some = accounts.slice(from, from + readMax);
      const reply = await this.#run(this.#parts.bulk, readAccountsScript, {
        names: [],
        args: [
          Buffer.concat(some.map(({ law }) => packLaw(law))),
          ...some.map(({ account }) => account),
        ],
        deadlineMs,
      });
      const reader = new ReplyReader(replyBytes(reply));
      for (const { account } of some) rows.push(readRow(reader, account));
      reader.end();
    }
    return rows;
  }

  async list(
    query: { readonly budget: string; readonly law: AccountLaw; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly AccountRow[]; readonly cursor: string }> {
    const { budget, law, cursor } = query;
    assert(isAccountKey(cursor), "a cursor is what a page has answered");
    const args = [budgetPart(budget), packLaw(law), cursor];
    const reply = await this.#run(this.#parts.bulk, listScript, { names: [], args, deadlineMs });
    const reader = new ReplyReader(replyBytes(reply));
    const rows: AccountRow[] = [];
    let [count, last] = [0, ""];
    for (; !reader.isAtEnd; count += 1) {
      const account = readKey(reader);
      const row = readRow(reader, account);
      if (row !== undefined) rows.push(row);
      last = account;
    }
    return { rows, cursor: count < pageRowsMax ? "" : last };
  }

  async refund(refund: Refund, deadlineMs: number): Promise<number> {
    assertRefund(refund);
    const { id, account, law, amount } = refund;
    const call = { names: [`r:${id}`], args: [packLaw(law), String(amount), account] };
    const reply = await this.#run(this.#parts.bulk, refundScript, { ...call, deadlineMs });
    const given = Number(replyBytes(reply).toString("latin1"));
    if (!Number.isSafeInteger(given) || given < 0) throw new ServiceError("STORE_PROTOCOL");
    return given;
  }

  async addUsage(report: UsageReport, deadlineMs: number): Promise<void> {
    assertUsage(report);
    const { holder, number, day, rows } = report;
    const numbers = new Float64Array(rows.flatMap(packUsage));
    const names = rows.flatMap((row) => {
      return [usageRowKey(row), usageRowKey({ ...row, account: "", model: "" })];
    });
    const bytes = Buffer.from(numbers.buffer);
    await this.#runOn(this.#parts.bulk, addUsageScript, {
      names: [`u:${day}`, `v:${day}`, `w:${day}`],
      args: [holder, String(number), String(rows.length), bytes, ...names],
      deadlineMs,
    });
  }

  async usage(
    { day, cursor }: { readonly day: string; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly UsageRow[]; readonly cursor: string }> {
    assert(cursor.length <= cursorLengthMax, "a cursor is what a page has answered");
    const call = { names: [`u:${day}`, `v:${day}`], args: [cursor], deadlineMs };
    const reply = await this.#runOn(this.#parts.bulk, usagePageScript, call);
    const reader = new ReplyReader(replyBytes(reply));
    const rows: UsageRow[] = [];
    let last = "";
    while (!reader.isAtEnd) {
      last = reader.name();
      rows.push(readUsage(reader, last));
    }
    return { rows, cursor: rows.length < pageRowsMax ? "" : last };
  }

  /** Runs a script whose first key is the key of the holders. */
  #run(connection: StoreConnection, script: StoreScript, call: BudgetCall): Promise<ScriptReply> {
    return this.#runOn(connection, script, { ...call, names: ["holders", ...call.names] });
  }

  #runOn(
    connection: StoreConnection,
    script: StoreScript,
    { names, args, deadlineMs }: BudgetCall,
  ): Promise<ScriptReply> {
    const keys = names.map((name) => this.#base + name);
    return connection.run({ script, keys, args, deadlineMs });
  }
}

interface BudgetCall {
  /** Key names without the prefix and the hash tag. */
  readonly names: readonly string[];
  readonly args: readonly (string | Buffer)[];
  readonly deadlineMs: number;
}

/** Maximum length of a cursor: six bytes for each character of the longest name. */
const cursorLengthMax = 6 * accountKeyLengthMax + 16;

function packUsage({ callCount, cost, counts }: UsageRow): readonly number[] {
  return [callCount, cost, ...usageCounts.map((name) => counts[name] ?? -1)];
}

function readUsage(reader: ReplyReader, name: string): UsageRow {
  const { service, account, model } = readNames(name);
  const [callCount, cost] = [reader.amount(), reader.amount()];
  const counts: Partial<Record<UsageCount, number>> = {};
  for (const count of usageCounts) {
    const sum = reader.amount(-1);
    if (sum >= 0) counts[count] = sum;
  }
  return { service, account, model, callCount, counts, cost };
}

/** @throws ServiceError STORE_PROTOCOL */
function readNames(text: string): Pick<UsageRow, "service" | "account" | "model"> {
  let names: unknown;
  try {
    names = JSON.parse(text);
  } catch {
    throw new ServiceError("STORE_PROTOCOL");
  }
  const [service, account, model]: unknown[] = Array.isArray(names) ? names : [];
  const isSound =
    typeof service === "string" && typeof account === "string" && typeof model === "string";
  if (!isSound) throw new ServiceError("STORE_PROTOCOL");
  return { service, account, model };
}
