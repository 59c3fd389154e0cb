import type { JsonObject } from "../../core/base/json.js";
import type { RecordChange, SharedRecords } from "../../fleet/records/shared-records.js";
import {
  currentId,
  policiesKeptMax,
  policyToJson,
  readCurrent,
  readHistory,
  readIndex,
  readShadow,
  type StoredPolicy,
  type StoredShadow,
  shadowId,
  versionId,
} from "../policy/policy-admin-records.js";

/** What came of a change. */
export type RepositoryOutcome =
  | "changed"
  /** Somebody else has changed the same meanwhile. */
  | "conflict"
  /** There are as many policies as there may be. */
  | "full";

/**
 * The policies of shared records: the active one, those before it, and the shadow policy.
 * A policy's texts have a record of their own; another record names those that are kept. Whoever
 * writes that one last puts an active policy.
 */
export class PolicyRepository {
  readonly #records: SharedRecords;

  constructor(records: SharedRecords) {
    this.#records = records;
  }

  /** The active one first. */
  history(): readonly StoredPolicy[] {
    return readHistory(this.#records);
  }

  /** Whether this is the active one, as the store has it. */
  isCurrent(version: string): boolean {
    const current = readCurrent(this.#records);
    return current.kind === "found" && current.value.version === version;
  }

  /** The shadow policy; undefined: none, or none that can be read. */
  shadow(): StoredShadow | undefined {
    const shadow = readShadow(this.#records);
    return shadow.kind === "found" ? shadow.value : undefined;
  }

  /**
   * Keeps a policy and names it the active one.
   *
   * @param facts `first`: what a new fleet began with, which is kept where nothing is yet
   * @throws ServiceError STORE_ codes; whether it was changed is then not known
   */
  async put(
    policy: StoredPolicy,
    { first, audit }: { readonly first: StoredPolicy | undefined; readonly audit: JsonObject },
  ): Promise<RepositoryOutcome> {
    const index = readIndex(this.#records);
    const { numbers, recordVersion } =
      index.kind === "found" ? index.value : { numbers: [], recordVersion: this.#indexVersion() };
    const kept = [...numbers];
    const added = numbers.length === 0 && first !== undefined ? [first, policy] : [policy];
    for (const one of added) {
      const number = await this.#keep(one);
      if (number === undefined) return "conflict";
      kept.unshift(number);
    }
    const held = kept.slice(0, policiesKeptMax);
    const value = { numbers: held };
    const named = { kind: "policy", id: currentId, value, expectedVersion: recordVersion } as const;
    const outcome = await this.#change({ ...named, audit });
    if (outcome === "changed") {
      await this.#sweep(held).catch(() => {
        // The store went away after the change: the next one sweeps.
      });
    }
    return outcome;
  }

  /**
   * Keeps a policy as the shadow policy, in place of another.
   *
   * @param facts `run`: names this run, as no other was named
   * @throws as `put`
   */
  putShadow(
    policy: StoredPolicy,
    { run, audit }: { readonly run: string; readonly audit: JsonObject },
  ): Promise<RepositoryOutcome> {
    const value = policyToJson(policy, run);
    const expectedVersion = this.#records.list("policy").get(shadowId)?.version ?? 0;
    return this.#change({ kind: "policy", id: shadowId, value, expectedVersion, audit });
  }

  /**
   * Takes away the shadow policy, where it still is this one.
   *
   * @throws as `put`
   */
  endShadow(
    { recordVersion: expectedVersion }: StoredShadow,
    audit: JsonObject | undefined,
  ): Promise<RepositoryOutcome> {
    return this.#change({ kind: "policy", id: shadowId, value: undefined, expectedVersion, audit });
  }

  async #change(change: RecordChange): Promise<RepositoryOutcome> {
    return (await this.#records.change(change)).kind;
  }

  /** Keeps the texts of a policy; undefined: somebody else did the same at the same time. */
  async #keep(policy: StoredPolicy): Promise<number | undefined> {
    const number = 1 + Math.max(0, ...this.#numbers());
    const outcome = await this.#change({
      kind: "policy",
      id: versionId(number),
      value: policyToJson(policy),
      expectedVersion: 0,
      audit: undefined,
    });
    return outcome === "changed" ? number : undefined;
  }

  /** Takes away what is kept no more, and what others wrote who came too late. */
  async #sweep(kept: readonly number[]): Promise<void> {
    // What is newer may be somebody's who is about to name it.
    const newest = Math.max(...kept);
    for (const number of this.#numbers()) {
      const id = versionId(number);
      const record = this.#records.list("policy").get(id);
      if (number >= newest || kept.includes(number) || record === undefined) continue;
      const { version: expectedVersion } = record;
      const gone = { kind: "policy", id, value: undefined, expectedVersion } as const;
      await this.#change({ ...gone, audit: undefined });
    }
  }

  #numbers(): readonly number[] {
    const ids = [...this.#records.list("policy").keys()];
    return ids.flatMap((id) => /^v\.(\d{1,15})$/.exec(id)?.slice(1).map(Number) ?? []);
  }

  /** Of a record that cannot be read, so that it can be replaced. */
  #indexVersion(): number {
    return this.#records.list("policy").get(currentId)?.version ?? 0;
  }
}
