import { type ErrorCode, ServiceError } from "../../src/core/base/errors.js";
import type { Bucket } from "../../src/core/limits/bucket.js";
import type { Compensation } from "../../src/core/limits/compensation.js";
import { type BucketTable, decideRepeated } from "../../src/core/limits/gcra.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";
import type { GivenBack } from "../../src/store/split/split-part.js";
import { compensate } from "./compensate.js";
import type { KeyEvent, KeyEventSink } from "./simulated-events.js";
import type { SimulatedTime } from "./simulated-time.js";

/** How the server answers whatever arrives. */
export type ServerHealth =
  | { readonly kind: "well" }
  /** Answers at once with an error, and charges nothing. */
  | { readonly kind: "refusing"; readonly code: ErrorCode }
  /** Takes what arrives, and works on it when it is well again: also for those who gave up. */
  | { readonly kind: "hung" }
  /** Nothing listens at its address. */
  | { readonly kind: "gone" };

/** What the server is asked to run. */
export type ServerCall =
  | { readonly kind: "take"; readonly batch: readonly StoreRequest[] }
  | { readonly kind: "giveBack"; readonly compensations: readonly Compensation[] };

/** A call on its arrival. */
export interface AdmittedRequest {
  readonly call: ServerCall;
  readonly bringsScript: boolean;
  /** Why the server does not run it, looked at when it would; nothing for a server alone. */
  readonly refuse?: () => ServiceError | undefined;
}

/** What the server tells of one arrival; `noScript` asks for the program first. */
export type ServerReply =
  | { readonly kind: "decided"; readonly results: readonly StoreResult[] }
  | { readonly kind: "givenBack"; readonly givenBack: GivenBack }
  | { readonly kind: "noScript" }
  | { readonly kind: "refused"; readonly error: ServiceError };

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

/** What a `SimulatedServer` is made of. */
export interface SimulatedServerParts {
  readonly time: SimulatedTime;
  /** How far its clock is ahead of those of others, in whole microseconds. Default 0. */
  readonly aheadUs?: number;
  readonly onKeyEvent: KeyEventSink;
}

/** More hits than any bucket holds: all of them. */
const allHits = Number.MAX_SAFE_INTEGER;

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
  #clockOffsetUs: number;
  readonly #scripts = new Set<ServerCall["kind"]>();
  #health: ServerHealth = { kind: "well" };
  #arrived: (() => void)[] = [];
  /** Whether a key is this server's business: in a cluster, as long as its slot is. */
  holds: (key: LimitKey) => boolean = () => true;

  constructor({ time, aheadUs = 0, onKeyEvent }: SimulatedServerParts) {
    this.#time = time;
    this.#clockOffsetUs = 1_700_000_000_000_000 + aheadUs;
    this.#onKeyEvent = onKeyEvent;
  }

  get health(): ServerHealth {
    return this.#health;
  }

  /** Works on a call now or when it can, and hands the reply to `answer`. */
  arrive(visit: AdmittedRequest, answer: (reply: ServerReply) => void): void {
    const { kind } = this.#health;
    if (kind === "hung") this.#arrived.push(() => answer(this.#run(visit)));
    else answer(this.#run(visit));
  }

  /** Changes how it is; one that is well again first works on what arrived meanwhile. */
  become(health: ServerHealth): void {
    this.#health = health;
    if (health.kind === "hung") return;
    if (health.kind === "gone") this.#arrived = [];
    for (const work of this.#arrived.splice(0)) work();
  }

  /** A step of its clock, in whole microseconds. */
  stepClock(byUs: number): void {
    this.#clockOffsetUs += byUs;
    if (byUs === 0) return;
    for (const key of this.keys()) {
      this.#tell(key, byUs > 0 ? { kind: "clockForward", byUs } : { kind: "clockBack" });
    }
  }

  /** Starts anew without data and without scripts; what waited is lost with its connections. */
  restart(): void {
    this.#failTo(new Map(), this.keys());
  }

  /** The replica takes over as it was `lagUs` ago; its clock differs by `clockStepUs`. */
  failOver(lagUs: number, clockStepUs: number): void {
    this.#replicateUntil(this.#time.nowUs - lagUs);
    const lostKeys = new Set(this.#unreplicated.map(({ key }) => key));
    this.#failTo(new Map(this.#replicaTable), lostKeys);
    this.stepClock(clockStepUs);
  }

  /** The key's bucket, as a clock sees it that shows this time. */
  bucketAt(key: LimitKey, atUs: number): Bucket | undefined {
    const bucket = this.#read(key);
    return bucket && { level: bucket.level, tUs: bucket.tUs + (atUs - this.#nowUs()) };
  }

  /** Whether it holds the key's bucket, drained or not. */
  has(key: LimitKey): boolean {
    return this.#read(key) !== undefined;
  }

  /** The keys whose buckets it holds. */
  keys(): ReadonlySet<LimitKey> {
    return new Set(this.#table.keys());
  }

  /** Hands a key's bucket over, for as long as it had left, as MIGRATE does. */
  moveTo(other: SimulatedServer, key: LimitKey): void {
    const bucket = this.#read(key);
    const expiresUs = this.#table.get(key)?.expiresUs;
    if (bucket === undefined || expiresUs === undefined) return;
    const aheadUs = other.#nowUs() - this.#nowUs();
    // Who loses one of these writes brings back a bucket of long ago.
    this.#write(key, undefined, allHits);
    other.#write(key, { bucket, expiresUs: expiresUs + aheadUs }, allHits);
    if (aheadUs > 0) this.#tell(key, { kind: "clockForward", byUs: aheadUs });
    if (aheadUs < 0) this.#tell(key, { kind: "clockBack" });
  }

  #failTo(table: ReadonlyMap<LimitKey, Entry>, lostKeys: ReadonlySet<LimitKey>): void {
    for (const key of lostKeys) {
      if (!this.holds(key)) continue;
      const isAllLost = !table.has(key);
      const lost = this.#unreplicated.filter((write) => write.key === key);
      const hits = lost.reduce((sum, write) => sum + write.hits, 0);
      this.#tell(key, { kind: "lost", hits: isAllLost ? allHits : hits });
    }
    this.#table = new Map([...table].filter(([key]) => this.holds(key)));
    this.#replicaTable = new Map(this.#table);
    this.#unreplicated = [];
    this.#arrived = [];
    this.#scripts.clear();
  }

  #run({ call, bringsScript, refuse }: AdmittedRequest): ServerReply {
    const { kind } = this.#health;
    if (kind === "gone") return { kind: "refused", error: new ServiceError("STORE_UNAVAILABLE") };
    const refusal = refuse?.();
    if (refusal !== undefined) return { kind: "refused", error: refusal };
    if (kind === "refusing") {
      return { kind: "refused", error: new ServiceError(this.#health.code) };
    }
    if (!this.#scripts.has(call.kind) && !bringsScript) return { kind: "noScript" };
    this.#scripts.add(call.kind);
    this.#replicateUntil(this.#time.nowUs - replicaLagUsMax);
    if (call.kind === "take") {
      return { kind: "decided", results: call.batch.map((request) => this.#decide(request)) };
    }
    const buckets = call.compensations.map((one) => this.#giveBack(one));
    return { kind: "givenBack", givenBack: { buckets, nowUs: this.#nowUs() } };
  }

  #decide(request: StoreRequest): StoreResult {
    const nowUs = this.#nowUs();
    const written = new Map<LimitKey, Entry | undefined>();
    const table: BucketTable = {
      get: (key) => this.#read(key),
      set: (key, bucket, timeToFullUs) => {
        written.set(key, { bucket, expiresUs: expiryUs(nowUs, timeToFullUs) });
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
      const changed = { takenHits: taken, refundedHits, serverUs: nowUs };
      this.#tell(key, { kind: "asked", charge, ...changed, isOverAlone });
    });
    for (const [key, entry] of written) this.#write(key, entry, takenHits.get(key) ?? 0);
    return { ...decided, nowUs };
  }

  #giveBack(compensation: Compensation): Bucket {
    const { key, cost, chargedUs } = compensation;
    const nowUs = this.#nowUs();
    const stored = this.#read(key);
    this.#tell(key, { kind: "givenBack", hits: cost, chargedUs });
    if (stored === undefined) return { level: 0, tUs: nowUs };
    const bucket = compensate(compensation, stored, nowUs);
    if (bucket === stored) return bucket;
    // The key keeps its expiry: what is left drains sooner than what was there.
    const expiresUs = this.#table.get(key)?.expiresUs ?? nowUs;
    this.#write(key, bucket.level > 0 ? { bucket, expiresUs } : undefined, 0);
    return bucket;
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

/** As the scripts do: whole milliseconds, rounded up, and one more. */
function expiryUs(nowUs: number, timeToFullUs: number): number {
  return nowUs + (Math.ceil(timeToFullUs / 1_000) + 1) * 1_000;
}

function setEntry(table: Map<LimitKey, Entry>, key: LimitKey, entry: Entry | undefined): void {
  if (entry === undefined) table.delete(key);
  else table.set(key, entry);
}
