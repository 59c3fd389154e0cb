import { describe, expect, it } from "vitest";
import { PidController, pidStepSecondsMax } from "../../../../src/core/concurrency/pid.js";

describe("PidController", () => {
  it.each([
    { gain: "kp", kp: 1, kiPerSecond: 0, kdSeconds: 0, levels: [0.5, 0.4, 0.4] },
    { gain: "ki", kp: 0, kiPerSecond: 0.1, kdSeconds: 0, levels: [0.5, 0.45, 0.4] },
    // The error bends at its first step down, and back again where it stays.
    { gain: "kd", kp: 0, kiPerSecond: 0, kdSeconds: 10, levels: [0.5, 0.3, 0.5] },
    { gain: "all", kp: 1, kiPerSecond: 0.1, kdSeconds: 10, levels: [0.5, 0.15, 0.3] },
  ])("moves by $gain as the formula has it", ({ kp, kiPerSecond, kdSeconds, levels }) => {
    const pid = new PidController({ kp, kiPerSecond, kdSeconds }, 0.5);
    const errors = [0, -0.1, -0.1];
    const moved = errors.map((error, i) => pid.step(error, i * 5_000));
    levels.forEach((level, i) => {
      expect(moved[i]).toBeCloseTo(level, 10);
    });
  });

  it("stays within 0 and 1, and comes back from there at once", () => {
    const pid = new PidController({ kp: 0, kiPerSecond: 1, kdSeconds: 0 }, 0.5);
    pid.step(-1, 0);
    expect([10, 20, 30].map((seconds) => pid.step(-1, seconds * 1_000))).toEqual([0, 0, 0]);
    expect(pid.step(0.25, 31_000)).toBe(0.25);
    expect([40, 50].map((seconds) => pid.step(1, seconds * 1_000))).toEqual([1, 1]);
  });

  it("counts a gap as a minute at most, and time that stands still as none", () => {
    const settings = { kp: 0, kiPerSecond: 0.001, kdSeconds: 1 };
    const pid = new PidController(settings, 1);
    pid.step(-1, 0);
    const after = pid.step(-1, 3_600_000);
    expect(after).toBeCloseTo(1 - 0.001 * pidStepSecondsMax, 10);
    expect(pid.step(-0.5, 3_600_000)).toBe(after);
  });
});
