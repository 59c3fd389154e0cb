import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  hostTextCharsMax,
  parseAllowedCpus,
  parseCfsQuota,
  parseCountFile,
  parseCpuMax,
  parseCpuStat,
  parseMeminfoBytes,
  parseMeminfoRatio,
  parsePressure,
  parseProcStat,
  parseReclaimable,
  parseRunnable,
} from "../../../src/host/host-texts.js";
import { anyCodePoint } from "../../support/any-code-point.js";
import { containerTree, firstVersionTree, procStatText } from "../../support/host-trees.js";
import { propertyRuns } from "../../support/seeds.js";

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  parseAllowedCpus: (text) => parseAllowedCpus(text)?.size,
  parseCfsQuota: (text) => parseCfsQuota(text, "100000\n"),
  parseCountFile,
  parseCpuMax,
  parseCpuStat,
  parseMeminfoBytes,
  parseMeminfoRatio,
  parsePressure,
  parseProcStat,
  parseReclaimable,
  parseRunnable,
};

/** What the kernel writes, by the parser that reads it. */
const recorded: Readonly<Record<string, string>> = {
  parseAllowedCpus: "Name:\tnode\nCpus_allowed_list:\t0-3,8\n",
  parseCfsQuota: "50000\n",
  parseCountFile: "9223372036854771712\n",
  parseCpuMax: "150000 100000\n",
  parseCpuStat: containerTree["sys/fs/cgroup/cpu.stat"] ?? "",
  parseMeminfoBytes: containerTree["proc/meminfo"] ?? "",
  parseMeminfoRatio: containerTree["proc/meminfo"] ?? "",
  parsePressure: containerTree["proc/pressure/memory"] ?? "",
  parseProcStat: "cpu0 10 20 30 4000 50 6 7 8 9 10\n",
  parseReclaimable: firstVersionTree["sys/fs/cgroup/memory/memory.stat"] ?? "",
  parseRunnable: "1.00 0.76 1.86 3/96 19556\n",
};

const names = Object.keys(parsers);

/** All numbers of a parsed value. */
function numbersIn(value: unknown): readonly number[] {
  if (typeof value === "number") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(numbersIn) : [];
}

function parse(name: string, text: string): unknown {
  return parsers[name]?.(text);
}

describe("parsers of the kernel's texts", () => {
  it("read what the kernel writes", () => {
    const read = Object.fromEntries(names.map((name) => [name, parse(name, recorded[name] ?? "")]));
    expect(read).toEqual({
      parseAllowedCpus: 5,
      parseCfsQuota: 0.5,
      parseCountFile: 2 ** 63 - 4_096,
      parseCpuMax: 1.5,
      parseCpuStat: {
        usedUs: 60_000_000,
        periodsCount: 400,
        throttledCount: 40,
        throttledUs: 200_000,
      },
      parseMeminfoBytes: 16_384_000_000,
      parseMeminfoRatio: 0.25,
      parsePressure: { someUs: 3_000_000, fullUs: 1_000_000 },
      parseProcStat: { busyTicks: 81, totalTicks: 4_131, usableCount: 1, cpusCount: 1 },
      parseReclaimable: 100_000_000,
      parseRunnable: 3,
    });
  });

  it.each([
    ["parseCpuMax", "max 100000\n"],
    ["parseCpuMax", "0 100000\n"],
    ["parseCpuMax", "100000 0\n"],
    ["parseCpuMax", "-5 100000\n"],
    ["parseCfsQuota", "-1\n"],
    ["parseCountFile", "max\n"],
    ["parseCountFile", "-1\n"],
    ["parseCountFile", "1e9\n"],
    ["parseCountFile", "999999999999999999999999\n"],
    ["parseAllowedCpus", "Cpus_allowed_list:\t\n"],
    ["parseAllowedCpus", "Cpus_allowed_list:\t0-99999\n"],
    ["parseAllowedCpus", "Cpus_allowed_list:\t5-2\n"],
    ["parseMeminfoRatio", "MemTotal: 0 kB\nMemAvailable: 0 kB\n"],
    ["parseMeminfoRatio", "MemTotal: 5 kB\n"],
    ["parseReclaimable", "anon 5\n"],
    ["parseProcStat", "cpu  10 20 30 40\n"],
  ])("%s knows nothing of %j", (name, text) => {
    expect(parse(name, text)).toBeUndefined();
  });

  it.each(names)("%s takes a text that is cut anywhere for the whole one, or for less", (name) => {
    const text = recorded[name] ?? "";
    const whole = numbersIn(parse(name, text));
    for (let length = 0; length < text.length; length += 1) {
      const cut = numbersIn(parse(name, text.slice(0, length)));
      // What is added up may lack a part; no number itself is ever cut.
      if (name === "parseReclaimable") expect([[], ...partsOfCache]).toContainEqual(cut);
      else for (const number of cut) expect(whole).toContain(number);
    }
  });

  it.each(names)("%s has no number that is none, whatever the text is", (name) => {
    const word = fc.constantFrom(...(recorded[name] ?? "").split(/(?<=[ \n:\t])/));
    const odd = fc.constantFrom("-1", "NaN", "1e999", "99999999999999999999", "max", " ", "\n");
    const any = fc.string({ unit: anyCodePoint, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(fc.oneof(word, odd, any), { maxLength: 40 }), (words) => {
        for (const number of numbersIn(parse(name, words.join("")))) {
          expect(number).toBeGreaterThanOrEqual(0);
          expect(number).toBeLessThan(Number.POSITIVE_INFINITY);
        }
      }),
      propertyRuns(100),
    );
  });

  it("look at no more than their bound, of texts that last", () => {
    const text = `${"cpu0 1 0 0 1\n".repeat(hostTextCharsMax)}cpu1 1 0 0 1\n`;
    expect(parseProcStat(text)?.cpusCount).toBe(Math.floor(hostTextCharsMax / 13));
    expect(parsePressure("some ".repeat(10_000_000))).toEqual({});
  });
});

/** Of the whole subtree, of it without one part, and of the cgroup's own before them. */
const partsOfCache = [[2], [60_000_001], [100_000_000]];

describe("parseProcStat()", () => {
  it("counts what the hypervisor took as busy, and guests once", () => {
    const stolen = parseProcStat("cpu0 0 0 0 50 0 0 0 50 0 0\n");
    expect(stolen).toMatchObject({ busyTicks: 50, totalTicks: 100 });
    const guest = parseProcStat("cpu0 50 0 0 50 0 0 0 0 50 0\n");
    expect(guest).toMatchObject({ busyTicks: 50, totalTicks: 100 });
  });

  it("counts waiting for disks as idle", () => {
    const read = parseProcStat("cpu0 0 0 0 50 50 0 0 0 0 0\n");
    expect(read).toMatchObject({ busyTicks: 0, totalTicks: 100 });
  });

  it("counts the CPUs that are allowed", () => {
    const read = parseProcStat(procStatText(100, 300), new Set([0, 2]));
    expect(read).toEqual({ busyTicks: 100, totalTicks: 700, usableCount: 2, cpusCount: 4 });
    expect(parseProcStat(procStatText(100, 300), new Set([9]))).toBeUndefined();
  });
});
