import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { type LogLine, lineText, viewOf } from "../../simulate/log-line.js";

/** The longest line that is looked at, in UTF-16 units; longer ones come as empty ones. */
const lineCharsMax = 65_536;

/** A line with more bytes is too long, whatever they say: a unit has three of them at most. */
const lineBytesMax = 3 * lineCharsMax + 1;

/** Read at once. */
const chunkBytes = 1_048_576;

/** Lines of a log, and how many bytes of it were read for them. */
export interface LogLines {
  /** Undefined for standard input. */
  readonly bytesTotal: number | undefined;
  readonly bytesRead: () => number;
  /** Some lines at a time, each batch to be read once. Throws what reading throws. */
  readonly batches: AsyncIterable<Iterable<LogLine>>;
}

/** Opens a log: `-` is standard input, and what gzip has compressed is unpacked. */
export async function openLog(path: string): Promise<LogLines> {
  let bytesRead = 0;
  // First, so that a file which is not there fails here and not on its way.
  const bytesTotal = path === "-" ? undefined : (await stat(path)).size;
  const source: Readable =
    path === "-" ? process.stdin : createReadStream(path, { highWaterMark: chunkBytes });
  source.on("data", (chunk: Buffer) => {
    bytesRead += chunk.length;
  });
  source.pause();
  return { bytesTotal, bytesRead: () => bytesRead, batches: batchesOf(unpacked(source)) };
}

/** By what it begins with: logs that were rotated have names of all kinds. */
async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = joined(first.value, chunks);
  if (first.value[0] !== gzipStart[0] || first.value[1] !== gzipStart[1]) yield* all;
  // What fails on either side fails here, where it is read.
  else yield* pipeline(Readable.from(all), createGunzip({ chunkSize: chunkBytes }), noop);
}

/** Source: RFC 1952 section 2.3.1. */
const gzipStart = [0x1f, 0x8b];

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

function noop(): void {}

async function* batchesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Iterable<LogLine>> {
  /** The beginning of a line that goes on in the next chunk. */
  let rest: Buffer = Buffer.alloc(0);
  let isLong = false;
  let isFirst = true;
  for await (const chunk of source) {
    const end = chunk.lastIndexOf(newline) + 1;
    if (end > 0) {
      const first = chunk.indexOf(newline) + 1;
      // Of a line that is too long the end is waited for, and nothing kept.
      const begun = Buffer.concat([rest, chunk.subarray(0, first - 1)]);
      yield [isLong ? noLine : wholeLine(begun, isFirst)];
      yield linesOf(chunk.subarray(first, end));
      isFirst = false;
      isLong = false;
      rest = Buffer.alloc(0);
    }
    if (!isLong) rest = Buffer.concat([rest, chunk.subarray(end)]);
    isLong = isLong || rest.length > lineBytesMax;
    if (isLong) rest = Buffer.alloc(0);
  }
  const last = wholeLine(rest, isFirst);
  if (last.end > last.start) yield [last];
}

const [newline, carriageReturn] = [0x0a, 0x0d];

/** Lines that all end. */
function* linesOf(bytes: Buffer): Generator<LogLine> {
  const view = viewOf(bytes);
  let start = 0;
  for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
    yield lineOf({ bytes, view, start, end });
    start = end + 1;
  }
}

/** A line without the carriage return at its end; empty if it is too long. */
function lineOf(line: LogLine): LogLine {
  const { bytes, view, start, end } = line;
  if (end - start > lineCharsMax && isTooLong(line)) return { bytes, view, start, end: start };
  const isReturned = end > start && bytes[end - 1] === carriageReturn;
  return isReturned ? { bytes, view, start, end: end - 1 } : line;
}

/** A unit has three bytes at most, and at least one. */
function isTooLong(line: LogLine): boolean {
  return line.end - line.start > lineBytesMax || lineText(line).length > lineCharsMax;
}

function wholeLine(bytes: Buffer, isFirst: boolean): LogLine {
  const start = isFirst ? textStart(bytes) : 0;
  return lineOf({ bytes, view: viewOf(bytes), start, end: bytes.length });
}

const noBytes: Buffer = Buffer.alloc(0);
const noLine: LogLine = { bytes: noBytes, view: viewOf(noBytes), start: 0, end: 0 };

/** Some programs begin what is UTF-8 with a mark that says so. */
function textStart(bytes: Buffer): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}
