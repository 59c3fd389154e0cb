import { describe, expect, it } from "vitest";
import { LoopActivity } from "../../../../src/app/base/loop-activity.js";
import { createProcessMetrics } from "../../../../src/app/base/metrics.js";
import { FakeClock } from "../../../support/fake-clock.js";

/** A process that uses as much of a core as a test says. */
function start() {
  const clock = new FakeClock();
  const loop = { usedRatio: 0.001 };
  let usedMs = 0;
  const activity = new LoopActivity({ clock, usedMs: () => usedMs });
  const askFor = (durationMs: number): boolean => {
    for (let passedMs = 0; passedMs < durationMs; passedMs += 20) {
      clock.advance(20);
      usedMs += 20 * loop.usedRatio;
      activity.isIdle();
    }
    return activity.isIdle();
  };
  return { loop, activity, askFor };
}

describe("LoopActivity", () => {
  it("is idle when the loop has had next to nothing to do for five seconds", () => {
    const { activity, askFor } = start();
    expect(activity.isIdle()).toBe(false);
    expect(askFor(4_900)).toBe(false);
    expect(askFor(600)).toBe(true);
    activity.close();
  });

  it("is awake as soon as there is something to do, for five seconds at least", () => {
    const { loop, activity, askFor } = start();
    askFor(6_000);
    loop.usedRatio = 0.1;
    expect(askFor(220)).toBe(false);
    loop.usedRatio = 0.001;
    expect(askFor(4_700)).toBe(false);
    expect(askFor(500)).toBe(true);
    activity.close();
  });

  it("tells a delay of none while it idles, under the names of the library", async () => {
    const { activity, askFor } = start();
    askFor(6_000);
    const ours = await createProcessMetrics(activity.metrics).render();
    const theirs = await createProcessMetrics().render();
    const namesOf = (text: string) =>
      [...text.matchAll(/^# TYPE (\S+) \S+$/gm)].map(([line]) => line).toSorted();
    expect(namesOf(ours)).toEqual(namesOf(theirs));
    const again = await createProcessMetrics(activity.metrics).render();
    expect(again).toContain("nodejs_eventloop_lag_p99_seconds 0.01\n");
    activity.close();
  });
});
