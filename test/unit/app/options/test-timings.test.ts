import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import { defaultTimings, parseTimings } from "../../../../src/app/options/test-timings.js";
import { timingsEnv, trueTimes } from "../../../support/true-times.js";

describe("parseTimings()", () => {
  it.each([[undefined], [""]])("answers the defaults for %j", (text) => {
    expect(parseTimings(text)).toEqual({ kind: "timings", timings: defaultTimings });
  });

  it("changes what is named, and nothing else", () => {
    expect(parseTimings("leaderLeaseMs=600,replicaLeaseMs=0")).toEqual({
      kind: "timings",
      timings: { ...defaultTimings, leaderLeaseMs: 600, replicaLeaseMs: 0 },
    });
  });

  it.each([
    ["leaderLeaseMs"],
    ["leaderLeaseMs=0.5"],
    ["leaderLeaseMs=3600001"],
    ["secretName=1"],
    ["toString=1"],
    ["leaderLeaseMs=1,"],
  ])("refuses %j without repeating it", (text) => {
    const parsed = parseTimings(text);
    expect(parsed.kind).toBe("problem");
    expect(parsed).not.toMatchObject({ message: expect.stringContaining("secret") });
  });
});

describe("loadConfig() with HEADGATE_TEST_TIMINGS", () => {
  it("has the timings, and tells at the start that they are not the documented ones", () => {
    const loaded = loadConfig({ flags: {}, env: { HEADGATE_TEST_TIMINGS: "leaderLeaseMs=600" } });
    expect(loaded).toMatchObject({
      kind: "config",
      config: {
        timings: { leaderLeaseMs: 600 },
        notices: [expect.stringContaining("which is for tests only")],
      },
    });
  });

  it("says nothing of them otherwise, and never suggests them", () => {
    const plain = loadConfig({ flags: {}, env: {} });
    expect(plain).toMatchObject({ config: { timings: defaultTimings, notices: [] } });
    const typo = loadConfig({ flags: {}, env: { HEADGATE_TEST_TIMING: "1" } });
    expect(JSON.stringify(typo)).not.toContain("TEST_TIMINGS");
  });

  it("refuses a wrong one with its name", () => {
    expect(loadConfig({ flags: {}, env: { HEADGATE_TEST_TIMINGS: "x" } })).toMatchObject({
      kind: "problems",
      problems: [expect.stringContaining("HEADGATE_TEST_TIMINGS must be")],
    });
  });
});

describe("timingsEnv()", () => {
  it("sets the times that it names, and none where tests run at the true ones", () => {
    const short = { leaderLeaseMs: 600, leaderHeartbeatMs: 50 };
    const timings = trueTimes ? defaultTimings : { ...defaultTimings, ...short };
    const text = timingsEnv(short)["HEADGATE_TEST_TIMINGS"];
    expect(parseTimings(text)).toEqual({ kind: "timings", timings });
  });
});
