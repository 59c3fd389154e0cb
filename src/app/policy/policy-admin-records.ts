import type { JsonObject, JsonValue } from "../../core/base/json.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { PolicyText } from "../../policy/parse.js";
import type { PolicyVersion } from "../../rpc/admin/admin-parts.js";
import { recordBytesMax, type SharedRecord } from "../../store/coordination/record-store.js";

/** Maximum size of a policy's record, its texts as JSON, in bytes. */
export const policyRecordBytesMax = recordBytesMax.policy;

/** Maximum number of policies that are kept, including the active one. */
export const policiesKeptMax = 20;

/** The record that names the active policy. */
export const currentId = "current";

/** The record of the shadow policy. */
export const shadowId = "shadow";

/** Returns the record of a policy that is, or was, active. */
export function versionId(number: number): string {
  return `v.${number}`;
}

/** The existing policies, by the numbers of their records. The active one is first. */
interface PolicyIndex {
  readonly numbers: readonly number[];
  /** Version of this record. 0: there is none yet. */
  readonly recordVersion: number;
}

/** A policy as stored in its record. */
export interface StoredPolicy extends PolicyVersion {
  readonly appliedEpochMs: number;
  /** Time at which a restored policy was active before. Undefined: it was not restored. */
  readonly restoredEpochMs?: number;
}

/** The shadow policy. */
export interface StoredShadow extends StoredPolicy {
  /** Names its counters and the key space of its buckets. Each run has another one. */
  readonly run: string;
  readonly recordVersion: number;
}

/** Result of reading a record of policies. */
type ReadRecord<T> =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly value: T }
  /** Headgate did not write it, or a later version did. */
  | { readonly kind: "unreadable" };

/** Reads which policies exist. */
export function readIndex(records: Pick<SharedRecords, "list">): ReadRecord<PolicyIndex> {
  const record = records.list("policy").get(currentId);
  if (record === undefined) return { kind: "none" };
  const numbers = record.value["numbers"];
  if (!Array.isArray(numbers) || numbers.length === 0 || !numbers.every(isWhole)) {
    return { kind: "unreadable" };
  }
  return { kind: "found", value: { numbers, recordVersion: record.version } };
}

/** Reads the active policy in the store. */
export function readCurrent(records: Pick<SharedRecords, "list">): ReadRecord<StoredPolicy> {
  const index = readIndex(records);
  if (index.kind !== "found") return index;
  const policy = readPolicy(records, index.value.numbers[0] ?? 0);
  return policy === undefined ? { kind: "unreadable" } : { kind: "found", value: policy };
}

/** Reads the policies that are kept, the active one first. Unreadable ones are left out. */
export function readHistory(records: Pick<SharedRecords, "list">): readonly StoredPolicy[] {
  const index = readIndex(records);
  if (index.kind !== "found") return [];
  return index.value.numbers.flatMap((number) => readPolicy(records, number) ?? []);
}

/** Reads one of them. */
function readPolicy(
  records: Pick<SharedRecords, "list">,
  number: number,
): StoredPolicy | undefined {
  const record = records.list("policy").get(versionId(number));
  return record && policyFromJson(record);
}

/** Reads the shadow policy. */
export function readShadow(records: Pick<SharedRecords, "list">): ReadRecord<StoredShadow> {
  const record = records.list("policy").get(shadowId);
  if (record === undefined) return { kind: "none" };
  const policy = policyFromJson(record);
  const run = record.value["run"];
  if (policy === undefined || typeof run !== "string" || !/^[0-9a-f]{1,64}$/.test(run)) {
    return { kind: "unreadable" };
  }
  return { kind: "found", value: { ...policy, run, recordVersion: record.version } };
}

/** Converts a policy to the form of its record. `run` is for the shadow policy. */
export function policyToJson(policy: StoredPolicy, run?: string): JsonObject {
  const { version, appliedEpochMs, restoredEpochMs, author, reason, files, source } = policy;
  return {
    version,
    appliedEpochMs,
    ...(restoredEpochMs === undefined ? {} : { restoredEpochMs }),
    author,
    reason,
    source,
    files: files.map(({ file, text }) => [file, text]),
    ...(run === undefined ? {} : { run }),
  };
}

/** Returns the size of a record, in bytes of UTF-8. */
export function recordBytes(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function policyFromJson({ value }: SharedRecord): StoredPolicy | undefined {
  const { version, appliedEpochMs, author, reason, source } = value;
  const files = readFiles(value["files"]);
  if (typeof version !== "string" || typeof appliedEpochMs !== "number") return undefined;
  if (typeof author !== "string" || typeof reason !== "string") return undefined;
  if (source !== "files" && source !== "xds" && source !== "admin") return undefined;
  const { restoredEpochMs } = value;
  const restored = typeof restoredEpochMs === "number" ? { restoredEpochMs } : {};
  return files && { version, appliedEpochMs, ...restored, author, reason, source, files };
}

function readFiles(value: JsonValue | undefined): readonly PolicyText[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const files: PolicyText[] = [];
  for (const item of value) {
    if (!Array.isArray(item)) return undefined;
    const [file, text] = item;
    if (typeof file !== "string" || typeof text !== "string") return undefined;
    files.push({ file, text });
  }
  return files;
}

function isWhole(value: JsonValue): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
