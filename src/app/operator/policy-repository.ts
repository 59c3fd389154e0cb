import type { JsonObject } from "../../core/base/json.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { RecordChange } from "../../store/coordination/record-store.js";
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

/** Result of a change. */
export type RepositoryOutcome =
  | "changed"
  /** Another change of the same record came first. */
  | "conflict"
  /** The maximum number of policies is reached. */
  | "full";

/**
 * The policies of shared records: the active one, earlier ones, and the shadow policy. The texts of
 * each policy have a record of their own, and an index record lists those that are kept. The index
 * is written last, and activates the policy.
 */
export class PolicyRepository {
  readonly #records: SharedRecords;

  constructor(records: SharedRecords) {
    this.#records = records;
  }

  /** The policies, the active one first. */
  history(): readonly StoredPolicy[] {
    return readHistory(this.#records);
  }

  /** Whether this is the active policy in the store. */
  isCurrent(version: string): boolean {
    const current = readCurrent(this.#records);
    return current.kind === "found" && current.value.version === version;
  }

  /** The shadow policy. Undefined: there is none, or it cannot be read. */
  shadow(): StoredShadow | undefined {
    const shadow = readShadow(this.#records);
    return shadow.kind === "found" ? shadow.value : undefined;
  }

  /**
   * Stores a policy and makes it the active one.
   *
   * @param facts `first`: initial policy of a new fleet, stored if there is no policy yet
   * @throws ServiceError STORE_ codes; it is then not known whether anything was changed
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
        // The store failed after the change: the next change sweeps.
      });
    }
    return outcome;
  }

  /**
   * Stores a policy as the shadow policy, in place of another.
   *
   * @param facts `run`: unique name of this run
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
   * Removes the shadow policy, if it still is this one.
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

  /** Stores the texts of a policy. Undefined: another caller stored one at the same time. */
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

  /** Removes records that are no longer kept, and those of callers that came too late. */
  async #sweep(kept: readonly number[]): Promise<void> {
    // The record of a newer number may belong to a caller that is about to index it.
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

  /** Also the version of an unreadable record, so that it can be replaced. */
  #indexVersion(): number {
    return this.#records.list("policy").get(currentId)?.version ?? 0;
  }
}
