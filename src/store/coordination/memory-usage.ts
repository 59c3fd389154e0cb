import type { Clock } from "../../core/base/clock.js";
import { type UsageCount, usageCounts } from "../../core/budgets/usage.js";
import {
  pageRowsMax,
  type UsageReport,
  type UsageRow,
  usageKeptMs,
  usageRowsMax,
} from "./budget-store.js";

/** The sums of a row. Each report adds to them. */
interface Sums extends UsageRow {
  callCount: number;
  readonly counts: Partial<Record<UsageCount, number>>;
  cost: number;
}

interface Day {
  /** By the JSON of their names. */
  readonly rows: Map<string, Sums>;
  /** Number of the last report of each holder. */
  readonly numbers: Map<string, number>;
  untilMs: number;
}

/** Usage reports in this process. */
export class MemoryUsage {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #days = new Map<string, Day>();

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
  }

  add({ holder, number, day: name, rows }: UsageReport): void {
    const nowMs = Math.floor(this.#clock.epochUs() / 1_000);
    for (const [old, { untilMs }] of this.#days) if (untilMs <= nowMs) this.#days.delete(old);
    const day = this.#days.get(name) ?? { rows: new Map(), numbers: new Map(), untilMs: 0 };
    this.#days.set(name, day);
    day.untilMs = nowMs + usageKeptMs;
    if (number <= (day.numbers.get(holder) ?? -1)) return;
    day.numbers.set(holder, number);
    for (const row of rows) {
      const own = usageRowKey(row);
      const isOwn = day.rows.has(own) || day.rows.size < usageRowsMax;
      const kept = isOwn ? row : { ...row, account: "", model: "" };
      const key = isOwn ? own : usageRowKey(kept);
      const sums = day.rows.get(key) ?? { ...kept, callCount: 0, counts: {}, cost: 0 };
      day.rows.set(key, sums);
      addTo(sums, kept);
    }
  }

  page(
    day: string,
    cursor: string,
  ): { readonly rows: readonly UsageRow[]; readonly cursor: string } {
    const nowMs = Math.floor(this.#clock.epochUs() / 1_000);
    const found = this.#days.get(day);
    if (found === undefined || found.untilMs <= nowMs) return { rows: [], cursor: "" };
    const from = Number(cursor);
    const some = [...found.rows.values()].slice(from, from + pageRowsMax);
    const rows = some.map((row) => ({ ...row, counts: { ...row.counts } }));
    const end = from + rows.length;
    return { rows, cursor: end < found.rows.size ? String(end) : "" };
  }
}

/** Returns the key under which stores keep rows with the same names. */
export function usageRowKey({ service, account, model }: UsageRow): string {
  return JSON.stringify([service, account, model]);
}

function addTo(sums: Sums, { callCount, counts, cost }: UsageRow): void {
  for (const name of usageCounts) {
    const value = counts[name];
    if (value !== undefined) sums.counts[name] = added(sums.counts[name] ?? 0, value);
  }
  sums.callCount = added(sums.callCount, callCount);
  sums.cost = added(sums.cost, cost);
}

/** Adds two numbers, at most up to 2^52, so that all sums are exact. */
function added(one: number, other: number): number {
  return Math.min(one + other, usageSumMax);
}

/** Maximum sum in a usage report. */
export const usageSumMax = 2 ** 52;
