import { ServiceError } from "../core/errors.js";
import { parseObject, recordOf } from "./record-text.js";
import type { AuditRecord, RecordKind, SharedRecord } from "./shared-records.js";

/** The most records that one page brings. */
export const pageRecordsMax = 2_000;

/** What is known of one kind of records. */
export interface KnownRecords {
  readonly version: number;
  readonly records: ReadonlyMap<string, SharedRecord>;
}

/** What is known after a page. */
export interface RecordsPage extends KnownRecords {
  /** Whether the store has forgotten what was known before. */
  readonly isAnew: boolean;
}

/**
 * Reads what `readScript` answers, on top of what is known.
 *
 * @throws ServiceError STORE_PROTOCOL
 */
export function readPage(kind: RecordKind, known: KnownRecords, bytes: Buffer): RecordsPage {
  const page = new PageReader(bytes);
  const [version, reset] = page.line(/^(\d{1,16}) ([01])$/);
  const isAnew = reset === "1";
  // Readers keep the map that they were given.
  const records = new Map(isAnew ? [] : known.records);
  const pattern = /^([a-z0-9._:-]{1,128}) (\d{1,16}) (\d{1,9}|-)$/;
  let recordCount = 0;
  while (!page.isAtEnd) {
    const [id = "", digits, length = ""] = page.line(pattern);
    if (length === "-") {
      records.delete(id);
      continue;
    }
    recordCount += 1;
    if (recordCount > pageRecordsMax) throw new ServiceError("STORE_PROTOCOL");
    records.set(id, recordOf(kind, { id, version: Number(digits) }, page.text(Number(length))));
  }
  return { version: Number(version), records, isAnew };
}

/** Reads what `auditScript` answers. @throws ServiceError STORE_PROTOCOL */
export function parseAudit(bytes: Buffer): readonly AuditRecord[] {
  const page = new PageReader(bytes);
  const entries: AuditRecord[] = [];
  while (!page.isAtEnd) {
    const [number, epochMs, length] = page.line(/^(\d{1,16}) (\d{1,16}) (\d{1,9})$/);
    const value = parseObject(page.text(Number(length)));
    entries.push({ number: Number(number), epochMs: Number(epochMs), value });
  }
  return entries;
}

const newline = 10;
const lineBytesMax = 256;

/** Reads lines, and what stands behind them by its length. */
class PageReader {
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

  /** The JSON of so many bytes. */
  text(length: number): string {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new ServiceError("STORE_PROTOCOL");
    const text = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end;
    return text;
  }
}
