import { type GateSettings, gateProblem } from "../../core/admission/gate.js";
import type { JsonObject } from "../../core/base/json.js";
import type { SharedRecords } from "./shared-records.js";

/** The thresholds that an operator has set for a gate, as stored in a record. */
interface StoredThresholds {
  /** The rejection ratios at which the gate starts to close and is fully closed; 0 to 1. */
  readonly openBelowRatio: number;
  readonly closeAboveRatio: number;
  readonly author: string;
  readonly reason: string;
  readonly setEpochMs: number;
  /** The version of the record, at least 1. */
  readonly version: number;
}

/** Returns the gate name of a waiting room. It is unique: no service has a colon in its name. */
export function roomGateName(room: string): string {
  return `room:${room}`;
}

/**
 * Gate thresholds that override the policy's, the same at all replicas. A snapshot is rebuilt when
 * records change, so a lookup once per second costs one map access.
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

  /** Changes whenever any threshold may have changed. */
  get version(): number {
    return this.#version;
  }

  /** Records that were skipped because they have a later version or are invalid. */
  get unreadableCount(): number {
    return this.#unreadableCount;
  }

  /** The number of services with overridden thresholds. */
  get count(): number {
    return this.#stored.size;
  }

  /** The thresholds that an operator has set for a service. Undefined: the policy's apply. */
  find(service: string): StoredThresholds | undefined {
    return this.#stored.get(service);
  }

  /**
   * The effective settings of a service's gate: the operator's thresholds if they are compatible
   * with its other settings, otherwise the policy's.
   */
  settingsOf(service: string, own: GateSettings): GateSettings {
    const stored = this.#stored.get(service);
    if (stored === undefined) return own;
    const { openBelowRatio, closeAboveRatio } = stored;
    const wanted = { ...own, openBelowRatio, closeAboveRatio };
    return gateProblem(wanted) === undefined ? wanted : own;
  }

  /** Calls back after any change. The returned function unsubscribes. */
  onChange(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Stops following changes. */
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

/** Converts thresholds to the format of a record. */
export function thresholdsToJson(thresholds: Omit<StoredThresholds, "version">): JsonObject {
  const { openBelowRatio, closeAboveRatio, author, reason, setEpochMs } = thresholds;
  return { openBelowRatio, closeAboveRatio, author, reason, setEpochMs };
}

/** Undefined for a record of a later version and for an invalid one. */
function thresholdsFromJson(value: JsonObject, version: number): StoredThresholds | undefined {
  const { openBelowRatio, closeAboveRatio, author, reason, setEpochMs } = value;
  if (typeof openBelowRatio !== "number" || typeof closeAboveRatio !== "number") return undefined;
  if (typeof author !== "string" || typeof reason !== "string") return undefined;
  if (typeof setEpochMs !== "number") return undefined;
  return { openBelowRatio, closeAboveRatio, author, reason, setEpochMs, version };
}
