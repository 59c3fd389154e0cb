import { describe, expect, it } from "vitest";
import {
  dogStatsdFormat,
  packetBytesMax,
  packLines,
  statsdFormat,
} from "../../../../src/app/metrics/statsd.js";

const counter = { kind: "counter", name: "a.b", increase: 3 } as const;
const tags = [
  { name: "zone", value: "eu.1:a" },
  { name: "build", value: "7" },
];

describe("statsdFormat()", () => {
  it("writes counters, gauges and times", () => {
    const format = statsdFormat([]);
    expect(format(counter)).toBe("a.b:3|c");
    expect(format({ kind: "gauge", name: "g", value: 0 })).toBe("g:0|g");
    expect(format({ kind: "times", name: "t", timeMs: 0.25, count: 1 })).toBe("t:0.25|ms");
  });

  it("says times of many calls in a line that receivers count as many", () => {
    const format = statsdFormat([]);
    for (const count of [2, 3, 7, 93, 99, 1_000, 123_457, 10_000_000]) {
      const line = format({ kind: "times", name: "t", timeMs: 1, count });
      const rate = Number(/^t:1\|ms\|@(\S+)$/.exec(line)?.[1]);
      expect(Math.trunc(1 / rate)).toBe(count);
    }
  });

  it("makes tags parts of the name, in the order of theirs", () => {
    expect(statsdFormat(tags)(counter)).toBe("a.b.__build=7.__zone=eu_1_a:3|c");
  });
});

describe("dogStatsdFormat()", () => {
  it("writes tags as tags", () => {
    expect(dogStatsdFormat(tags, [])(counter)).toBe("a.b:3|c|#zone:eu.1:a,build:7");
    expect(dogStatsdFormat([], [])(counter)).toBe("a.b:3|c");
  });

  it("adds the tags that are made of the name", () => {
    const mogrifier = {
      pattern: /^a\.(.*)$/u,
      name: "a",
      tags: [{ name: "rest", value: "$1" }],
    };
    const format = dogStatsdFormat([{ name: "build", value: "7" }], [mogrifier]);
    expect(format(counter)).toBe("a:3|c|#build:7,rest:b");
  });
});

describe("packLines()", () => {
  it("fills packets to their bound and never over it, and keeps every line whole", () => {
    const lines = Array.from({ length: 200 }, (_, i) => `ä${"x".repeat(i % 90)}:${i}|c`);
    const packets = [...packLines(lines, () => {})];
    expect(Math.max(...packets.map((packet) => packet.length))).toBeLessThanOrEqual(packetBytesMax);
    expect(packets.length).toBeLessThan(10);
    expect(Buffer.concat(packets).toString("utf8").trimEnd().split("\n")).toEqual(lines);
  });

  it("takes a line that fills a packet alone, and leaves out one that is a byte longer", () => {
    let dropped = 0;
    const count = (): void => {
      dropped += 1;
    };
    const fits = "x".repeat(packetBytesMax - 1);
    expect([...packLines(["a", `${fits}x`, fits, "b"], count)].map(String)).toEqual([
      "a\n",
      `${fits}\n`,
      "b\n",
    ]);
    expect(dropped).toBe(1);
  });

  it("makes no packet of nothing", () => {
    expect([...packLines([], () => {})]).toEqual([]);
  });
});
