import { type PeerDecoder, peerDecoders } from "../support/decoders.js";
import { type WorstMessage, worstMessages } from "../support/worst-messages.js";
import { layOut } from "./report.js";

/** Often enough that one run meets no collection of garbage and no other process. */
const runCount = 9;

/**
 * What the worst message of each decoder costs at the largest size that reaches it, beside what
 * `JSON.parse` takes for an array of numbers of as many bytes. Worst cases are made from the
 * messages' descriptors.
 */
export function tellDecoders(): string {
  const rows = peerDecoders.map((decoder) => {
    process.stderr.write(`${decoder.name} ...\n`);
    const worst = worstOf(decoder);
    const json = `[${"7,".repeat(decoder.bytesMax / 2 - 1)}7]`;
    const jsonMs = leastMs(() => JSON.parse(json));
    return [
      decoder.name,
      (decoder.bytesMax / 1_024).toFixed(0),
      worst.ms.toFixed(1),
      (worst.ms / jsonMs).toFixed(2),
      worst.what,
    ];
  });
  const header = ["worst message", "KiB", "CPU ms", "of JSON.parse", "what it is"];
  return layOut([header, ...rows]);
}

interface Cost {
  readonly what: string;
  readonly ms: number;
}

function worstOf({ schema, bytesMax, decode }: PeerDecoder): Cost {
  const costs = worstMessages(schema, bytesMax).map((message) => costOf(message, decode));
  return costs.reduce((worst, one) => (one.ms > worst.ms ? one : worst));
}

function costOf({ what, bytes }: WorstMessage, decode: PeerDecoder["decode"]): Cost {
  const ms = leastMs(() => {
    try {
      decode(bytes);
    } catch {
      // To refuse it is what most of them cost.
    }
  });
  return { what, ms };
}

/** The least CPU of several runs, in milliseconds. */
function leastMs(work: () => unknown): number {
  let leastUs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runCount; i += 1) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    leastUs = Math.min(leastUs, user + system);
  }
  return leastUs / 1_000;
}
