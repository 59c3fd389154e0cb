import { PermitPool, type PoolSettings } from "../../core/admission/permit-pool.js";
import type { SharesPermits } from "../../core/admission/permit-share.js";
import type { ConcurrencySettings } from "../../core/concurrency/concurrency-laws.js";
import type { SignalReading } from "../../core/concurrency/concurrency-limit.js";
import type { CapacityChange, SignalUpdate } from "../../core/concurrency/signal-update.js";
import type { ServiceConcurrency } from "../../policy/services/service-concurrency.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { AdmissionRequest } from "./admission-call.js";
import type { AdmittedRequest } from "./admitted-request.js";

interface ServicePoolsParts {
  readonly policy: ServicePolicy;
  /** Absent if this process is the only replica. */
  readonly shares: SharesPermits | undefined;
  /** Percentage of each limit that one peer may have in use, 1 to 100. */
  readonly peerPercentMax: number;
  /** A cryptographic hash in hexadecimal, for keys in names. */
  readonly digest: (text: string) => string;
  /** Called when a waiting request may be admitted. */
  readonly onGrown: () => void;
  /** Monotonic time, in milliseconds. */
  readonly nowMs: () => number;
}

/** How long an unused key keeps its pool, in milliseconds. */
export const keyIdleMsMax = 600_000;

/** Maximum number of pools that one `expire` checks. */
export const expiryLooksMax = 100;

/** Maximum number of pools that are checked for an idle one if a new key finds no room. */
const idleLooksMax = 16;

/** Name in metrics of keys that the policy does not name. */
export const otherKey = "other";

/** The pool of one key. */
interface KeyedPool {
  /** A name from the policy or `otherKey`; empty for the pool of a limit that is not split. */
  readonly label: string;
  readonly pool: PermitPool<AdmittedRequest>;
}

interface HeldPool extends KeyedPool {
  /** When a request last used it. */
  usedMs: number;
}

/** Maximum length of a key. Longer keys are replaced by their digests. */
export const poolKeyCharsMax = 256;

/**
 * The pools of one service: one for all requests or, if its limit is split by a header, one for
 * each key and one for all together. Keys above the maximum share one pool, with the permits of one
 * key. An idle key makes room for a new one, and is removed after ten minutes without a request.
 */
export class ServicePools {
  readonly #parts: ServicePoolsParts;
  #policy: ServicePolicy;
  /** The pool of all requests: the only pool, or a limit on all keys together. */
  readonly whole: PermitPool<AdmittedRequest>;
  readonly #byKey = new Map<string, HeldPool>();
  #others: KeyedPool | undefined;
  /** Last readings of a signal, for later keys and recreated algorithms. */
  readonly #readings = new Map<string, number>();
  #readingOfRest: SignalReading | undefined;

  constructor(parts: ServicePoolsParts) {
    this.#parts = parts;
    this.#policy = parts.policy;
    const { policy } = parts;
    this.whole = this.#create(wholeName(policy), { label: "", settings: wholeSettings(policy) });
  }

  /** Changes settings at run time. A recreated algorithm starts with the last reading. */
  configure(policy: ServicePolicy): void {
    const before = this.#policy.concurrency?.per?.header;
    this.#policy = policy;
    if (policy.concurrency?.per?.header !== before) this.#forgetKeys();
    this.#configurePool(this.whole, wholeSettings(policy));
    for (const [key, { pool }] of this.#byKey) {
      this.#configurePool(pool, keySettings(policy, key), key);
    }
    if (this.#others !== undefined) this.#configurePool(this.#others.pool, keySettings(policy));
  }

  /** Gives up all shares. */
  close(): void {
    for (const { pool } of this.all()) pool.close();
    this.whole.close();
  }

  /** Whether each key has its own pool, within the service's. */
  get isSplit(): boolean {
    return this.#policy.concurrency?.per !== undefined;
  }

  /** The pools in which requests wait and are served. */
  *all(): Iterable<KeyedPool> {
    if (!this.isSplit) {
      yield { label: "", pool: this.whole };
      return;
    }
    yield* this.#byKey.values();
    if (this.#others !== undefined) yield this.#others;
  }

  /** The pool of a request. */
  of({ headers }: AdmissionRequest): PermitPool<AdmittedRequest> {
    const per = this.#policy.concurrency?.per;
    if (per === undefined) return this.whole;
    const value = headers.get(per.header) ?? "";
    // Keys are kept for minutes, and callers may make them as long as headers may be.
    const key = value.length > poolKeyCharsMax ? this.#parts.digest(value) : value;
    const usedMs = this.#parts.nowMs();
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      known.usedMs = usedMs;
      return known.pool;
    }
    if (this.#byKey.size >= per.keysMax && !this.#dropIdle()) return this.#shared();
    const label = per.names.includes(key) ? key : otherKey;
    const name = this.#nameOf(label === key ? key : this.#parts.digest(key));
    const pool = this.#create(name, { label, settings: keySettings(this.#policy, key) });
    this.#teach(pool, this.#readings.get(key) ?? this.#readingOfRest);
    this.#byKey.set(key, { label, pool, usedMs });
    return pool;
  }

  /**
   * Applies readings for the algorithm `signal`. Readings of keys without a pool are kept for at
   * most as many keys as may have pools.
   *
   * @returns the changed limits: one change for each name of the policy, one for all other keys
   */
  read({ isAnew, byKey, gone, rest }: SignalUpdate): readonly CapacityChange[] {
    const changes = new Map<string, CapacityChange>();
    const old = isAnew ? [...this.#readings.keys()].filter((key) => !byKey.has(key)) : [];
    const lost = new Set([...gone, ...old]);
    for (const key of lost) this.#readings.delete(key);
    if (rest !== undefined) this.#readingOfRest = rest;
    if (this.isSplit) {
      for (const [key, reading] of byKey) {
        this.#keep(key, reading);
        this.#follow(this.#byKey.get(key)?.pool, { reading, changes });
      }
    }
    const restNow = this.#readingOfRest;
    for (const key of lost) {
      this.#follow(this.#byKey.get(key)?.pool, { reading: restNow, changes });
    }
    if (rest === undefined) return [...changes.values()];
    for (const [key, { pool }] of this.#byKey) {
      if (!this.#readings.has(key) && !lost.has(key))
        this.#follow(pool, { reading: rest, changes });
    }
    this.#follow(this.isSplit ? this.#others?.pool : this.whole, { reading: rest, changes });
    return [...changes.values()];
  }

  /** Last readings by label: of each name, the largest of other keys, and of all (empty label). */
  readings(): ReadonlyMap<string, number> {
    const byLabel = new Map<string, number>();
    const names = this.#policy.concurrency?.per?.names ?? [];
    if (typeof this.#readingOfRest === "number") byLabel.set("", this.#readingOfRest);
    for (const [key, reading] of this.#readings) {
      const label = names.includes(key) ? key : otherKey;
      byLabel.set(label, Math.max(reading, byLabel.get(label) ?? reading));
    }
    return byLabel;
  }

  /** Removes keys that have been unused for long. Each call checks some of them. */
  expire(nowMs: number): void {
    // Each checked key moves to the end, so the initial count ends the loop.
    let leftCount = Math.min(expiryLooksMax, this.#byKey.size);
    for (const [key, held] of this.#byKey) {
      if (leftCount === 0) return;
      leftCount -= 1;
      this.#byKey.delete(key);
      if (nowMs - held.usedMs >= keyIdleMsMax && isIdle(held.pool)) held.pool.close();
      else this.#byKey.set(key, held);
    }
  }

  #keep(key: string, reading: number): void {
    const keysMax = this.#policy.concurrency?.per?.keysMax ?? 0;
    if (this.#readings.has(key) || this.#readings.size < keysMax) this.#readings.set(key, reading);
  }

  /** Applies a reading to a pool. Of keys with the same label, reports the largest change. */
  #follow(pool: PermitPool<AdmittedRequest> | undefined, { reading, changes }: Followed): void {
    const law = pool?.law;
    if (pool === undefined || law === undefined || reading === undefined) return;
    const from = law.limit;
    law.read?.(reading, this.#parts.nowMs());
    const to = law.limit;
    const { label: key } = pool;
    const reported = changes.get(key);
    if (from === to || (reported && Math.abs(reported.to - reported.from) >= Math.abs(to - from)))
      return;
    changes.set(key, { key, from, to, reading });
  }

  #teach(pool: PermitPool<AdmittedRequest>, reading: SignalReading | undefined): void {
    if (reading !== undefined) pool.law?.read?.(reading, this.#parts.nowMs());
  }

  #configurePool(pool: PermitPool<AdmittedRequest>, settings: PoolSettings, key?: string): void {
    const before = pool.law;
    pool.configure(settings);
    if (pool.law === before) return;
    const own = key === undefined ? undefined : this.#readings.get(key);
    this.#teach(pool, own ?? this.#readingOfRest);
  }

  /** Closes the pools of keys. Requests in flight keep their permits there; no others come. */
  #forgetKeys(): void {
    for (const { pool } of this.#byKey.values()) pool.close();
    this.#others?.pool.close();
    this.#byKey.clear();
    this.#others = undefined;
    this.#readings.clear();
  }

  #shared(): PermitPool<AdmittedRequest> {
    if (this.#others === undefined) {
      const settings = keySettings(this.#policy);
      const pool = this.#create(this.#nameOf(otherKey), { label: otherKey, settings });
      this.#others = { label: otherKey, pool };
      this.#teach(pool, this.#readingOfRest);
    }
    return this.#others.pool;
  }

  #dropIdle(): boolean {
    let lookCount = 0;
    for (const [key, keyed] of this.#byKey) {
      if (lookCount >= idleLooksMax) return false;
      lookCount += 1;
      this.#byKey.delete(key);
      if (isIdle(keyed.pool)) {
        keyed.pool.close();
        return true;
      }
      // Moves to the end, so that the next search starts with others.
      this.#byKey.set(key, keyed);
    }
    return false;
  }

  #nameOf(key: string): string {
    return `${wholeName(this.#policy)}/${key}`;
  }

  #create(
    name: string,
    { label, settings }: { readonly label: string; readonly settings: PoolSettings },
  ): PermitPool<AdmittedRequest> {
    const { shares, onGrown, peerPercentMax } = this.#parts;
    return new PermitPool<AdmittedRequest>(
      { name, label, shares, onGrown, peerPercentMax },
      settings,
    );
  }
}

interface Followed {
  readonly reading: SignalReading | undefined;
  /** By label. */
  readonly changes: Map<string, CapacityChange>;
}

function isIdle(pool: PermitPool<AdmittedRequest>): boolean {
  return pool.inUseCount() === 0 && pool.waitingCount === 0;
}

/** Includes the length, so that names with keys of different services are never equal. */
function wholeName({ name }: ServicePolicy): string {
  return `${name.length}:${name}`;
}

function wholeSettings(policy: ServicePolicy): PoolSettings {
  const { admission, concurrency } = policy;
  const maxInFlight = admission?.maxInFlight;
  if (concurrency?.per !== undefined) return { ...unlimited, maxInFlight };
  return { ...keySettings(policy), maxInFlight };
}

/** A queue in dry run holds no request. If admission is off, an algorithm has none to admit. */
function keySettings({ admission, concurrency }: ServicePolicy, key?: string): PoolSettings {
  if (admission === undefined) return unlimited;
  const queue = admission.dryRun.has("queue") ? undefined : admission.queue;
  return {
    maxInFlight: undefined,
    concurrency: concurrency && settingsOf(concurrency, key),
    queue,
  };
}

/** A key may have thresholds of its own. */
function settingsOf(
  { settings, signal }: ServiceConcurrency,
  key: string | undefined,
): ConcurrencySettings {
  if (key === undefined || settings.law !== "signal") return settings;
  const own = signal?.thresholds.find(({ name }) => name === key);
  return own === undefined ? settings : { ...settings, target: own.target, critical: own.critical };
}

const unlimited: PoolSettings = {
  maxInFlight: undefined,
  concurrency: undefined,
  queue: undefined,
};
