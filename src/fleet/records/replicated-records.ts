import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { assert, type ErrorCode, ServiceError, toServiceError } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import {
  type AuditText,
  auditBytesMax,
  type ChangeOutcome,
  isWhole,
  type RecordChange,
  type RecordKind,
  type RecordRecovery,
  type RecordStore,
  type Restoration,
  recordBytesMax,
  recordIdPattern,
  recordKinds,
  type SharedRecord,
} from "../../store/coordination/record-store.js";
import { parseObject } from "../../store/coordination/record-text.js";
import {
  type CombinedRecords,
  combineKnown,
  type KnownRecords,
  learnPage,
  nothingKnown,
} from "./known-records.js";
import type { AuditRecord, SharedRecords } from "./shared-records.js";

interface ReplicatedRecordsOptions {
  readonly store: RecordStore;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * How long a replica without records leaves an empty store to replicas that may know its former
   * content, in milliseconds. Default: 1,000, four of their polls.
   */
  readonly othersWaitMs?: number;
  readonly onEvent?: (event: RecordsEvent) => void;
}

/** An event about a replica's copy of the records. */
export type RecordsEvent =
  /** Polls have started to fail. Once per outage. */
  | { readonly kind: "recordsLost"; readonly code: ErrorCode }
  /** Polls succeed again. */
  | { readonly kind: "recordsFound" }
  /** This replica has restored records that the store had lost. */
  | {
      readonly kind: "recordsRestored";
      readonly recordKind: RecordKind;
      readonly records: readonly SharedRecord[];
    }
  /** This replica has restored audit entries that the store had lost. */
  | { readonly kind: "auditRestored"; readonly count: number };

/** Poll interval. Others' changes are known within a second. */
const recordsPollMs = 250;

const defaultOthersWaitMs = 1_000;

/** How often one poll or change is retried because others restore records at the same time. */
const triesMax = 20;

/**
 * The records of a store, read when they change and kept in memory.
 *
 * Lost records are restored. A complete store has a state name. An empty store has none, and a
 * store that was reset to an earlier copy has fewer changes than its replicas. A replica that finds
 * such a store reads all of it, restores each record that it knows in a newer version, and gives
 * the store its next state name, so that all other replicas do the same.
 */
export class ReplicatedRecords implements SharedRecords {
  readonly #options: ReplicatedRecordsOptions;
  readonly #known = new Map<RecordKind, KnownRecords>();
  readonly #knownAudit = new KnownAudit();
  readonly #listeners = new Set<(kind: RecordKind) => void>();
  #cancelNext: Cancel | undefined;
  #looking: Promise<void> | undefined;
  readonly #firstLook: Promise<void>;
  #noteKnown: () => void = () => {};
  #isClosed = false;
  #isLost = false;
  /** The state name of the known store. Undefined before the first read. */
  #state: string | undefined;
  /** The state of a store that others may restore, and when it was found. */
  #open: { readonly state: string; readonly sinceMs: number } | undefined;

  /** Polls at once, and then until `close`. */
  constructor(options: ReplicatedRecordsOptions) {
    this.#options = options;
    this.#firstLook = new Promise((resolve) => {
      this.#noteKnown = resolve;
    });
    this.#schedule(0);
  }

  known(): Promise<void> {
    return this.#firstLook;
  }

  list(kind: RecordKind): ReadonlyMap<string, SharedRecord> {
    return this.#of(kind).records;
  }

  async change(change: RecordChange): Promise<ChangeOutcome> {
    checkChange(change);
    const { store, random } = this.#options;
    const name = random.id();
    for (let tries = 0; tries < triesMax && !this.#isClosed; tries += 1) {
      if (this.#state !== undefined) {
        const seen = { state: this.#state, version: this.#of(change.kind).version };
        const outcome = await store.change({ ...change, name, seen });
        // Callers must find their change in this replica's copy when the promise resolves.
        if (outcome?.kind === "changed") await this.#look();
        if (outcome !== undefined) return outcome;
      }
      // Restore what was lost before changing anything.
      await this.#look();
      if (this.#state === undefined) await this.#pause();
    }
    throw new ServiceError("STORE_LOADING");
  }

  async note(audit: JsonObject): Promise<void> {
    checkAudit(audit);
    await this.#options.store.note(audit);
  }

  async audit(before: number, countMax: number): Promise<readonly AuditRecord[]> {
    const entries = await this.#options.store.audit(before, countMax);
    return entries.map(({ text, ...entry }) => ({ ...entry, value: parseObject(text) }));
  }

  onChange(listener: (kind: RecordKind) => void): () => void {
    const own = (kind: RecordKind): void => listener(kind);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
    this.#listeners.clear();
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancelNext = this.#options.clock.schedule(delayMs, () => {
      this.#look().then(
        () => this.#schedule(recordsPollMs),
        (thrown: unknown) => {
          this.#noteFailure(thrown);
          this.#schedule(recordsPollMs);
        },
      );
    });
  }

  #pause(): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => void clock.schedule(recordsPollMs, resolve));
  }

  /** Runs one poll at a time. A second call waits and then polls for itself. */
  async #look(): Promise<void> {
    const before = this.#looking;
    const own = (async () => {
      await before?.catch(() => undefined);
      await this.#readAll();
    })();
    this.#looking = own;
    await own;
    if (this.#state !== undefined) this.#noteKnown();
    if (this.#isLost) this.#options.onEvent?.({ kind: "recordsFound" });
    this.#isLost = false;
  }

  async #readAll(): Promise<void> {
    for (let tries = 0; tries < triesMax && !this.#isClosed; tries += 1) {
      let other = this.#state === undefined ? await this.#options.store.state() : undefined;
      for (const kind of recordKinds) other ??= await this.#read(kind);
      if (other === undefined) return this.#followAudit();
      if (!(await this.#reconcile(other))) return;
    }
  }

  /** Keeps the latest audit entries, in case the store loses them. */
  async #followAudit(): Promise<void> {
    if (this.#state === undefined) return;
    const { store } = this.#options;
    const bounds = { countMax: keptAuditMax, bytesMax: keptAuditCharsMax };
    const { since } = this.#knownAudit;
    this.#knownAudit.learn(await store.followAudit({ since, state: this.#state, ...bounds }));
  }

  /**
   * Reads all changes of a kind. Listeners are called page by page, so that none has to process
   * 100,000 new records at once. During a complete read, the previous records stay visible until it
   * ends. Returns the state of the store if it is not the known one.
   */
  async #read(kind: RecordKind): Promise<string | undefined> {
    let next = this.#of(kind);
    let isAnew = false;
    while (!this.#isClosed) {
      const seen = { version: next.version, state: this.#state ?? "" };
      const page = await this.#options.store.read(kind, seen);
      if (page === undefined) break;
      if (page.kind === "other") return page.state;
      isAnew ||= page.isAnew && next.records.size > 0;
      next = learnPage(next, page);
      if (!isAnew) this.#learn(kind, next);
    }
    if (isAnew) this.#learn(kind, next);
    return undefined;
  }

  /**
   * Adopts a store with another state, and restores what it lacks. Returns whether to continue
   * reading: not while the store is left to others.
   */
  async #reconcile(found: string): Promise<boolean> {
    const { recovery } = this.#options.store;
    const isFirst = this.#state === undefined;
    if (isFirst && this.#isOthers(found)) return false;
    const combined = isFirst ? [] : await this.#combine(found);
    if (combined === undefined) return true;
    const state =
      recovery === undefined ? found : await this.#putAllBack(combined, found, recovery);
    if (state === undefined) return true;
    this.#state = state;
    for (const { kind, known } of combined) this.#learn(kind, known);
    return true;
  }

  /** Returns the resulting state of the store. Undefined if it was changed concurrently. */
  async #putAllBack(
    combined: readonly CombinedKind[],
    found: string,
    recovery: RecordRecovery,
  ): Promise<string | undefined> {
    let state = found;
    for (const { kind, known, missing } of combined) {
      if (missing.length === 0) continue;
      const { floor } = known;
      state = await this.#putBack(kind, { missing, floor }, recovery);
    }
    if (this.#state !== undefined) await this.#putBackAudit(recovery);
    // With its old state name, a store that was reset would be mistaken for the known one.
    return isWhole(state) && found !== this.#state ? state : recovery.seal(state);
  }

  /**
   * Merges the known records with those of the store. Undefined if its state has changed meanwhile.
   */
  async #combine(state: string): Promise<readonly CombinedKind[] | undefined> {
    const combined: CombinedKind[] = [];
    for (const kind of recordKinds) {
      let stored = nothingKnown;
      while (true) {
        const { version } = stored;
        const page = await this.#options.store.read(kind, { version, state });
        if (page === undefined) break;
        if (page.kind === "other" || this.#isClosed) return undefined;
        stored = learnPage(stored, page);
      }
      combined.push({ kind, ...combineKnown(this.#of(kind), stored) });
    }
    return combined;
  }

  /** Whether another replica that knows the former content may be about to restore the store. */
  #isOthers(found: string): boolean {
    const { clock, othersWaitMs = defaultOthersWaitMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (isWhole(found)) return false;
    if (this.#open?.state !== found) this.#open = { state: found, sinceMs: nowMs };
    return nowMs - this.#open.sinceMs < othersWaitMs;
  }

  /** Returns the resulting state of the store. */
  async #putBack(
    kind: RecordKind,
    restoration: Restoration,
    recovery: RecordRecovery,
  ): Promise<string> {
    const { state, restored } = await recovery.restore(kind, restoration);
    if (restored.length > 0) {
      this.#options.onEvent?.({ kind: "recordsRestored", recordKind: kind, records: restored });
    }
    return state;
  }

  async #putBackAudit(recovery: RecordRecovery): Promise<void> {
    const known = this.#knownAudit.oldestFirst;
    if (known.length === 0) return;
    // As many entries again may have been written since the store was lost.
    const count = await recovery.restoreAudit(known, 2 * keptAuditMax);
    this.#knownAudit.renumber();
    if (count > 0) this.#options.onEvent?.({ kind: "auditRestored", count });
  }

  #learn(kind: RecordKind, known: KnownRecords): void {
    const { records } = this.#of(kind);
    this.#known.set(kind, known);
    if (known.records === records) return;
    for (const listener of [...this.#listeners]) listener(kind);
  }

  #of(kind: RecordKind): KnownRecords {
    return this.#known.get(kind) ?? nothingKnown;
  }

  #noteFailure(thrown: unknown): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onEvent?.({ kind: "recordsLost", code: toServiceError(thrown).code });
  }
}

/** The known records of a kind, merged with those of the store. */
interface CombinedKind extends CombinedRecords {
  readonly kind: RecordKind;
}

/** Asserts that a change is within its bounds. Its caller has validated all input. */
function checkChange({ kind, id, value, audit }: RecordChange): void {
  assert(recordIdPattern.test(id), "a record's id is one");
  assert(value === undefined || jsonBytes(value) <= recordBytesMax[kind], "a record fits");
  if (audit !== undefined) checkAudit(audit);
}

/** Asserts the same for an audit entry. */
function checkAudit(audit: JsonObject): void {
  assert(jsonBytes(audit) <= auditBytesMax, "an audit entry fits");
}

function jsonBytes(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** The number of latest audit entries that a replica keeps. */
export const keptAuditMax = 500;

/** Maximum size of these, in UTF-16 units of JSON: far more than 500 ordinary entries. */
const keptAuditCharsMax = 4_194_304;

/** A replica's copy of the audit log, from which a store that lost it is restored. */
class KnownAudit {
  /** Newest first. */
  #entries: readonly AuditText[] = [];
  #isStale = false;

  /** The number up to which entries are known; 0: all must be read. */
  get since(): number {
    return this.#isStale ? 0 : (this.#entries[0]?.number ?? 0);
  }

  /** Entries to compare with the store, oldest first. */
  get oldestFirst(): readonly AuditText[] {
    return this.#entries.toReversed();
  }

  /** @param newer entries since `since`, newest first */
  learn(newer: readonly AuditText[]): void {
    if (newer.length === 0) return;
    const all = this.#isStale ? newer : [...newer, ...this.#entries];
    let chars = 0;
    const end = all.findIndex(({ text }) => {
      chars += text.length;
      return chars > keptAuditCharsMax;
    });
    this.#entries = all.slice(0, Math.min(keptAuditMax, end < 0 ? all.length : end));
    this.#isStale = false;
  }

  /** The store has renumbered the entries. They stay valid until they are read again. */
  renumber(): void {
    this.#isStale = true;
  }
}
