import { describe, expect, it } from "vitest";
import { diagnose } from "../../../src/doctor/diagnose.js";
import { dumpCharsMax, readConfigDump } from "../../../src/doctor/envoy-dump.js";
import { readStats, statsCharsMax } from "../../../src/doctor/envoy-stats.js";
import { metricsCharsMax, readHeadgate } from "../../../src/doctor/headgate-view.js";
import { type Dumped, doctorInputOf, generatedDump, rightStats } from "../../support/doctor.js";
import { FakeRandom } from "../../support/fake-random.js";
import { seedsFrom } from "../../support/seeds.js";

const firstSeed = 20_261_121;

/** Values that stand where Envoy would have something else. */
const strangers: readonly unknown[] = [
  undefined,
  null,
  true,
  "",
  "\u001b[31mred\u202e",
  "18446744073709551615",
  "9".repeat(400),
  -1,
  1e308,
  [],
  {},
  [[[[]]]],
  { "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", static_clusters: {} },
  JSON.parse('{"__proto__": {"name": "x"}, "constructor": 1, "hasOwnProperty": 2}'),
];

class Chance {
  readonly #random: FakeRandom;

  constructor(caseSeed: number) {
    this.#random = new FakeRandom(caseSeed);
  }

  below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  of<T>(values: readonly T[]): T | undefined {
    return values[this.below(values.length)];
  }
}

/** Puts strangers into a tree, or takes parts out of it. */
function mutate(tree: Dumped, chance: Chance): void {
  let at: object = tree;
  for (let depth = chance.below(16); depth > 0; depth -= 1) {
    const inner: unknown = Reflect.get(at, chance.of(Object.keys(at)) ?? "");
    if (typeof inner !== "object" || inner === null) break;
    at = inner;
  }
  const name = chance.of(Object.keys(at));
  if (name === undefined) return;
  const other = chance.of(Object.keys(at)) ?? name;
  const value: unknown = chance.below(3) === 0 ? Reflect.get(at, other) : chance.of(strangers);
  // A copy: the next change must not reach the strangers themselves, or make a circle.
  Reflect.set(at, name, structuredClone(value));
}

function randomTree(chance: Chance, depth = 0): unknown {
  const kind = chance.below(depth > 5 ? 3 : 5);
  if (kind < 3) return structuredClone(chance.of(strangers));
  const size = chance.below(5);
  const items = Array.from({ length: size }, () => randomTree(chance, depth + 1));
  if (kind === 3) return items;
  const names = ["configs", "@type", "bootstrap", "name", "static_listeners", "cluster", "routes"];
  return Object.fromEntries(items.map((item) => [chance.of(names) ?? "", item]));
}

const right = doctorInputOf();

describe("the doctor, given what no Envoy says", () => {
  it("never throws for a dump with strangers in it, and shows nothing that acts", () => {
    const whole = JSON.stringify(generatedDump());
    for (const seed of seedsFrom(firstSeed, 200)) {
      const chance = new Chance(seed);
      const tree: Dumped = JSON.parse(whole);
      for (let count = 1 + chance.below(6); count > 0; count -= 1) mutate(tree, chance);
      const read = readConfigDump(JSON.stringify(tree));
      if (read.kind === "unreadable") continue;
      const looks = diagnose({ ...right, dump: read.dump });
      const shown = looks.map(({ seen }) => seen).join();
      expect(shown, `seed ${seed}`).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });

  it("never throws for random JSON, as a dump or as statistics", () => {
    for (const seed of seedsFrom(firstSeed, 500)) {
      const chance = new Chance(seed);
      const text = JSON.stringify(randomTree(chance)) ?? "";
      const cut = text.slice(0, chance.below(2) === 0 ? text.length : chance.below(text.length));
      const [dump, stats] = [readConfigDump(cut), readStats(cut)];
      readHeadgate({ readiness: cut, metrics: cut });
      if (dump.kind === "dump") diagnose({ ...right, dump: dump.dump });
      if (stats.kind === "stats") diagnose({ ...right, stats: [stats.stats] });
    }
  });

  it("reads names of statistics in linear time, however strange they are", () => {
    const name = `cluster.${".ratelimit.".repeat(200_000)}x`;
    const stats = new Map([...Object.entries(rightStats), [name, 1] as const]);
    expect(diagnose(doctorInputOf({ stats: [stats] })).length).toBeGreaterThan(10);
  });

  it("refuses texts beyond its bounds", () => {
    const long = " ".repeat(dumpCharsMax + 1);
    expect(readConfigDump(long)).toMatchObject({ kind: "unreadable" });
    expect(statsCharsMax).toBe(dumpCharsMax);
    expect(readStats(long)).toMatchObject({ kind: "unreadable" });
  });
});

describe("readConfigDump()", () => {
  it.each([
    ["{", "it is not JSON"],
    ['{"configs": [\n  {"a" 1}]}', "it is not JSON: line 2, column 8"],
    ["", "it is not JSON"],
    ["null", "it is empty"],
    ["{}", "configs is missing"],
    ['{"configs": [{"@type": "x"}]}', "configs is missing"],
    ['{"configs": {"0": 1}}', "configs is missing"],
  ])("says what is wrong with %j", (text, why) => {
    const read = readConfigDump(text);
    expect(read).toMatchObject({ kind: "unreadable", why: expect.stringContaining(why) });
  });
});

describe("readStats()", () => {
  it("reads JSON and lines, also names with colons", () => {
    const json = '{"stats": [{"name": "a.b", "value": 3}, {"name": "c", "value": "7"}, {"x": 1}]}';
    expect(readStats(json)).toEqual({
      kind: "stats",
      stats: new Map([
        ["a.b", 3],
        ["c", 7],
      ]),
    });
    const lines = 'listener.[::1]: 80.x: 4\nruntime.version_text: "1.2"\nh: P0(nan,0)\n';
    expect(readStats(lines)).toEqual({
      kind: "stats",
      stats: new Map([["listener.[::1]: 80.x", 4]]),
    });
  });

  it("says how to get statistics where there are none", () => {
    const said = { kind: "unreadable", why: expect.stringContaining("/stats?format=json") };
    expect(readStats("envoy_a 1\n")).toMatchObject(said);
  });
});

describe("readHeadgate()", () => {
  it("reads metrics up to a bound", () => {
    const metrics = `${"#".repeat(metricsCharsMax)}\nheadgate_requests_total 5`;
    expect(readHeadgate({ readiness: "{}", metrics }).totals.size).toBe(0);
  });

  it("takes any number of buckets", () => {
    const line = 'headgate_decision_duration_seconds_bucket{le="1"} 100\n';
    const view = readHeadgate({ readiness: "", metrics: line.repeat(500_000) });
    expect(view.decisionMsP99).toBe(1_000);
  });

  it("sums metrics up over their labels, and finds what 99 of 100 decisions took", () => {
    const view = readHeadgate({
      readiness: '{"status":"ready","policy":{"version":"abc","lastReloadProblem":"x"}}',
      metrics: [
        "# HELP x y",
        'headgate_requests_total{code="ok"} 5',
        'headgate_requests_total{code="over_limit"} 2',
        'headgate_build_info{version="1.2.3"} 1',
        'headgate_decision_duration_seconds_bucket{le="0.001"} 98',
        'headgate_decision_duration_seconds_bucket{le="0.005"} 99',
        'headgate_decision_duration_seconds_bucket{le="+Inf"} 100',
        "broken line",
      ].join("\n"),
    });
    expect(view).toMatchObject({
      status: "ready",
      policyVersion: "abc",
      lastReloadProblem: true,
      version: "1.2.3",
      decisionMsP99: 5,
    });
    expect(view.totals.get("headgate_requests_total")).toBe(7);
  });

  it("tells no hundredth of the first decisions, which wait for cold code", () => {
    const bucket = (le: string, count: number) =>
      `headgate_decision_duration_seconds_bucket{le="${le}"} ${count}`;
    const metrics = [bucket("0.001", 98), bucket("0.05", 99), bucket("+Inf", 99)].join("\n");
    expect(readHeadgate({ readiness: "", metrics }).decisionMsP99).toBeUndefined();
  });
});
