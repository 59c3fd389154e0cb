import { assert } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import {
  auditBytesMax,
  type RecordChange,
  recordBytesMax,
  recordIdPattern,
} from "./shared-records.js";

/**
 * Asserts that a change is within its bounds: whoever asks for one has checked what callers said.
 */
export function checkChange({ kind, id, value, audit }: RecordChange): void {
  assert(recordIdPattern.test(id), "a record's id is one");
  assert(value === undefined || jsonBytes(value) <= recordBytesMax[kind], "a record fits");
  if (audit !== undefined) checkAudit(audit);
}

/** Asserts the same of an audit entry. */
export function checkAudit(audit: JsonObject): void {
  assert(jsonBytes(audit) <= auditBytesMax, "an audit entry fits");
}

function jsonBytes(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}
