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
   * How long a replica that knows nothing leaves an empty store to those who may know what it had,
   * in milliseconds. Default: 1,000, four of their looks.
   */
  readonly othersWaitMs?: number;
  readonly onEvent?: (event: RecordsEvent) => void;
}

/** What happens to a replica's knowledge of the records. */
export type RecordsEvent =
  /** Asking begins to fail, once an outage. */
  | { readonly kind: "recordsLost"; readonly code: ErrorCode }
  /** It works again. */
  | { readonly kind: "recordsFound" }
  /** This replica has put records back that the store had lost. */
  | {
      readonly kind: "recordsRestored";
      readonly recordKind: RecordKind;
      readonly records: readonly SharedRecord[];
    }
  /** This replica has put entries of the audit log back that the store had lost. */
  | { readonly kind: "auditRestored"; readonly count: number };

/** Time from one look to the next: what others change is known within a second. */
const recordsPollMs = 250;

const defaultOthersWaitMs = 1_000;

/** How often one look, or change, begins anew because others put records back at the same time. */
const triesMax = 20;

/**
 * Records of a store, read as they change and kept in memory here.
 *
 * What a store lost comes back. A store that is whole has a name (its state); one that is empty has
 * none, and one that went back to an earlier copy knows less than its replicas. A replica that
 * meets such a store reads all of it, puts back each record of which it knows a newer version, and
 * gives the store its next name, at which all others do the same.
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
  /** The name of the store that is known; undefined: none yet. */
  #state: string | undefined;
  /** The state of a store that others may fill, and since when it was met. */
  #open: { readonly state: string; readonly sinceMs: number } | undefined;

  /** Looks at once, and from then on until `close`. */
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
        // Whoever has the answer finds it here, too.
        if (outcome?.kind === "changed") await this.#look();
        if (outcome !== undefined) return outcome;
      }
      // What was lost comes back before anything is changed.
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

  /** One look at a time: a second one waits, and then asks for what it wants to know. */
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

  /** Keeps the newest entries of the audit log, for the day on which the store loses them. */
  async #followAudit(): Promise<void> {
    if (this.#state === undefined) return;
    const { store } = this.#options;
    const bounds = { countMax: keptAuditMax, bytesMax: keptAuditCharsMax };
    const { since } = this.#knownAudit;
    this.#knownAudit.learn(await store.followAudit({ since, state: this.#state, ...bounds }));
  }

  /**
   * Reads a kind to its end. What is read is told page by page, so that nobody has 100,000 new ones
   * to look through at once; where all is read anew, what was known holds until the end. Answers
   * the state of the store where it is not the one that is known.
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
   * Takes over a store that is not the one that is known, and puts back what it lacks. Answers
   * whether to read on: not, while a store is left to others.
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

  /** Answers the store's state afterwards; undefined: somebody else has changed it meanwhile. */
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
    // Under the name that it had, a store that went back would pass for the one that is known.
    return isWhole(state) && found !== this.#state ? state : recovery.seal(state);
  }

  /** What is known with what the store has; undefined: its state is another one meanwhile. */
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

  /** Whether somebody else may be about to fill the store, who knows more than nothing. */
  #isOthers(found: string): boolean {
    const { clock, othersWaitMs = defaultOthersWaitMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (isWhole(found)) return false;
    if (this.#open?.state !== found) this.#open = { state: found, sinceMs: nowMs };
    return nowMs - this.#open.sinceMs < othersWaitMs;
  }

  /** Answers the state of the store afterwards. */
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
    // As many again may have been written since the store was lost.
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

/** What is known of a kind with what the store has of it. */
interface CombinedKind extends CombinedRecords {
  readonly kind: RecordKind;
}

/**
 * Asserts that a change is within its bounds: whoever asks for one has checked what callers said.
 */
function checkChange({ kind, id, value, audit }: RecordChange): void {
  assert(recordIdPattern.test(id), "a record's id is one");
  assert(value === undefined || jsonBytes(value) <= recordBytesMax[kind], "a record fits");
  if (audit !== undefined) checkAudit(audit);
}

/** Asserts the same of an audit entry. */
function checkAudit(audit: JsonObject): void {
  assert(jsonBytes(audit) <= auditBytesMax, "an audit entry fits");
}

function jsonBytes(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Entries of the audit log that a replica keeps: the newest ones. */
export const keptAuditMax = 500;

/** The most bytes of them, as UTF-16 units of JSON: far above what 500 ordinary ones have. */
const keptAuditCharsMax = 4_194_304;

/** What a replica knows of the audit log, so that a store which lost it gets it back. */
class KnownAudit {
  /** The newest first. */
  #entries: readonly AuditText[] = [];
  #isStale = false;

  /** The number up to which entries are known; 0: all are to be read. */
  get since(): number {
    return this.#isStale ? 0 : (this.#entries[0]?.number ?? 0);
  }

  /** What the store lacks is looked for among these, the oldest first. */
  get oldestFirst(): readonly AuditText[] {
    return this.#entries.toReversed();
  }

  /** @param newer what was read since `since`, the newest first */
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

  /** The store has numbered them anew: they hold until they are read again. */
  renumber(): void {
    this.#isStale = true;
  }
}
