import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { isGzip, lineBatches } from "../../simulate/line-batches.js";

/** Number of bytes read at once. */
const chunkBytes = 262_144;

/** Lines of a log, and the number of bytes read so far. */
export interface LogLines {
  /** Undefined for standard input. */
  readonly bytesTotal: number | undefined;
  readonly bytesRead: () => number;
  /** Lines in batches, without line endings. Throws the errors of reading. */
  readonly batches: AsyncIterable<readonly string[]>;
}

/** Opens a log: `-` is standard input, and gzip is decompressed. */
export async function openLog(path: string): Promise<LogLines> {
  let bytesRead = 0;
  // First, so that a missing file fails here and not while it is read.
  const bytesTotal = path === "-" ? undefined : (await stat(path)).size;
  const source: Readable =
    path === "-" ? process.stdin : createReadStream(path, { highWaterMark: chunkBytes });
  source.on("data", (chunk: Buffer) => {
    bytesRead += chunk.length;
  });
  source.pause();
  return { bytesTotal, bytesRead: () => bytesRead, batches: lineBatches(unpacked(source)) };
}

/** Detects gzip by the first bytes, because rotated logs have various names. */
async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = joined(first.value, chunks);
  if (!isGzip(first.value)) yield* all;
  // `pipeline` reports failures of both streams here, to the reader.
  else yield* pipeline(Readable.from(all), createGunzip({ chunkSize: chunkBytes }), noop);
}

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

function noop(): void {}
