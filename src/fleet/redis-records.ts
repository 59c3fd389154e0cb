import type { Cancel, Clock, Random } from "../core/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../core/errors.js";
import type { JsonObject } from "../core/json.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../store/connection.js";
import { checkAudit, checkChange } from "./record-checks.js";
import { type KnownRecords, pageRecordsMax, parseAudit, readPage } from "./record-pages.js";
import { auditScript, changeScript, noteScript, readScript } from "./records-script.js";
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
  /** Told when asking begins to fail, and when it works again; once each. */
  readonly onEvent?: (event: RecordsEvent) => void;
}

/** What happens to a replica's knowledge of the records. */
export type RecordsEvent =
  | { readonly kind: "recordsLost"; readonly code: ErrorCode }
  | { readonly kind: "recordsFound" };

/** Time from one look to the next: what others change is known within a second. */
const recordsPollMs = 250;

/** Records taken away that are remembered: who has missed more reads everything anew. */
export const goneRecordsMax = 10_000;

/** The most bytes of records that one look brings; another one follows at once. */
const pageBytesMax = 4_194_304;

/** The longest that one call to the store waits, in milliseconds. */
const callMsMax = 1_000;

const nothingKnown: KnownRecords = { version: 0, records: new Map() };

/** Records in Redis: hashes under one tag, read as they change. */
export class RedisRecords implements SharedRecords {
  readonly #options: RedisRecordsOptions;
  readonly #known = new Map<RecordKind, KnownRecords>();
  readonly #listeners = new Set<(kind: RecordKind) => void>();
  #cancelNext: Cancel | undefined;
  #looking: Promise<void> | undefined;
  readonly #firstLook: Promise<void>;
  #noteKnown: () => void = () => {};
  #isClosed = false;
  #isLost = false;

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
    const reply = await this.#run(changeScript, {
      keys: [...recordKeys(kind), "records:audit"],
      args: [
        kind,
        id,
        String(expectedVersion),
        this.#options.random.id(),
        String(recordsMax[kind]),
        String(goneRecordsMax),
        value === undefined ? "0" : "1",
        value === undefined ? "" : JSON.stringify(value),
        String(auditEntriesMax),
        audit === undefined ? "" : JSON.stringify(audit),
      ],
    });
    const outcome = parseOutcome(reply);
    // Whoever has the answer finds it here, too.
    if (outcome.kind === "changed") await this.#look();
    return outcome;
  }

  async note(audit: JsonObject): Promise<void> {
    checkAudit(audit);
    const reply = await this.#run(noteScript, {
      keys: ["records:audit", "records:counters"],
      args: [this.#options.random.id(), String(auditEntriesMax), JSON.stringify(audit)],
    });
    if (toBytes(reply).toString() !== "noted") throw new ServiceError("STORE_PROTOCOL");
  }

  async audit(before: number, countMax: number): Promise<readonly AuditRecord[]> {
    const most = String(Math.min(before, Number.MAX_SAFE_INTEGER));
    const reply = await this.#run(auditScript, {
      keys: ["records:audit", "records:counters"],
      args: [most, String(countMax), String(pageBytesMax)],
    });
    return parseAudit(toBytes(reply));
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

  /** One look at a time: a second one waits, and then asks for what it wants to know. */
  async #look(): Promise<void> {
    const before = this.#looking;
    const own = (async () => {
      await before?.catch(() => undefined);
      for (const kind of recordKinds) await this.#read(kind);
    })();
    this.#looking = own;
    await own;
    this.#noteKnown();
    if (this.#isLost) this.#options.onEvent?.({ kind: "recordsFound" });
    this.#isLost = false;
  }

  /**
   * Reads a kind to its end. What is read is told page by page, so that nobody has 100,000 new ones
   * to look through at once; where all is read anew, what was known holds until the end.
   */
  async #read(kind: RecordKind): Promise<void> {
    let next = this.#of(kind);
    let isAnew = false;
    while (!this.#isClosed) {
      const args = [kind, String(next.version), String(pageRecordsMax), String(pageBytesMax)];
      const reply = await this.#run(readScript, { keys: recordKeys(kind), args });
      if (reply === undefined) break;
      const page = readPage(kind, next, toBytes(reply));
      isAnew ||= page.isAnew && next.records.size > 0;
      next = page;
      if (!isAnew) this.#learn(kind, next);
    }
    if (isAnew) this.#learn(kind, next);
  }

  #learn(kind: RecordKind, known: KnownRecords): void {
    this.#known.set(kind, known);
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
    const { connection, clock, keyPrefix } = this.#options;
    return connection.run({
      script,
      keys: keys.map((name) => `${keyPrefix}{fleet}:${name}`),
      args,
      deadlineMs: clock.monotonicMs() + callMsMax,
    });
  }
}

function recordKeys(kind: RecordKind): readonly string[] {
  return [
    `records:${kind}`,
    `records:${kind}:versions`,
    `records:${kind}:gone`,
    "records:counters",
  ];
}

function toBytes(reply: ScriptReply): Buffer {
  if (!Buffer.isBuffer(reply)) throw new ServiceError("STORE_PROTOCOL");
  return reply;
}

function parseOutcome(reply: ScriptReply): ChangeOutcome {
  const [, kind, digits] =
    /^(changed|conflict|full) (\d{1,16})$/.exec(toBytes(reply).toString()) ?? [];
  const version = Number(digits);
  if (kind === "changed" || kind === "conflict") return { kind, version };
  if (kind === "full") return { kind };
  throw new ServiceError("STORE_PROTOCOL");
}
