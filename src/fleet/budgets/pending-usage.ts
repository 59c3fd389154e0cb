import type { Clock } from "../../core/base/clock.js";
import { cutText } from "../../core/base/text.js";
import type { UsageEntry } from "../../core/budgets/budget-ledger.js";
import { type UsageCount, usageCounts } from "../../core/budgets/usage.js";
import { usageDay } from "../../core/budgets/usage-day.js";
import {
  type BudgetStore,
  reportRowsMax,
  type UsageRow,
} from "../../store/coordination/budget-store.js";

/** Maximum rows that wait for the store. Further usage is summed without account and model. */
const pendingRowsMax = 10_000;

/** Maximum length of account and model names in a row, in UTF-16 units. The rest is cut. */
const accountLengthMax = 2_048;
const modelLengthMax = 256;

/** Timeout of a report, in milliseconds. */
const reportTimeoutMs = 1_000;

const dayUs = 86_400_000_000;

interface PendingUsageParts {
  readonly store: Pick<BudgetStore, "addUsage">;
  readonly clock: Clock;
  readonly holder: string;
}

interface Sums extends UsageRow {
  callCount: number;
  readonly counts: Partial<Record<UsageCount, number>>;
  cost: number;
}

/** A report that the store may have. It is repeated with its number until the store answers. */
interface SentReport {
  readonly number: number;
  readonly day: string;
  readonly rows: readonly UsageRow[];
}

/** Usage of this replica's calls by service, account, model and day, until it is stored. */
export class PendingUsage {
  readonly #parts: PendingUsageParts;
  /** By day, service and model, then by account. */
  readonly #days = new Map<string, Map<string, Map<string, Map<string, Sums>>>>();
  #day: { readonly number: number; readonly text: string } | undefined;
  #rowCount = 0;
  #number = 0;
  #sent: SentReport | undefined;
  #sending: Promise<boolean> | undefined;

  constructor(parts: PendingUsageParts) {
    this.#parts = parts;
  }

  /** Number of rows that wait. */
  get rowCount(): number {
    return this.#rowCount + (this.#sent?.rows.length ?? 0);
  }

  add({ service, accounts, model, usage, cost }: UsageEntry): void {
    const day = this.#today();
    const shortModel = cutText(model, modelLengthMax);
    for (const account of accounts.length === 0 ? [""] : accounts) {
      const sums = this.#sums(day, {
        service,
        account: cutText(account, accountLengthMax),
        model: shortModel,
      });
      sums.callCount += 1;
      sums.cost = sumOf(sums.cost, cost);
      for (const count of usageCounts) {
        const value = usage[count];
        if (value !== undefined) sums.counts[count] = sumOf(sums.counts[count] ?? 0, value);
      }
    }
  }

  /** Sends what waits. Resolves to whether all of it is stored. Never rejects. */
  flush(): Promise<boolean> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #send(): Promise<boolean> {
    const { store, clock, holder } = this.#parts;
    for (;;) {
      this.#sent ??= this.#next();
      if (this.#sent === undefined) return true;
      try {
        await store.addUsage({ holder, ...this.#sent }, clock.monotonicMs() + reportTimeoutMs);
      } catch {
        // Sent again with the next flush. Its number prevents double counting.
        return false;
      }
      this.#sent = undefined;
    }
  }

  #next(): SentReport | undefined {
    for (const [day, services] of this.#days) {
      const rows = takeRows(services);
      if (services.size === 0) this.#days.delete(day);
      if (rows.length === 0) continue;
      this.#rowCount -= rows.length;
      this.#number += 1;
      return { number: this.#number, day, rows };
    }
    return undefined;
  }

  /** Returns the current day, which is formatted once a day. */
  #today(): string {
    const nowUs = this.#parts.clock.epochUs();
    const number = Math.floor(nowUs / dayUs);
    if (this.#day?.number !== number) {
      this.#day = { number, text: usageDay(nowUs) };
    }
    return this.#day.text;
  }

  #sums(day: string, names: Pick<UsageRow, "service" | "account" | "model">): Sums {
    const { service, account, model } = names;
    const known = this.#days.get(day)?.get(service)?.get(model)?.get(account);
    if (known !== undefined) return known;
    if (this.#rowCount >= pendingRowsMax && (account !== "" || model !== "")) {
      return this.#sums(day, { service, account: "", model: "" });
    }
    const row = { ...names, callCount: 0, counts: {}, cost: 0 };
    mapIn(mapIn(mapIn(this.#days, day), service), model).set(account, row);
    this.#rowCount += 1;
    return row;
  }
}

/** Takes at most `reportRowsMax` rows of a day, and removes the maps that are then empty. */
function takeRows(services: Map<string, Map<string, Map<string, Sums>>>): readonly UsageRow[] {
  const rows: UsageRow[] = [];
  for (const [service, models] of services) {
    for (const [model, accounts] of models) {
      for (const [account, row] of accounts) {
        if (rows.length === reportRowsMax) return rows;
        rows.push(row);
        accounts.delete(account);
      }
      models.delete(model);
    }
    services.delete(service);
  }
  return rows;
}

function mapIn<K, V>(maps: Map<string, Map<K, V>>, key: string): Map<K, V> {
  let found = maps.get(key);
  if (found === undefined) {
    found = new Map();
    maps.set(key, found);
  }
  return found;
}

function sumOf(sum: number, more = 0): number {
  return Math.min(sum + more, Number.MAX_SAFE_INTEGER);
}
