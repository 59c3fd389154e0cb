import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";

/** The longest line that is looked at, in UTF-16 units; longer ones come as empty ones. */
const lineCharsMax = 65_536;

/** Read at once. */
const chunkBytes = 262_144;

/** Lines of a log, and how many bytes of it were read for them. */
export interface LogLines {
  /** Undefined for standard input. */
  readonly bytesTotal: number | undefined;
  readonly bytesRead: () => number;
  /** Some lines at a time, without what ends them. Throws what reading throws. */
  readonly batches: AsyncIterable<readonly string[]>;
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

async function* batchesOf(source: AsyncIterable<Buffer>): AsyncGenerator<readonly string[]> {
  // Leaves out the mark with which some programs begin what is UTF-8.
  const decoder = new TextDecoder();
  /** The beginning of a line that goes on in the next chunk: of a long one, enough to tell. */
  let rest = "";
  for await (const chunk of source) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()?.slice(0, lineCharsMax + 1) ?? "";
    yield lines.map(readableLine);
  }
  const last = rest + decoder.decode();
  if (last !== "") yield [readableLine(last)];
}

/** A line without the carriage return at its end; empty if it is too long. */
function readableLine(line: string): string {
  if (line.length > lineCharsMax) return "";
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
