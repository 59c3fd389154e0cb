import { messageDecoders, type PeerDecoder } from "../support/decoders.js";
import { answerDecoders } from "../support/store-decoders.js";
import type { WorstMessage } from "../support/worst-messages.js";
import { layOut } from "./report.js";

/** What a message may cost the event loop at a time, in milliseconds. */
const turnMsMax = 5;

/** Often enough that one run meets no collection of garbage and no other process. */
const runCount = 9;

/**
 * What the worst message of each decoder costs at the largest size that reaches it, of one that is
 * read in turns the longest of these, and whether that is more than a message may; beside what
 * `JSON.parse` takes for an array of numbers of as many bytes. Worst cases are made from the
 * messages' descriptors.
 */
export async function tellDecoders(): Promise<string> {
  const rows: string[][] = [];
  for (const decoder of [...messageDecoders, ...answerDecoders]) {
    if (decoder.isElsewhere === true) continue;
    process.stderr.write(`${decoder.name} ...\n`);
    const worst = await worstOf(decoder);
    const json = `[${"7,".repeat(decoder.bytesMax / 2 - 1)}7]`;
    const jsonMs = await leastMs(() => JSON.parse(json));
    rows.push([
      decoder.name,
      (decoder.bytesMax / 1_024).toFixed(0),
      worst.ms.toFixed(1),
      worst.ms > turnMsMax ? `above ${turnMsMax}` : "",
      (worst.ms / jsonMs).toFixed(2),
      worst.what,
    ]);
  }
  const header = ["worst message", "KiB", "CPU ms", "a turn", "of JSON.parse", "what it is"];
  return layOut([header, ...rows]);
}

interface Cost {
  readonly what: string;
  readonly ms: number;
}

async function worstOf({ worst, bytesMax, ...decoder }: PeerDecoder): Promise<Cost> {
  let dearest: Cost = { what: "", ms: 0 };
  for (const message of worst(bytesMax)) {
    const cost = await costOf(message, decoder);
    if (cost.ms > dearest.ms) dearest = cost;
  }
  return dearest;
}

async function costOf(
  { what, bytes }: WorstMessage,
  { decode, turns }: Pick<PeerDecoder, "decode" | "turns">,
): Promise<Cost> {
  if (turns !== undefined) return { what, ms: longestTurnMs(() => turns(bytes)) };
  const ms = await leastMs(async () => {
    try {
      await decode(bytes);
    } catch {
      // To refuse it is what most of them cost.
    }
  });
  return { what, ms };
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
