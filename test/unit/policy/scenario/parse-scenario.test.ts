import { describe, expect, it } from "vitest";
import { parseScenario, type Scenario } from "../../../../src/policy/scenario/parse-scenario.js";

const whole = `
services: [{name: api, workers: 2, serviceTime: 10ms}]
callers: [{name: web, rate: 10}]
`;

function problemsOf(text: string): readonly string[] {
  const parsed = parseScenario({ file: "s.yaml", text });
  if (parsed.kind === "scenario") return [];
  return parsed.problems.map(({ line, id, message, suggestion }) => {
    return `${line} ${id} ${message}${suggestion === undefined ? "" : ` -> ${suggestion}`}`;
  });
}

function scenarioOf(text: string): Scenario {
  const parsed = parseScenario({ file: "s.yaml", text });
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  return parsed.scenario;
}

describe("parseScenario()", () => {
  it("fills in what is left out", () => {
    const { durationMs, warmUpMs, seed, callers, fleet, services } = scenarioOf(whole);
    expect([durationMs, warmUpMs, seed]).toEqual([60_000, 0, 1]);
    expect(services[0]?.serviceTime).toEqual({ kind: "exponential", meanMs: 10 });
    expect(callers[0]).toMatchObject({ service: "api", deadline: 1_000, arrivals: "poisson" });
    expect(fleet).toMatchObject({ envoys: 2, headgates: 1 });
  });

  it.each([
    ["nothing", "", "1 HG110 the file contains no scenario"],
    [
      "no caller",
      "services: [{name: a, workers: 1, serviceTime: 1s}]",
      '1 HG125 "callers" is missing',
    ],
    [
      "an unknown name",
      `${whole}durations: 5s`,
      '4 HG120 "durations" is unknown in a scenario -> duration',
    ],
    ["a negative rate", whole.replace("rate: 10", "rate: -1"), '3 HG141 "-1" is out of range'],
    ["no rate at all", whole.replace("rate: 10", "rate: {}"), "3 HG125 the rate has no kind"],
    ["an endless run", `${whole}duration: 400d`, '4 HG141 "400d" is out of range'],
    [
      "a warm-up without an end",
      `${whole}warmUp: 60s`,
      '4 HG240 "warmUp" is not shorter than "duration"',
    ],
    [
      "too much work",
      whole.replace("rate: 10", "rate: 1000000"),
      "3 HG160 about 60,000,000 requests are too many",
    ],
    [
      "an unknown service",
      whole.replace("rate: 10", "rate: 10, service: apo"),
      '3 HG133 "apo" is not a service of this scenario -> api',
    ],
    [
      "one name for two",
      whole.replace("name: web", "name: api"),
      '3 HG133 the name "api" is taken',
    ],
    [
      "classes of more than all",
      whole.replace("rate: 10", "rate: 10, classes: {critical: 0.7, low: 0.4}"),
      "3 HG141 the shares of the classes add up to 1.1",
    ],
    [
      "steps that go back",
      whole.replace("rate: 10", "rate: {steps: [{at: 5s, rate: 1}, {at: 1s, rate: 2}]}"),
      "3 HG240 the steps are not in the order of their times",
    ],
    [
      "a caller who leaves early",
      whole.replace("rate: 10", "rate: 10, patience: 1ms"),
      '3 HG240 "patience" is shorter than "deadline"',
    ],
    ["an event of nothing", `${whole}events: [{at: 1s}]`, "4 HG125 the event changes nothing"],
    [
      "an event at a replica that is not there",
      `${whole}events: [{at: 1s, clock: {headgate: 2, ahead: 1s}}]`,
      "4 HG141 there is no headgate 2",
    ],
    [
      "the loss of a zone that is not there",
      `${whole}fleet: {zones: 2}\nevents: [{at: 1s, zone: {lost: 3}}]`,
      "5 HG141 there is no zone 3",
    ],
    [
      "a deploy for some time",
      `${whole}events: [{at: 1s, for: 5s, deploy: {of: envoys}}]`,
      '4 HG126 "deploy" and "for" exclude each other',
    ],
    [
      "a deploy of an unknown service",
      `${whole}events: [{at: 1s, deploy: {of: workers, service: apo}}]`,
      '4 HG133 "apo" is not a service of this scenario -> api',
    ],
    [
      "an objective of no metric",
      `${whole}objectives: [godput >= 0.9]`,
      '4 HG133 "godput" is not a metric -> goodput',
    ],
    [
      "an objective of a part that is empty",
      `${whole}objectives: [{expect: goodput >= 0.9, from: 50s, to: 40s}]`,
      "4 HG240 the part of this objective is empty, or beyond the end",
    ],
    [
      "a second policy in the file",
      `${whole}---\n${whole}`,
      "4 HG106 a file holds one YAML document",
    ],
  ])("refuses %s, with the place", (_, text, problem) => {
    const [first] = problemsOf(text);
    // What the YAML reader says of several documents is its own.
    expect(first?.slice(0, 8)).toBe(problem.slice(0, 8));
    if (!problem.includes("HG106")) expect(first).toBe(problem);
  });

  it("refuses a YAML bomb without expanding it", () => {
    const levels = Array.from({ length: 30 }, (_, i) => {
      const parts = i === 0 ? "x" : `*a${i - 1}, *a${i - 1}, *a${i - 1}, *a${i - 1}`;
      return `a${i}: &a${i} [${parts}]`;
    });
    expect(problemsOf(levels.join("\n"))).not.toEqual([]);
  });

  it("reads rates as points between which they change evenly", () => {
    const rateOf = (rate: string): unknown =>
      scenarioOf(whole.replace("10}", `${rate}}`)).callers[0]?.rate;
    expect(rateOf("{ramp: {from: 1, to: 5, start: 2s, end: 4s}}")).toMatchObject({
      points: [
        { atMs: 2_000, perSecond: 1 },
        { atMs: 4_000, perSecond: 5 },
      ],
    });
    expect(rateOf("{flash: {base: 1, peak: 9, at: 5s, rise: 1s, hold: 2s}}")).toMatchObject({
      points: [
        { atMs: 5_000, perSecond: 1 },
        { atMs: 6_000, perSecond: 9 },
        { atMs: 8_000, perSecond: 9 },
        { atMs: 8_000, perSecond: 1 },
      ],
    });
    const daily = rateOf("{daily: {low: 0, high: 10, period: 60s, peak: 15s}}");
    expect(daily).toMatchObject({ periodMs: 60_000 });
    expect(rateOf("{trace: {file: rates.txt}}")).toEqual({
      kind: "trace",
      file: "rates.txt",
      stepMs: 1_000,
    });
  });
});
