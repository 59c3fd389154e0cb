import { type ErrorCode, ServiceError } from "../../src/core/errors.js";
import { type Bucket, type BucketTable, type Charge, decideRepeated } from "../../src/core/gcra.js";
import type { LimitKey } from "../../src/core/limit.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";
import type { SimulatedTime } from "./simulated-time.js";

/** How the server answers whatever arrives. */
export type ServerHealth =
  | { readonly kind: "well" }
  /** Answers at once with an error, and charges nothing. */
  | { readonly kind: "refusing"; readonly code: ErrorCode }
  /** Takes what arrives, and works on it when it is well again: also for those who gave up. */
  | { readonly kind: "hung" };

/** What the server tells of one arrival; `noScript` asks for the program first. */
export type ServerReply =
  | { readonly kind: "decided"; readonly results: readonly StoreResult[] }
  | { readonly kind: "noScript" }
  | { readonly kind: "refused"; readonly error: ServiceError };

/** What happened to a key in the store, in the order of its happening. */
export type KeyEvent =
  /** A charge was decided: `takenHits` and `refundedHits` say what it changed. */
  | {
      readonly kind: "asked";
      readonly charge: Charge;
      readonly takenHits: number;
      readonly refundedHits: number;
      /** Over, although it was the request's only charge on the key. */
      readonly isOverAlone: boolean;
    }
  /** The store's clock went forward by itself. */
  | { readonly kind: "clockForward"; readonly byUs: number }
  /** The store's clock went back by itself. */
  | { readonly kind: "clockBack" }
  /** Hits that had been taken were forgotten. */
  | { readonly kind: "lost"; readonly hits: number };

/** Told of everything that changes keys; `atUs` is true time, whatever the server's clock says. */
export type KeyEventSink = (key: LimitKey, event: KeyEvent, atUs: number) => void;

interface Entry {
  readonly bucket: Bucket;
  readonly expiresUs: number;
}

interface Write {
  readonly key: LimitKey;
  /** Undefined deletes. */
  readonly entry: Entry | undefined;
  readonly hits: number;
  readonly atUs: number;
}

/** How long a replica of the server is behind at most, in microseconds. */
export const replicaLagUsMax = 1_000_000;

/**
 * One Redis with a replica, as far as deciding goes: buckets that expire, a clock of its own that
 * may step, a replica that is behind, and a script that is lost with the process.
 */
export class SimulatedServer {
  readonly #time: SimulatedTime;
  readonly #onKeyEvent: KeyEventSink;
  #table = new Map<LimitKey, Entry>();
  #replicaTable = new Map<LimitKey, Entry>();
  /** What the replica has not been given yet. */
  #unreplicated: Write[] = [];
  #clockOffsetUs = 1_700_000_000_000_000;
  #hasScript = false;
  #health: ServerHealth = { kind: "well" };
  #arrived: (() => void)[] = [];

  constructor(time: SimulatedTime, onKeyEvent: KeyEventSink) {
    this.#time = time;
    this.#onKeyEvent = onKeyEvent;
  }

  get health(): ServerHealth {
    return this.#health;
  }

  /** Works on a batch now or when it can, and hands the reply to `answer`. */
  arrive(
    batch: readonly StoreRequest[],
    bringsScript: boolean,
    answer: (reply: ServerReply) => void,
  ): void {
    const { kind } = this.#health;
    if (kind === "hung") this.#arrived.push(() => answer(this.#run(batch, bringsScript)));
    else answer(this.#run(batch, bringsScript));
  }

  /** Changes how it is; one that is well again first works on what arrived meanwhile. */
  become(health: ServerHealth): void {
    this.#health = health;
    if (health.kind === "hung") return;
    for (const work of this.#arrived.splice(0)) work();
  }

  /** A step of its clock, in whole microseconds. */
  stepClock(byUs: number): void {
    this.#clockOffsetUs += byUs;
    if (byUs === 0) return;
    for (const key of this.#keys()) {
      this.#tell(key, byUs > 0 ? { kind: "clockForward", byUs } : { kind: "clockBack" });
    }
  }

  /** Starts anew without data and without scripts; what waited is lost with its connections. */
  restart(): void {
    this.#failTo(new Map(), this.#keys());
  }

  /** The replica takes over as it was `lagUs` ago; its clock differs by `clockStepUs`. */
  failOver(lagUs: number, clockStepUs: number): void {
    this.#replicateUntil(this.#time.nowUs - lagUs);
    const lostKeys = new Set(this.#unreplicated.map(({ key }) => key));
    this.#failTo(new Map(this.#replicaTable), lostKeys);
    this.stepClock(clockStepUs);
  }

  /** Whether the charges would be granted now; nothing is charged. */
  wouldGrant(charges: readonly Charge[]): boolean {
    const table: BucketTable = { get: (key) => this.#read(key), set() {}, delete() {} };
    return decideRepeated({ charges, multiplicity: 1 }, table, this.#nowUs()).grantedCount > 0;
  }

  #failTo(table: Map<LimitKey, Entry>, lostKeys: ReadonlySet<LimitKey>): void {
    for (const key of lostKeys) {
      const isAllLost = !table.has(key);
      const lost = this.#unreplicated.filter((write) => write.key === key);
      const hits = lost.reduce((sum, write) => sum + write.hits, 0);
      this.#tell(key, { kind: "lost", hits: isAllLost ? Number.MAX_SAFE_INTEGER : hits });
    }
    this.#table = table;
    this.#replicaTable = new Map(table);
    this.#unreplicated = [];
    this.#arrived = [];
    this.#hasScript = false;
  }

  #run(batch: readonly StoreRequest[], bringsScript: boolean): ServerReply {
    if (this.#health.kind === "refusing") {
      return { kind: "refused", error: new ServiceError(this.#health.code) };
    }
    if (!this.#hasScript && !bringsScript) return { kind: "noScript" };
    this.#hasScript = true;
    this.#replicateUntil(this.#time.nowUs - replicaLagUsMax);
    return { kind: "decided", results: batch.map((request) => this.#decide(request)) };
  }

  #decide(request: StoreRequest): StoreResult {
    const nowUs = this.#nowUs();
    const written = new Map<LimitKey, Entry | undefined>();
    const table: BucketTable = {
      get: (key) => this.#read(key),
      set: (key, bucket, timeToFullUs) => {
        // As the script does: whole milliseconds, rounded up, and one more.
        const expiresUs = nowUs + (Math.ceil(timeToFullUs / 1_000) + 1) * 1_000;
        written.set(key, { bucket, expiresUs });
      },
      delete: (key) => written.set(key, undefined),
    };
    const decided = decideRepeated(request, table, nowUs);
    const takenHits = new Map<LimitKey, number>();
    request.charges.forEach((charge, i) => {
      const { key, cost, isRefund } = charge;
      const isOver = decided.results[i]?.isOver === true;
      const taken = isRefund ? 0 : cost * countTaken(request, decided.grantedCount, isOver);
      takenHits.set(key, (takenHits.get(key) ?? 0) + taken);
      const refundedHits = isRefund ? cost : 0;
      const isAlone = request.charges.every((other) => other === charge || other.key !== key);
      const isOverAlone = isOver && isAlone;
      this.#tell(key, { kind: "asked", charge, takenHits: taken, refundedHits, isOverAlone });
    });
    for (const [key, entry] of written) this.#write(key, entry, takenHits.get(key) ?? 0);
    return { ...decided, nowUs };
  }

  #nowUs(): number {
    return this.#time.nowUs + this.#clockOffsetUs;
  }

  #read(key: LimitKey): Bucket | undefined {
    const entry = this.#table.get(key);
    if (entry === undefined) return undefined;
    if (entry.expiresUs > this.#nowUs()) return entry.bucket;
    // A replica is told, and never finds out by itself.
    this.#write(key, undefined, 0);
    return undefined;
  }

  #write(key: LimitKey, entry: Entry | undefined, hits: number): void {
    setEntry(this.#table, key, entry);
    this.#unreplicated.push({ key, entry, hits, atUs: this.#time.nowUs });
  }

  #replicateUntil(atUs: number): void {
    let count = 0;
    for (const { key, entry, atUs: writtenUs } of this.#unreplicated) {
      if (writtenUs > atUs) break;
      setEntry(this.#replicaTable, key, entry);
      count += 1;
    }
    this.#unreplicated.splice(0, count);
  }

  #keys(): ReadonlySet<LimitKey> {
    return new Set(this.#table.keys());
  }

  #tell(key: LimitKey, event: KeyEvent): void {
    this.#onKeyEvent(key, event, this.#time.nowUs);
  }
}

/**
 * How often a charge of a request was taken with it. One that is over a request which passed all
 * the same, a shadow's or a quota's, is left out; in a row, over is only who came too late.
 */
function countTaken({ multiplicity }: StoreRequest, grantedCount: number, isOver: boolean): number {
  return isOver && multiplicity === 1 ? 0 : grantedCount;
}

function setEntry(table: Map<LimitKey, Entry>, key: LimitKey, entry: Entry | undefined): void {
  if (entry === undefined) table.delete(key);
  else table.set(key, entry);
}
