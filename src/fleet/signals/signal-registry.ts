import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import type { SignalReadings } from "./signal-readings.js";

/** How long readings are valid. */
export interface SignalRegistrySettings {
  /** How long a reading is valid without a newer one, in milliseconds. */
  readonly staleAfterMs: number;
  /** The bound that applies afterwards, and for keys that a source does not report. */
  readonly whenMissing: "min" | "max";
  /** Maximum number of keys with readings. Keys that the policy names have priority. */
  readonly keysMax: number;
  /** The keys that the policy names. */
  readonly names: readonly string[];
}

/**
 * The readings of one signal, and their validity.
 *
 * A reading is valid until a newer one arrives, for at most `staleAfterMs`. If a source reports
 * several keys, a key that it no longer reports keeps its last reading for `staleAfterMs`. After
 * that, the bound `whenMissing` applies, as it does for keys without any reading. Before the first
 * response, the initial limit applies, or the bound if the response takes too long.
 */
export class SignalRegistry {
  readonly #settings: SignalRegistrySettings;
  /** The monotonic time of each key's last reading, oldest first. */
  readonly #readAtMs = new Map<string, number>();
  /** The time of the last successful response, or of the start. */
  #heardAtMs: number;
  #rest: "unknown" | "reading" | "missing" = "unknown";
  #isAnew = true;

  constructor(settings: SignalRegistrySettings, nowMs: number) {
    this.#settings = settings;
    this.#heardAtMs = nowMs;
  }

  /** Whether no response has arrived for so long that the bound applies. */
  isMissing(nowMs: number): boolean {
    return nowMs - this.#heardAtMs >= this.#settings.staleAfterMs;
  }

  /** Time since the last successful response, or since the start, in milliseconds. */
  ageMs(nowMs: number): number {
    return nowMs - this.#heardAtMs;
  }

  /** The number of keys with a valid reading. */
  get keyCount(): number {
    return this.#readAtMs.size;
  }

  /** The source has responded. */
  heard(answer: SignalReadings, nowMs: number): SignalUpdate {
    this.#heardAtMs = nowMs;
    if (answer.kind === "whole") {
      this.#rest = "reading";
      return this.#update({ byKey: noReadings, gone: this.#forgetAll(), rest: answer.reading });
    }
    const gone = this.#forgetStale(nowMs);
    const byKey = new Map<string, number>();
    const taken = { answer, byKey, gone, nowMs };
    for (const name of this.#settings.names) this.#take(name, taken);
    for (const key of answer.readings.keys()) this.#take(key, taken);
    const stillGone = gone.filter((key) => !byKey.has(key));
    return this.#update({ byKey, gone: stillGone, rest: this.#miss() });
  }

  /** The source has not responded. @returns undefined if this changes nothing */
  failed(nowMs: number): SignalUpdate | undefined {
    const gone = this.#forgetStale(nowMs);
    const rest = this.isMissing(nowMs) ? this.#miss() : undefined;
    if (gone.length === 0 && rest === undefined) return undefined;
    return this.#update({ byKey: noReadings, gone, rest });
  }

  #update(update: Omit<SignalUpdate, "isAnew">): SignalUpdate {
    const isAnew = this.#isAnew;
    this.#isAnew = false;
    return { isAnew, ...update };
  }

  #take(key: string, { answer, byKey, gone, nowMs }: Taken): void {
    const reading = answer.readings.get(key);
    if (reading === undefined || byKey.has(key)) return;
    const isKnown = this.#readAtMs.delete(key);
    if (!isKnown && this.#readAtMs.size >= this.#settings.keysMax) {
      const other = this.#lessWanted(key);
      if (other === undefined) return;
      this.#readAtMs.delete(other);
      gone.push(other);
    }
    this.#readAtMs.set(key, nowMs);
    byKey.set(key, reading);
  }

  /** The key to evict for a key of the policy: the oldest one that the policy does not name. */
  #lessWanted(key: string): string | undefined {
    const { names } = this.#settings;
    if (!names.includes(key)) return undefined;
    for (const other of this.#readAtMs.keys()) if (!names.includes(other)) return other;
    return undefined;
  }

  /** The bound, if it does not apply yet. */
  #miss(): "min" | "max" | undefined {
    if (this.#rest === "missing") return undefined;
    this.#rest = "missing";
    return this.#settings.whenMissing;
  }

  #forgetStale(nowMs: number): string[] {
    const gone: string[] = [];
    for (const [key, readAtMs] of this.#readAtMs) {
      if (nowMs - readAtMs < this.#settings.staleAfterMs) break;
      gone.push(key);
    }
    for (const key of gone) this.#readAtMs.delete(key);
    return gone;
  }

  #forgetAll(): readonly string[] {
    const gone = [...this.#readAtMs.keys()];
    this.#readAtMs.clear();
    return gone;
  }
}

interface Taken {
  readonly answer: Extract<SignalReadings, { kind: "byKey" }>;
  readonly byKey: Map<string, number>;
  readonly gone: string[];
  readonly nowMs: number;
}

const noReadings: ReadonlyMap<string, number> = new Map();
