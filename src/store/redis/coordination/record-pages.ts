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
