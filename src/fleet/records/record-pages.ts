import { ServiceError } from "../../core/base/errors.js";
import { goneRecordsMax, type KnownRecords, newestGone } from "./known-records.js";
import { parseObject, recordOf } from "./record-text.js";
import {
  type AuditRecord,
  type RecordKind,
  recordBytesMax,
  type SharedRecord,
} from "./shared-records.js";

/** The most records that one page brings. */
export const pageRecordsMax = 1_000;

/** What is known after a page. */
export type RecordsPage =
  | {
      readonly kind: "page";
      readonly known: KnownRecords;
      /** Whether what was known before is left out of it. */
      readonly isAnew: boolean;
    }
  /** The store is not the one that was asked about. */
  | { readonly kind: "other"; readonly state: string };

const newline = 10;
const lineBytesMax = 256;

/** Reads lines, and what stands behind them by its length. */
export class PageReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The parts of a line. */
  line(pattern: RegExp): readonly string[] {
    const end = this.#bytes.indexOf(newline, this.#at);
    const text =
      end < 0 || end - this.#at > lineBytesMax ? "" : this.#bytes.toString("latin1", this.#at, end);
    const match = pattern.exec(text);
    if (match === null) throw new ServiceError("STORE_PROTOCOL");
    this.#at = end + 1;
    return match.slice(1);
  }

  /** So many bytes, of the same memory. */
  bytes(length: number): Buffer {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new ServiceError("STORE_PROTOCOL");
    return this.#bytes.subarray(start, this.#at);
  }

  /** The JSON of so many bytes. */
  text(length: number): string {
    return this.bytes(length).toString();
  }
}

/**
 * Reads an answer of `readScript`.
 *
 * @param known what was known before
 * @throws ServiceError STORE_PROTOCOL
 */
export function readPage(kind: RecordKind, known: KnownRecords, bytes: Buffer): RecordsPage {
  const page = new PageReader(bytes);
  const head = /^(?:other (~?[0-9a-f]{0,64})|(\d{1,16}) ([01]) (\d{1,16}))$/;
  const [state, version, reset, floor] = page.line(head);
  if (state !== undefined) return { kind: "other", state };
  const isAnew = reset === "1";
  if (page.isAtEnd && !isAnew) {
    const next = { ...known, version: Number(version), floor: Number(floor) };
    return { kind: "page", known: next, isAnew };
  }
  // Readers keep the map that they were given.
  const records = new Map<string, SharedRecord>(isAnew ? [] : known.records);
  const gone = new Map<string, number>(isAnew ? [] : known.gone);
  const pattern = /^([a-z0-9._:-]{1,128}) (\d{1,16}) (\d{1,9}|-)$/;
  let recordCount = 0;
  let goneCount = 0;
  while (!page.isAtEnd) {
    const [id = "", digits, length = ""] = page.line(pattern);
    const version = Number(digits);
    if (length === "-") {
      goneCount += 1;
      if (goneCount > goneRecordsMax) throw new ServiceError("STORE_PROTOCOL");
      records.delete(id);
      gone.set(id, version);
    } else {
      recordCount += 1;
      if (recordCount > pageRecordsMax) throw new ServiceError("STORE_PROTOCOL");
      if (Number(length) > recordBytesMax[kind]) throw new ServiceError("STORE_PROTOCOL");
      records.set(id, recordOf(kind, { id, version }, page.text(Number(length))));
      gone.delete(id);
    }
  }
  const next = { version: Number(version), records, gone: newestGone(gone), floor: Number(floor) };
  return { kind: "page", known: next, isAnew };
}

/** An entry of the audit log as it is stored. */
export interface AuditText extends Omit<AuditRecord, "value"> {
  /** A JSON object. */
  readonly text: string;
}

/**
 * Reads an answer of `auditScript`.
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

/** @throws ServiceError STORE_PROTOCOL */
export function auditRecordOf({ number, epochMs, text }: AuditText): AuditRecord {
  return { number, epochMs, value: parseObject(text) };
}
