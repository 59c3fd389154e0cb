import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../../store/connection.js";
import { replyBytes, runFleetScript } from "./fleet-script.js";
import { KnownAudit, keptAuditCharsMax, keptAuditMax } from "./known-audit.js";
import {
  type CombinedRecords,
  combineKnown,
  goneRecordsMax,
  type KnownRecords,
  type MissingRecord,
  nothingKnown,
} from "./known-records.js";
import { checkAudit, checkChange } from "./record-checks.js";
import { auditRecordOf, pageRecordsMax, readAudit, readPage } from "./record-pages.js";
import {
  auditScript,
  changeScript,
  noteScript,
  readScript,
  restoreAuditScript,
  restoreScript,
  sealScript,
} from "./records-script.js";
import {
  type AuditRecord,
  auditEntriesMax,
  type ChangeOutcome,
  type RecordChange,
  type RecordKind,
  recordKinds,
  recordsMax,
  type SharedRecord,
  type SharedRecords,
} from "./shared-records.js";

/** What `RedisRecords` are made of. */
export interface RedisRecordsOptions {
  /** One that may carry megabytes, and may repeat a call. */
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly keyPrefix: string;
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

/** The most bytes of records that one look brings; another one follows at once. */
export const pageBytesMax = 1_048_576;

/** How often one look, or change, begins anew because others put records back at the same time. */
const triesMax = 20;

/**
 * Records in Redis: hashes under one tag, read as they change.
 *
 * What a store lost comes back. A store that is whole has a name (its state; `sealScript`); one
 * that is empty has none, and one that went back to an earlier copy knows less than its replicas.
 * A replica that meets such a store reads all of it, puts back each record of which it knows a
 * newer version, and gives the store its next name, at which all others do the same.
 */
export class RedisRecords implements SharedRecords {
  readonly #options: RedisRecordsOptions;
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
  constructor(options: RedisRecordsOptions) {
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
    const { kind, id, value, expectedVersion, audit } = change;
    const name = this.#options.random.id();
    for (let tries = 0; tries < triesMax && !this.#isClosed; tries += 1) {
      if (this.#state !== undefined) {
        const reply = await this.#run(changeScript, {
          keys: [...recordKeys(kind), "records:audit"],
          args: [
            kind,
            id,
            String(expectedVersion),
            name,
            String(recordsMax[kind]),
            String(goneRecordsMax),
            value === undefined ? "0" : "1",
            value === undefined ? "" : JSON.stringify(value),
            String(auditEntriesMax),
            audit === undefined ? "" : JSON.stringify(audit),
            this.#state,
            String(this.#of(kind).version),
          ],
        });
        const outcome = parseOutcome(reply);
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
    const reply = await this.#run(noteScript, {
      keys: auditKeys,
      args: [this.#options.random.id(), String(auditEntriesMax), JSON.stringify(audit)],
    });
    if (replyBytes(reply).toString() !== "noted") throw new ServiceError("STORE_PROTOCOL");
  }

  async audit(before: number, countMax: number): Promise<readonly AuditRecord[]> {
    const most = String(Math.min(before, Number.MAX_SAFE_INTEGER));
    const reply = await this.#run(auditScript, {
      keys: auditKeys,
      args: [most, String(countMax), String(pageBytesMax)],
    });
    return readAudit(replyBytes(reply)).map(auditRecordOf);
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
      let other = this.#state === undefined ? await this.#readState() : undefined;
      for (const kind of recordKinds) other ??= await this.#read(kind);
      if (other === undefined) return this.#followAudit();
      if (!(await this.#reconcile(other))) return;
    }
  }

  /** Keeps the newest entries of the audit log, for the day on which the store loses them. */
  async #followAudit(): Promise<void> {
    if (this.#state === undefined) return;
    const { since } = this.#knownAudit;
    const numbers = [Number.MAX_SAFE_INTEGER, keptAuditMax, keptAuditCharsMax, since];
    const args = [...numbers.map(String), this.#state];
    const reply = await this.#run(auditScript, { keys: auditKeys, args });
    this.#knownAudit.learn(readAudit(replyBytes(reply)));
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
      const page = await this.#readPage(kind, next, this.#state ?? "");
      if (page === undefined) break;
      if (page.kind === "other") return page.state;
      isAnew ||= page.isAnew && next.records.size > 0;
      next = page.known;
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
    const isFirst = this.#state === undefined;
    if (isFirst && this.#isOthers(found)) return false;
    const combined = isFirst ? [] : await this.#combine(found);
    if (combined === undefined) return true;
    let state = found;
    for (const { kind, known, missing } of combined) {
      if (missing.length > 0) state = await this.#putBack(kind, missing, known.floor);
    }
    if (!isFirst) await this.#putBackAudit();
    // Under the name that it had, a store that went back would pass for the one that is known.
    if (!isSealed(state) || found === this.#state) {
      const next = this.#options.random.id();
      const args = [state, next, ...recordKinds];
      const reply = await this.#run(sealScript, { keys: ["records:counters"], args });
      if (replyBytes(reply).toString() !== next) return true;
      state = next;
    }
    this.#state = state;
    for (const { kind, known } of combined) this.#learn(kind, known);
    return true;
  }

  /** What is known with what the store has; undefined: its state is another one meanwhile. */
  async #combine(
    state: string,
  ): Promise<readonly (CombinedRecords & { readonly kind: RecordKind })[] | undefined> {
    const combined: (CombinedRecords & { readonly kind: RecordKind })[] = [];
    for (const kind of recordKinds) {
      let stored = nothingKnown;
      while (true) {
        const page = await this.#readPage(kind, stored, state);
        if (page === undefined) break;
        if (page.kind === "other" || this.#isClosed) return undefined;
        stored = page.known;
      }
      combined.push({ kind, ...combineKnown(this.#of(kind), stored) });
    }
    return combined;
  }

  /** Whether somebody else may be about to fill the store, who knows more than nothing. */
  #isOthers(found: string): boolean {
    const { clock, othersWaitMs = defaultOthersWaitMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (isSealed(found)) return false;
    if (this.#open?.state !== found) this.#open = { state: found, sinceMs: nowMs };
    return nowMs - this.#open.sinceMs < othersWaitMs;
  }

  /** Answers the state of the store afterwards. */
  async #putBack(
    kind: RecordKind,
    missing: readonly MissingRecord[],
    floor: number,
  ): Promise<string> {
    let name = "";
    const restored: SharedRecord[] = [];
    for (let at = 0; at < missing.length; ) {
      name = this.#options.random.id();
      const args = [kind, name, String(floor)];
      const page: MissingRecord[] = [];
      for (let bytes = 0; at < missing.length && page.length < pageRecordsMax; at += 1) {
        const one = missing[at];
        if (one === undefined) break;
        const text = one.record === undefined ? "" : JSON.stringify(one.record.value);
        bytes += text.length;
        if (page.length > 0 && bytes > pageBytesMax) break;
        args.push(one.id, String(one.version), one.record === undefined ? "0" : "1", text);
        page.push(one);
      }
      const reply = await this.#run(restoreScript, { keys: recordKeys(kind), args });
      const flags = replyBytes(reply).toString("latin1");
      for (const [index, { record }] of page.entries()) {
        if (record !== undefined && flags[index] === "1") restored.push(record);
      }
    }
    if (restored.length > 0) {
      this.#options.onEvent?.({ kind: "recordsRestored", recordKind: kind, records: restored });
    }
    return `~${name}`;
  }

  async #putBackAudit(): Promise<void> {
    const known = this.#knownAudit.oldestFirst;
    if (known.length === 0) return;
    const entries = known.flatMap(({ number, epochMs, text }) => [
      String(number),
      String(epochMs),
      text,
    ]);
    // As many again may have been written since the store was lost.
    const args = [String(auditEntriesMax), String(2 * keptAuditMax), ...entries];
    const count = await this.#run(restoreAuditScript, { keys: auditKeys, args });
    if (typeof count !== "number") throw new ServiceError("STORE_PROTOCOL");
    this.#knownAudit.renumber();
    if (count > 0) this.#options.onEvent?.({ kind: "auditRestored", count });
  }

  async #readState(): Promise<string> {
    const page = await this.#readPage("policy", nothingKnown, "-");
    if (page?.kind !== "other") throw new ServiceError("STORE_PROTOCOL");
    return page.state;
  }

  async #readPage(kind: RecordKind, known: KnownRecords, state: string) {
    const { version } = known;
    const args = [kind, String(version), String(pageRecordsMax), String(pageBytesMax), state];
    const reply = await this.#run(readScript, { keys: recordKeys(kind), args });
    return reply === undefined ? undefined : readPage(kind, known, replyBytes(reply));
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

  #run(
    script: StoreScript,
    { keys, args }: { readonly keys: readonly string[]; readonly args: readonly string[] },
  ): Promise<ScriptReply> {
    return runFleetScript(this.#options, { script, keys, args });
  }
}

const auditKeys = ["records:audit", "records:counters"] as const;

function recordKeys(kind: RecordKind): readonly string[] {
  return [
    `records:${kind}`,
    `records:${kind}:versions`,
    `records:${kind}:gone`,
    "records:counters",
  ];
}

/** A store with a name of its own is whole; another one is being filled, or empty. */
function isSealed(state: string): boolean {
  return state !== "" && !state.startsWith("~");
}

/** Undefined: the store is not the one that is known. */
function parseOutcome(reply: ScriptReply): ChangeOutcome | undefined {
  const [, kind, digits] =
    /^(changed|conflict|full|lost) (\d{1,16})$/.exec(replyBytes(reply).toString()) ?? [];
  const version = Number(digits);
  if (kind === "lost") return undefined;
  if (kind === "changed" || kind === "conflict") return { kind, version };
  if (kind === "full") return { kind };
  throw new ServiceError("STORE_PROTOCOL");
}
