import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import type { StatsChoice } from "../../../../src/app/config/stats-choice.js";
import { mogrifiersMax, tagLengthMax, tagsMax } from "../../../../src/app/options/stats-options.js";

type Environment = Readonly<Record<string, string>>;

function statsOf(env: Environment): StatsChoice {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config.stats;
}

function problemsOf(env: Environment): readonly string[] {
  const loaded = loadConfig({ flags: {}, env });
  return loaded.kind === "problems" ? loaded.problems : [];
}

describe("chooseStats()", () => {
  it.each<[Environment, string]>([
    [{}, "nothing"],
    [{ USE_STATSD: "false", STATSD_HOST: "statsd" }, "nothing"],
    [{ STATSD_HOST: "statsd" }, "statsd"],
    [{ USE_STATSD: "true" }, "statsd"],
    [{ USE_DOG_STATSD: "true" }, "dogstatsd"],
    [{ USE_DOG_STATSD: "true", STATSD_HOST: "statsd" }, "dogstatsd"],
    [{ USE_PROMETHEUS: "true" }, "prometheus"],
    [{ USE_PROMETHEUS: "true", STATSD_HOST: "statsd" }, "prometheus"],
    [{ USE_PROMETHEUS: "true", USE_STATSD: "false" }, "prometheus"],
    [{ USE_STATSD: "true", STATSD_HOST: "statsd", DISABLE_STATS: "true" }, "nothing"],
    [{ USE_PROMETHEUS: "true", DISABLE_STATS: "true" }, "nothing"],
  ])("with %j tells %s", (env, reported) => {
    const { statsd, prometheus } = statsOf(env);
    expect(statsd?.kind ?? (prometheus === undefined ? "nothing" : "prometheus")).toBe(reported);
  });

  it.each<Environment>([
    { USE_STATSD: "true", USE_DOG_STATSD: "true" },
    { USE_STATSD: "true", USE_PROMETHEUS: "true" },
    { USE_DOG_STATSD: "true", USE_PROMETHEUS: "true" },
  ])("refuses two at once: %j", (env) => {
    expect(problemsOf(env)).toEqual([
      "USE_STATSD, USE_DOG_STATSD, USE_PROMETHEUS: only one of them may be true",
    ]);
  });

  it("sends to localhost over TCP each ten seconds unless told otherwise", () => {
    expect(statsOf({ USE_STATSD: "true" }).statsd).toEqual({
      kind: "statsd",
      protocol: "tcp",
      host: "localhost",
      port: 8125,
      flushMs: 10_000,
      tags: [],
    });
    const env = { STATSD_HOST: "s", STATSD_PORT: "1", STATSD_PROTOCOL: "udp" };
    const more = { STATS_FLUSH_INTERVAL: "500ms", EXTRA_TAGS: "a:b, c : d:e" };
    expect(statsOf({ ...env, ...more }).statsd).toEqual({
      kind: "statsd",
      protocol: "udp",
      host: "s",
      port: 1,
      flushMs: 500,
      tags: [
        { name: "a", value: "b" },
        { name: "c", value: "d:e" },
      ],
    });
  });

  it("serves the reference's series where it is told", () => {
    expect(statsOf({ USE_PROMETHEUS: "true" }).prometheus).toEqual({
      address: { host: "0.0.0.0", port: 9090 },
      path: "/metrics",
      isMilliseconds: false,
      tags: [],
    });
    const env = { USE_PROMETHEUS: "true", PROMETHEUS_PATH: "/stats/all" };
    const times = { PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: "true" };
    expect(statsOf({ ...env, ...times, PROMETHEUS_ADDR: "[::1]:1" }).prometheus).toMatchObject({
      address: { host: "::1", port: 1 },
      path: "/stats/all",
      isMilliseconds: true,
    });
  });

  it("reads the rules that make tags, in their order", () => {
    const { statsd } = statsOf({
      USE_DOG_STATSD: "true",
      USE_DOG_STATSD_MOGRIFIERS: "hits, other",
      DOG_STATSD_MOGRIFIER_HITS_PATTERN: "^a(.*)$",
      DOG_STATSD_MOGRIFIER_HITS_NAME: "a",
      DOG_STATSD_MOGRIFIER_HITS_TAGS: "rest:$1",
      DOG_STATSD_MOGRIFIER_OTHER_PATTERN: "b",
      DOG_STATSD_MOGRIFIER_OTHER_NAME: "c",
    });
    expect(statsd).toMatchObject({
      kind: "dogstatsd",
      mogrifiers: [
        { name: "a", tags: [{ name: "rest", value: "$1" }] },
        { name: "c", tags: [] },
      ],
    });
  });

  it("tells everything that is wrong with those rules, without their texts", () => {
    const problems = problemsOf({
      USE_DOG_STATSD: "true",
      USE_DOG_STATSD_MOGRIFIERS: "A,B",
      DOG_STATSD_MOGRIFIER_A_PATTERN: "(hunter2",
      DOG_STATSD_MOGRIFIER_A_NAME: "x",
      DOG_STATSD_MOGRIFIER_B_PATTERN: "x",
      DOG_STATSD_MOGRIFIER_B_NAME: "x",
      DOG_STATSD_MOGRIFIER_B_TAGS: "hunter2",
    });
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual([
      "DOG_STATSD_MOGRIFIER_A_PATTERN",
      "DOG_STATSD_MOGRIFIER_B_TAGS",
    ]);
    expect(problems.join()).not.toContain("hunter2");
  });
});

describe("statsOptionRows", () => {
  it.each<[string, string]>([
    ["PROMETHEUS_ADDR", "9090"],
    ["PROMETHEUS_ADDR", "host:65536"],
    ["PROMETHEUS_ADDR", "a b:1"],
    ["PROMETHEUS_PATH", "metrics"],
    ["PROMETHEUS_PATH", "/a?b"],
    ["STATSD_PORT", "0"],
    ["STATSD_PROTOCOL", "unix"],
    ["STATS_FLUSH_INTERVAL", "99ms"],
    ["STATS_FLUSH_INTERVAL", "2h"],
    ["EXTRA_TAGS", "a"],
    ["EXTRA_TAGS", "a:"],
    ["EXTRA_TAGS", ":b"],
    ["EXTRA_TAGS", `a:${"x".repeat(tagLengthMax - 1)}`],
    ["EXTRA_TAGS", Array.from({ length: tagsMax + 1 }, (_, i) => `t${i}:x`).join(",")],
    ["USE_DOG_STATSD_MOGRIFIERS", "a b"],
    [
      "USE_DOG_STATSD_MOGRIFIERS",
      Array(mogrifiersMax + 1)
        .fill("a")
        .join(","),
    ],
  ])("refuse %s=%s", (name, text) => {
    const [problem, ...others] = problemsOf({ [name]: text });
    expect(problem).toMatch(new RegExp(`^${name} must `));
    expect(others).toEqual([]);
  });

  it("take as many tags and rules as they may", () => {
    const tags = Array.from({ length: tagsMax }, (_, i) => `t${i}:x`).join(",");
    const long = `a:${"x".repeat(tagLengthMax - 2)}`;
    const names = Array(mogrifiersMax).fill("a").join(",");
    expect(problemsOf({ EXTRA_TAGS: tags, USE_DOG_STATSD_MOGRIFIERS: names })).toEqual([]);
    expect(problemsOf({ EXTRA_TAGS: long })).toEqual([]);
  });
});
