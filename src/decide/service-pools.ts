import type { SharesPermits } from "../core/permit-share.js";
import type { ServicePolicy } from "../policy/service-policy.js";
import type { AdmissionRequest } from "./admission-call.js";
import { PermitPool, type PoolSettings } from "./permit-pool.js";
import type { Visit } from "./visit.js";

/** What the pools of a service are made of. */
export interface ServicePoolsParts {
  readonly policy: ServicePolicy;
  /** Absent where this process is alone. */
  readonly shares: SharesPermits | undefined;
  /** A strong hash of a text, in hexadecimal, for keys in names. */
  readonly digest: (text: string) => string;
  /** Told when somebody who waits may go in now. */
  readonly onGrown: () => void;
}

/** Pools that are looked at for one that is idle, when a new key finds no room. */
const idleLooksMax = 16;

/** How metrics name keys that the policy does not. */
export const otherKey = "other";

/** One key's pool. */
export interface KeyedPool {
  /** A name of the policy's, or `otherKey`. */
  readonly label: string;
  readonly pool: PermitPool<Visit>;
}

/**
 * The pools of one service: one for all requests, or, where its limit is split by a header, one for
 * each key beside one for all together. Keys above the bound share a pool, and so have the permits
 * of one; a key that has nothing in it makes room for a new one.
 */
export class ServicePools {
  readonly #parts: ServicePoolsParts;
  #policy: ServicePolicy;
  /** All requests of the service: the only pool, or a bound on those of all keys together. */
  readonly whole: PermitPool<Visit>;
  readonly #byKey = new Map<string, KeyedPool>();
  #others: KeyedPool | undefined;
  /** The last reading of a signal, for keys that come later. */
  readonly #readings = new Map<string, number>();
  #readingOfAll: number | undefined;

  constructor(parts: ServicePoolsParts) {
    this.#parts = parts;
    this.#policy = parts.policy;
    this.whole = this.#create(wholeName(parts.policy), wholeSettings(parts.policy));
  }

  /** Changes settings while it runs. */
  configure(policy: ServicePolicy): void {
    const before = this.#policy.concurrency?.per?.header;
    this.#policy = policy;
    this.whole.configure(wholeSettings(policy));
    if (policy.concurrency?.per?.header === before) {
      for (const { pool } of this.#byKey.values()) pool.configure(keySettings(policy));
      this.#others?.pool.configure(keySettings(policy));
    } else {
      // Who is in one of them keeps its permit there; nobody else comes.
      for (const { pool } of this.#byKey.values()) pool.close();
      this.#others?.pool.close();
      this.#byKey.clear();
      this.#others = undefined;
    }
  }

  /** Gives all shares up. */
  close(): void {
    for (const { pool } of this.all()) pool.close();
    this.whole.close();
  }

  /** Whether each key has a pool of its own, within the service's. */
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
  of({ headers }: AdmissionRequest): PermitPool<Visit> {
    const per = this.#policy.concurrency?.per;
    if (per === undefined) return this.whole;
    const key = headers.get(per.header) ?? "";
    const known = this.#byKey.get(key);
    if (known !== undefined) return known.pool;
    if (this.#byKey.size >= per.keysMax && !this.#dropIdle()) return this.#shared();
    const label = per.names.includes(key) ? key : otherKey;
    const pool = this.#create(this.#nameOf(label === key ? key : this.#parts.digest(key)));
    const reading = this.#readings.get(key) ?? this.#readingOfAll;
    if (reading !== undefined) pool.law?.read(reading);
    this.#byKey.set(key, { label, pool });
    return pool;
  }

  /**
   * A reading of what the law `signal` looks at.
   *
   * @param key whose it is, one of the policy's names; undefined: it holds for all keys
   */
  read(reading: number, key: string | undefined): void {
    if (key === undefined) {
      this.#readingOfAll = reading;
      for (const { pool } of this.all()) pool.law?.read(reading);
    } else if (this.#policy.concurrency?.per?.names.includes(key) === true) {
      this.#readings.set(key, reading);
      this.#byKey.get(key)?.pool.law?.read(reading);
    }
  }

  #shared(): PermitPool<Visit> {
    if (this.#others === undefined) {
      this.#others = { label: otherKey, pool: this.#create(this.#nameOf(otherKey)) };
      if (this.#readingOfAll !== undefined) this.#others.pool.law?.read(this.#readingOfAll);
    }
    return this.#others.pool;
  }

  #dropIdle(): boolean {
    let lookCount = 0;
    for (const [key, keyed] of this.#byKey) {
      if (lookCount >= idleLooksMax) return false;
      lookCount += 1;
      this.#byKey.delete(key);
      if (keyed.pool.inUseCount() === 0 && keyed.pool.waitingCount === 0) {
        keyed.pool.close();
        return true;
      }
      // To the end, so that the next look begins with others.
      this.#byKey.set(key, keyed);
    }
    return false;
  }

  #nameOf(key: string): string {
    return `${wholeName(this.#policy)}/${key}`;
  }

  #create(name: string, settings = keySettings(this.#policy)): PermitPool<Visit> {
    const { shares, onGrown } = this.#parts;
    return new PermitPool<Visit>({ name, shares, onGrown }, settings);
  }
}

/** With its length, so that no service's name and key read like another's. */
function wholeName({ name }: ServicePolicy): string {
  return `${name.length}:${name}`;
}

function wholeSettings(policy: ServicePolicy): PoolSettings {
  const { admission, concurrency } = policy;
  const maxInFlight = admission?.maxInFlight;
  if (concurrency?.per !== undefined) return { ...unlimited, maxInFlight };
  return { ...keySettings(policy), maxInFlight };
}

/** A queue that only counts holds nobody. Where admission is off, a law has nobody to let in. */
function keySettings({ admission, concurrency }: ServicePolicy): PoolSettings {
  if (admission === undefined) return unlimited;
  const queue = admission.dryRun.has("queue") ? undefined : admission.queue;
  return { maxInFlight: undefined, concurrency: concurrency?.settings, queue };
}

const unlimited: PoolSettings = {
  maxInFlight: undefined,
  concurrency: undefined,
  queue: undefined,
};
