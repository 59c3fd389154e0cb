import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  freeBytesDefault,
  isRefusal,
  messageDecoders,
  type PeerDecoder,
  worstInputs,
} from "../support/decoders.js";
import { sizeOf } from "../support/size-of.js";
import { answerDecoders } from "../support/store-decoders.js";
import type { WorstMessage } from "../support/worst-messages.js";
import { layOut } from "./report.js";

/** What a message may cost the event loop at a time, in milliseconds. */
const turnMsMax = 5;

/** Often enough that one run meets no collection of garbage and no other process. */
const runCount = 9;

/** The same of what is held, which takes longer. */
const heldRunCount = 3;

/** How often as many runs are made again of what was too slow. */
const retriesMax = 5;

/** What an input may take in memory beside `freeBytes`, times its bytes. */
const heldTimesMax = 10;

/** Bytes of the inputs that are held at a time, as many as that takes, to tell them from noise. */
const heldBytesMin = 4_194_304;

/**
 * What the worst message of each decoder costs, of the sizes that reach it, of one that is read in
 * turns the longest of these, and whether that is more than a message may; beside what `JSON.parse`
 * takes for an array of numbers of as many bytes. Then what the one that takes most in memory, by
 * the estimate of the unit test, truly takes of it. Worst cases are made from the messages'
 * descriptors.
 *
 * @param only rows whose name holds this text
 */
export async function tellDecoders(
  only: string,
): Promise<{ readonly text: string; readonly isWithin: boolean }> {
  const rows: string[][] = [];
  let isWithin = true;
  const decoders = [...messageDecoders, ...answerDecoders];
  for (const decoder of decoders.filter(({ name }) => name.includes(only))) {
    process.stderr.write(`${decoder.name} ...\n`);
    const { slowest, largest } = await worstOf(decoder);
    const json = `[${"7,".repeat(Math.max(0, slowest.byteCount / 2 - 1))}7]`;
    const jsonMs = await leastMs(() => JSON.parse(json));
    const isSlow = decoder.isElsewhere !== true && slowest.ms > turnMsMax;
    const heldBytes = largest === undefined ? 0 : await heldBytesOf(largest, decoder);
    const { freeBytes = freeBytesDefault } = decoder;
    const isLarge = heldBytes > heldTimesMax * (largest?.byteLength ?? 0) + freeBytes;
    if (isSlow || isLarge) isWithin = false;
    rows.push([
      decoder.name,
      (slowest.byteCount / 1_024).toFixed(0),
      slowest.ms.toFixed(1),
      isSlow ? `above ${turnMsMax}` : decoder.isElsewhere === true ? "elsewhere" : "",
      (slowest.ms / jsonMs).toFixed(2),
      slowest.what,
      ((largest?.byteLength ?? 0) / 1_024).toFixed(0),
      (heldBytes / 1_024).toFixed(0),
      isLarge ? `above ${heldTimesMax} times` : "",
    ]);
  }
  const times = ["worst message", "KiB", "CPU ms", "a turn", "of JSON.parse", "what it is"];
  const header = [...times, "largest, KiB", "held KiB", "of it"];
  return { text: layOut([header, ...rows]), isWithin };
}

interface Cost {
  readonly what: string;
  readonly byteCount: number;
  readonly ms: number;
}

/** The input that takes longest, and the one of which most is held; undefined: all are refused. */
async function worstOf(
  decoder: PeerDecoder,
): Promise<{ readonly slowest: Cost; readonly largest: Buffer | undefined }> {
  const { freeBytes = freeBytesDefault, held = decoder.decode } = decoder;
  let slowest: Cost = { what: "", byteCount: 0, ms: 0 };
  let largest: Buffer | undefined;
  let heldRatioMax = 0;
  for (const message of worstInputs(decoder)) {
    const { bytes } = message;
    let ms = await costOf(message, decoder);
    // Others use the machine, too, and its caches.
    for (let i = 0; i < retriesMax && ms > turnMsMax && decoder.isElsewhere !== true; i += 1) {
      ms = Math.min(ms, await costOf(message, decoder));
    }
    if (ms > slowest.ms) slowest = { what: message.what, byteCount: bytes.length, ms };
    try {
      const size = sizeOf(await held(bytes), bytes);
      const heldRatio = size / (heldTimesMax * bytes.length + freeBytes);
      if (heldRatio > heldRatioMax) [heldRatioMax, largest] = [heldRatio, bytes];
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown;
    }
  }
  return { slowest, largest };
}

/** The heap that an input takes, by what is left of it after the collector's rounds. */
async function heldBytesOf(
  bytes: Buffer,
  { decode, held = decode }: Pick<PeerDecoder, "decode" | "held">,
): Promise<number> {
  const count = Math.min(64, Math.ceil(heldBytesMin / bytes.length));
  let least = Number.POSITIVE_INFINITY;
  // What other work leaves on the heap only adds to one of them.
  for (let run = 0; run < heldRunCount; run += 1) {
    const made: unknown[] = [await held(bytes)];
    const before = heapBytes();
    for (let i = 0; i < count; i += 1) made.push(await held(bytes));
    least = Math.min(least, Math.max(0, heapBytes() - before) / (made.length - 1));
  }
  return least;
}

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

async function costOf(
  { bytes }: WorstMessage,
  { decode, turns }: Pick<PeerDecoder, "decode" | "turns">,
): Promise<number> {
  if (turns !== undefined) return longestTurnMs(() => turns(bytes));
  return leastMs(async () => {
    try {
      await decode(bytes);
    } catch {
      // To refuse it is what most of them cost.
    }
  });
}

/** The least CPU of several runs, in milliseconds. */
async function leastMs(work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runCount; i += 1) {
    const before = process.cpuUsage();
    await work();
    least = Math.min(least, msSince(before));
  }
  return least;
}

/** The CPU of the longest turn, each one at its least of several runs, in milliseconds. */
function longestTurnMs(begin: () => Iterator<undefined, unknown>): number {
  const least: number[] = [];
  for (let i = 0; i < runCount; i += 1) {
    const turns = begin();
    let isDone = false;
    for (let at = 0; !isDone; at += 1) {
      const before = process.cpuUsage();
      isDone = turns.next().done === true;
      least[at] = Math.min(least[at] ?? Number.POSITIVE_INFINITY, msSince(before));
    }
  }
  return Math.max(...least);
}

function msSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
