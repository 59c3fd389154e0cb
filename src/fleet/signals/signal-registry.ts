import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import type { SignalReadings } from "./signal-readings.js";

/** How readings hold. */
export interface SignalRegistrySettings {
  /** How long a reading holds without a newer one, in milliseconds. */
  readonly staleAfterMs: number;
  /** The bound that holds then, and for keys that a source does not know. */
  readonly whenMissing: "min" | "max";
  /** The most keys whose readings are held; those that the policy names come first. */
  readonly keysMax: number;
  /** Keys that the policy names. */
  readonly names: readonly string[];
}

/**
 * What is known of one signal, and for how long it holds.
 *
 * A reading holds until a newer one, for `staleAfterMs` at most. Of a source that tells keys apart,
 * a key that it does not know has no reading: what it had holds for `staleAfterMs`, and after that
 * the bound `whenMissing`, as for keys that never had one. Before the first answer nothing is said,
 * so a limit's own beginning holds, and the bound when that takes too long.
 */
export class SignalRegistry {
  readonly #settings: SignalRegistrySettings;
  /** Monotonic time of each key's last reading; those of the oldest first. */
  readonly #readAtMs = new Map<string, number>();
  /** The last good answer's time, or when it all began. */
  #heardAtMs: number;
  #rest: "unknown" | "reading" | "missing" = "unknown";
  #isAnew = true;

  constructor(settings: SignalRegistrySettings, nowMs: number) {
    this.#settings = settings;
    this.#heardAtMs = nowMs;
  }

  /** Whether nothing has been heard for so long that the bound holds. */
  isMissing(nowMs: number): boolean {
    return nowMs - this.#heardAtMs >= this.#settings.staleAfterMs;
  }

  /** Time since the last good answer, or since the beginning, in milliseconds. */
  ageMs(nowMs: number): number {
    return nowMs - this.#heardAtMs;
  }

  /** Keys that have a reading now. */
  get keyCount(): number {
    return this.#readAtMs.size;
  }

  /** The source answered. */
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

  /** The source did not answer. @returns undefined where that changes nothing */
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

  /** Whose place a key of the policy's takes: the oldest that is not of the policy. */
  #lessWanted(key: string): string | undefined {
    const { names } = this.#settings;
    if (!names.includes(key)) return undefined;
    for (const other of this.#readAtMs.keys()) if (!names.includes(other)) return other;
    return undefined;
  }

  /** The bound, where it does not hold yet. */
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
