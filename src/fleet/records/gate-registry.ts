import { type GateSettings, gateProblem } from "../../core/admission/gate.js";
import type { JsonObject } from "../../core/base/json.js";
import type { SharedRecords } from "./shared-records.js";

/** Thresholds that an operator gave a gate, as a record has them. */
interface StoredThresholds {
  /** From which part of refusals on it begins to hold back, and above which it closes; 0 to 1. */
  readonly openBelowRatio: number;
  readonly closeAboveRatio: number;
  readonly author: string;
  readonly reason: string;
  readonly setEpochMs: number;
  /** Of the record, from 1. */
  readonly version: number;
}

/**
 * Thresholds of gates that are not their policy's, as all replicas know them. A snapshot is made
 * anew when records change; who asks once a second pays one look into a map.
 */
export class GateRegistry {
  readonly #records: SharedRecords;
  readonly #listeners = new Set<() => void>();
  readonly #stopFollowing: () => void;
  #stored: ReadonlyMap<string, StoredThresholds> = new Map();
  #version = 0;
  #unreadableCount = 0;

  constructor(records: SharedRecords) {
    this.#records = records;
    this.#stopFollowing = records.onChange((kind) => {
      if (kind === "gate") this.#remake();
    });
    this.#remake();
  }

  /** Another number whenever any of them may have changed. */
  get version(): number {
    return this.#version;
  }

  /** Records that were left out because they are none of ours, or of a later version. */
  get unreadableCount(): number {
    return this.#unreadableCount;
  }

  /** How many services have thresholds of their own. */
  get count(): number {
    return this.#stored.size;
  }

  /** What an operator gave a service's gate; undefined: its policy's hold. */
  find(service: string): StoredThresholds | undefined {
    return this.#stored.get(service);
  }

  /**
   * What holds for a service's gate: the operator's thresholds where they go with the rest of its
   * settings, else the policy's own.
   */
  settingsOf(service: string, own: GateSettings): GateSettings {
    const stored = this.#stored.get(service);
    if (stored === undefined) return own;
    const { openBelowRatio, closeAboveRatio } = stored;
    const wanted = { ...own, openBelowRatio, closeAboveRatio };
    return gateProblem(wanted) === undefined ? wanted : own;
  }

  /** Calls back after any of them has changed, until the answer is called. */
  onChange(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Follows changes no more. */
  close(): void {
    this.#stopFollowing();
    this.#listeners.clear();
  }

  #remake(): void {
    const stored = new Map<string, StoredThresholds>();
    this.#unreadableCount = 0;
    for (const { id, version, value } of this.#records.list("gate").values()) {
      const thresholds = thresholdsFromJson(value, version);
      if (thresholds === undefined) this.#unreadableCount += 1;
      else stored.set(id, thresholds);
    }
    this.#stored = stored;
    this.#version += 1;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Thresholds as a record has them. */
export function thresholdsToJson(thresholds: Omit<StoredThresholds, "version">): JsonObject {
  const { openBelowRatio, closeAboveRatio, author, reason, setEpochMs } = thresholds;
  return { openBelowRatio, closeAboveRatio, author, reason, setEpochMs };
}

/** Undefined for what another version, or nobody of ours, has written. */
function thresholdsFromJson(value: JsonObject, version: number): StoredThresholds | undefined {
  const { openBelowRatio, closeAboveRatio, author, reason, setEpochMs } = value;
  if (typeof openBelowRatio !== "number" || typeof closeAboveRatio !== "number") return undefined;
  if (typeof author !== "string" || typeof reason !== "string") return undefined;
  if (typeof setEpochMs !== "number") return undefined;
  return { openBelowRatio, closeAboveRatio, author, reason, setEpochMs, version };
}
