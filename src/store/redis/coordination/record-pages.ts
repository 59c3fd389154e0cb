import { ServiceError } from "../../../core/base/errors.js";
import {
  type AuditText,
  goneRecordsMax,
  pageRecordsMax,
  type RecordKind,
  type RecordsPage,
  recordBytesMax,
  type SharedRecord,
} from "../../coordination/record-store.js";
import { recordOf } from "../../coordination/record-text.js";
import { PageReader } from "./page-reader.js";

/**
 * Reads the reply of `readScript`.
 *
 * @throws ServiceError STORE_PROTOCOL
 */
export function readPage(kind: RecordKind, bytes: Buffer): RecordsPage {
  const page = new PageReader(bytes);
  const head = /^(?:other (~?[0-9a-f]{0,64})|(\d{1,16}) ([01]) (\d{1,16}))$/;
  const [state, version, reset, floor] = page.line(head);
  if (state !== undefined) return { kind: "other", state };
  const records: SharedRecord[] = [];
  const gone: (readonly [string, number])[] = [];
  const pattern = /^([a-z0-9._:-]{1,128}) (\d{1,16}) (\d{1,9}|-)$/;
  while (!page.isAtEnd) {
    const [id = "", digits, length = ""] = page.line(pattern);
    const version = Number(digits);
    if (length === "-") {
      if (gone.length >= goneRecordsMax) throw new ServiceError("STORE_PROTOCOL");
      gone.push([id, version]);
    } else {
      if (records.length >= pageRecordsMax) throw new ServiceError("STORE_PROTOCOL");
      if (Number(length) > recordBytesMax[kind]) throw new ServiceError("STORE_PROTOCOL");
      records.push(recordOf(kind, { id, version }, page.text(Number(length))));
    }
  }
  const isAnew = reset === "1";
  return {
    kind: "page",
    version: Number(version),
    isAnew,
    floor: Number(floor),
    records,
    gone,
  };
}

/**
 * Reads the reply of `auditScript`.
 *
 * @throws ServiceError STORE_PROTOCOL
 */
export function readAudit(bytes: Buffer): readonly AuditText[] {
  const page = new PageReader(bytes);
  const entries: AuditText[] = [];
  while (!page.isAtEnd) {
    const [number, epochMs, length] = page.line(/^(\d{1,16}) (\d{1,16}) (\d{1,9})$/);
    const text = page.text(Number(length));
    entries.push({ number: Number(number), epochMs: Number(epochMs), text });
  }
  return entries;
}
