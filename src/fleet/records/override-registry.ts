import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Override } from "../../core/limits/override.js";
import { OverrideRows } from "../../core/limits/override-rows.js";
import { noOverrides, OverrideTable } from "../../core/limits/override-table.js";
import type { SharedRecord } from "../../store/coordination/record-store.js";
import { overrideFromJson } from "./override-record.js";
import type { SharedRecords } from "./shared-records.js";

interface OverrideRegistryParts {
  readonly records: SharedRecords;
  readonly clock: Clock;
  /** Called when records cannot be read; once until all of them can be read again. */
  readonly onUnreadable?: (count: number) => void;
}

/** Maximum duration of one timer. Node's timers are limited to about 24 days. */
const timerMsMax = 86_400_000;

/** How long an expired override is kept before a replica removes it. */
const expiredKeptMs = 60_000;

/**
 * The active overrides, the same at all replicas. The snapshot is rebuilt when records change and
 * when one expires. Any replica may remove expired ones. This is not an operator's action, so it is
 * not in the audit log.
 */
export class OverrideRegistry {
  readonly #parts: OverrideRegistryParts;
  readonly #stopFollowing: () => void;
  #rows: Rows = new OverrideRows(0, readRecord);
  #table: OverrideTable = noOverrides;
  #version = 0;
  #unreadableCount = 0;
  #cancelExpiry: Cancel | undefined;

  constructor(parts: OverrideRegistryParts) {
    this.#parts = parts;
    this.#stopFollowing = parts.records.onChange((kind) => {
      if (kind === "override") this.#remake();
    });
    this.#remake();
  }

  /** The snapshot for decisions. The same object until something changes. */
  current(): OverrideTable {
    return this.#table;
  }

  /** Records that were skipped because they have a later version or are invalid. */
  get unreadableCount(): number {
    return this.#unreadableCount;
  }

  /** Stops following changes. */
  close(): void {
    this.#stopFollowing();
    this.#cancelExpiry?.();
  }

  #remake(): void {
    const { records, clock, onUnreadable } = this.#parts;
    const nowEpochMs = clock.epochUs() / 1_000;
    const { rows, unreadableCount } = rowsOf(records.list("override"), this.#rows);
    if (unreadableCount > 0 && this.#unreadableCount === 0) onUnreadable?.(unreadableCount);
    this.#unreadableCount = unreadableCount;
    this.#rows = rows;
    this.#version += 1;
    this.#table = new OverrideTable(rows, this.#version, nowEpochMs);
    this.#awaitExpiry(nowEpochMs);
  }

  /** Waits until the next override expires, or until an expired one can be removed. */
  #awaitExpiry(nowEpochMs: number): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    const rows = this.#rows;
    let nextEpochMs = this.#table.nextExpiryEpochMs;
    for (let row = 0; row < rows.count; row += 1) {
      const expiresEpochMs = rows.expiryAt(row);
      if (expiresEpochMs > nowEpochMs) continue;
      const endEpochMs = expiresEpochMs + expiredKeptMs;
      if (endEpochMs > nowEpochMs) nextEpochMs = Math.min(nextEpochMs, endEpochMs);
      else this.#takeAway(rows.keptAt(row));
    }
    if (nextEpochMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(timerMsMax, Math.ceil(nextEpochMs - nowEpochMs));
    this.#cancelExpiry = this.#parts.clock.schedule(delayMs, () => this.#remake());
  }

  #takeAway(record: SharedRecord | undefined): void {
    if (record === undefined) return;
    const { id, version } = record;
    const change = { kind: "override", id, value: undefined, expectedVersion: version } as const;
    this.#parts.records.change({ ...change, audit: undefined }).catch(() => {
      // The store is unavailable: the next check finds it again, and it has no effect meanwhile.
    });
  }
}

type Rows = OverrideRows<SharedRecord>;

function readRecord({ value }: SharedRecord): Override | undefined {
  return overrideFromJson(value);
}

/**
 * Converts records to rows. Of 100,000 records, only a few change at a time, and only those are
 * parsed. Unchanged record objects have kept their order.
 */
function rowsOf(
  records: ReadonlyMap<string, SharedRecord>,
  before: Rows,
): { readonly rows: Rows; readonly unreadableCount: number } {
  const rows: Rows = new OverrideRows(records.size, readRecord);
  let unreadableCount = 0;
  let at = 0;
  let last = before.keptAt(at);
  for (const record of records.values()) {
    while (last !== undefined && last !== record && records.get(last.id) !== last) {
      at += 1;
      last = before.keptAt(at);
    }
    if (last === record) {
      rows.addFrom(before, at);
      at += 1;
      last = before.keptAt(at);
      continue;
    }
    const override = readRecord(record);
    if (override === undefined) unreadableCount += 1;
    else rows.add(record, override);
  }
  return { rows, unreadableCount };
}
