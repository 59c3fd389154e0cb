import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { isGzip, lineBatches } from "../../simulate/line-batches.js";

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
  return { bytesTotal, bytesRead: () => bytesRead, batches: lineBatches(unpacked(source)) };
}

/** By what it begins with: logs that were rotated have names of all kinds. */
async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = joined(first.value, chunks);
  if (!isGzip(first.value)) yield* all;
  // What fails on either side fails here, where it is read.
  else yield* pipeline(Readable.from(all), createGunzip({ chunkSize: chunkBytes }), noop);
}

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

function noop(): void {}
