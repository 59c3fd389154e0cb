import { type Mogrifier, mogrify } from "../config/statsd-mogrifier.js";
import type { StatTag } from "../options/stats-names.js";

/** What a receiver is told: a difference, a state, or a time that so many calls took. */
export type StatChange =
  | { readonly kind: "counter"; readonly name: string; readonly increase: number }
  | { readonly kind: "gauge"; readonly name: string; readonly value: number }
  | {
      readonly kind: "times";
      readonly name: string;
      readonly timeMs: number;
      readonly count: number;
    };

/** How a line is written. */
export type LineFormat = (change: StatChange) => string;

/** The longest name that is sent, in characters; longer ones fit into no packet. */
export const statNameLengthMax = 1_200;

/** Largest packet in bytes: what goes unfragmented through a network whose frames hold 1,500. */
export const packetBytesMax = 1_432;

/** Lines for StatsD: tags become parts of the name, as envoyproxy/ratelimit writes them. */
export function statsdFormat(tags: readonly StatTag[]): LineFormat {
  const suffix = [...tags]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, value }) => `.__${name}=${value.replace(/[.:]/g, "_")}`)
    .join("");
  return (change) => `${change.name}${suffix}:${written(change)}`;
}

/** Lines for DogStatsD: tags of their own, some of them made of the name. */
export function dogStatsdFormat(
  tags: readonly StatTag[],
  mogrifiers: readonly Mogrifier[],
): LineFormat {
  return (change) => {
    const mogrified = mogrify(change.name, mogrifiers);
    const all = [...tags, ...mogrified.tags].map(({ name, value }) => `${name}:${value}`);
    const suffix = all.length === 0 ? "" : `|#${all.join(",")}`;
    return `${mogrified.name}:${written(change)}${suffix}`;
  };
}

/** Source: StatsD, "Metric types"; DogStatsD, "Datagram format". */
function written(change: StatChange): string {
  switch (change.kind) {
    case "counter":
      return `${change.increase}|c`;
    case "gauge":
      return `${change.value}|g`;
    case "times":
      return `${change.timeMs}|ms${weight(change.count)}`;
  }
}

/**
 * One line for many calls: a sample rate of 1/n counts it n times. Receivers turn the rate back and
 * cut off the fraction, so it is a little lower: 1/93 would come back as 92.99...
 */
function weight(count: number): string {
  return count === 1 ? "" : `|@${1 / (count + 0.001)}`;
}

/** What was too long for a packet is told of, and left out. */
export function* packLines(
  lines: Iterable<string>,
  onDropped: () => void,
): Generator<Buffer, void, undefined> {
  let packet: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const lineBytes = Buffer.byteLength(line) + 1;
    if (lineBytes > packetBytesMax) {
      onDropped();
      continue;
    }
    if (bytes + lineBytes > packetBytesMax) {
      yield Buffer.from(`${packet.join("\n")}\n`);
      packet = [];
      bytes = 0;
    }
    packet.push(line);
    bytes += lineBytes;
  }
  if (packet.length > 0) yield Buffer.from(`${packet.join("\n")}\n`);
}
