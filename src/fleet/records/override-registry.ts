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
  /** Told when records are found that cannot be read, once until all can be. */
  readonly onUnreadable?: (count: number) => void;
}

/** The longest that one timer waits: those of Node end at about 24 days. */
const timerMsMax = 86_400_000;

/** How long an override that has expired is kept before somebody takes it away. */
const expiredKeptMs = 60_000;

/**
 * The active overrides, as all replicas know them: a snapshot that is made anew when records
 * change and when one expires. Expired ones are taken away by whoever comes first; that is nobody's
 * doing, and leaves no entry in the audit log.
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

  /** What decisions go by: the same object until something has changed. */
  current(): OverrideTable {
    return this.#table;
  }

  /** Records that were left out because they are none of ours, or of a later version. */
  get unreadableCount(): number {
    return this.#unreadableCount;
  }

  /** Follows changes no more. */
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

  /** Until the next one expires, or has been expired for long enough to be taken away. */
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
      // The store is away: the next look finds it again, and it decides nothing meanwhile.
    });
  }
}

type Rows = OverrideRows<SharedRecord>;

function readRecord({ value }: SharedRecord): Override | undefined {
  return overrideFromJson(value);
}

/**
 * The rows of records. Of 100,000 a few change at a time, and only those are read: records that are
 * the same objects have kept their order among themselves.
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
