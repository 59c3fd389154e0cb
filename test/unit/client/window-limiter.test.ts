import { describe, expect, it } from "vitest";
import {
  createWindowLimiter,
  type RateLimitControl,
  type WindowLimiterOptions,
} from "../../../src/client/window-limiter.js";
import { FakeClock, settlePromises } from "../../support/fake-clock.js";

/** A limiter whose works take 10 ms, and what became of each. */
function rig(options: WindowLimiterOptions = {}) {
  const clock = new FakeClock({ monotonicMs: 0 });
  const limiter = createWindowLimiter({ clock, ...options });
  const controls: RateLimitControl[] = [];
  const refusals: unknown[] = [];
  const send = (): void => {
    const work = (): Promise<void> => new Promise((resolve) => clock.schedule(10, resolve));
    limiter.runRateLimited(work).then(
      ({ control }) => controls.push(control),
      (error: unknown) => refusals.push(error),
    );
  };
  return { clock, limiter, controls, refusals, send };
}

describe("createWindowLimiter()", () => {
  it("refuses work beyond the window, which grows by ten successes in a row", async () => {
    const { clock, limiter, controls, refusals, send } = rig({ windowInitial: 9, windowMax: 10 });
    for (let i = 0; i < 12; i += 1) send();
    await settlePromises();
    expect(refusals).toHaveLength(2);
    expect(refusals[0]).toMatchObject({ admission: "window", reason: "queueFull" });
    await clock.advanceAsync(100, 10);
    expect(controls).toHaveLength(10);
    for (const control of controls) control.success();
    expect(limiter.snapshot()).toEqual({
      windowSize: 10,
      waiting: 0,
      inFlight: 0,
      queueFulls: 2,
      completed: 10,
      backedOff: 0,
      timedOut: 0,
    });
  });

  it.each(["timeout", "backoff"] as const)("shrinks below the place of work by %s", async (how) => {
    const { clock, limiter, controls, send } = rig({ windowInitial: 40 });
    for (let i = 0; i < 41; i += 1) send();
    await settlePromises();
    await clock.advanceAsync(300, 10);
    expect(controls).toHaveLength(30);
    // It came at place 29, behind the one that ran.
    controls[29]?.[how]();
    controls[29]?.[how]();
    expect(limiter.snapshot()).toMatchObject({ windowSize: 19 });
    const { timedOut, backedOff } = limiter.snapshot();
    expect([timedOut, backedOff]).toEqual(how === "timeout" ? [1, 0] : [0, 1]);
  });

  it("drops work at the head whose place is beyond the window, without running it", async () => {
    const { clock, limiter, controls, refusals, send } = rig({ windowInitial: 40 });
    for (let i = 0; i < 41; i += 1) send();
    await settlePromises();
    await clock.advanceAsync(160, 10);
    expect(controls).toHaveLength(16);
    controls.at(-1)?.timeout();
    expect(limiter.snapshot().windowSize).toBe(5);
    // One at place 16 runs; those from there on are beyond 5 and the margin of 10.
    await clock.advanceAsync(10);
    expect(controls).toHaveLength(17);
    expect(refusals).toHaveLength(24);
    expect(limiter.snapshot()).toMatchObject({ queueFulls: 24, waiting: 0, inFlight: 0 });
  });

  it("runs as much at once as it has workers", async () => {
    const { limiter, send } = rig({ workersCount: 3 });
    for (let i = 0; i < 5; i += 1) send();
    await settlePromises();
    expect(limiter.snapshot()).toMatchObject({ inFlight: 3, waiting: 2 });
  });

  it("passes on what work throws, at once or later, and goes on", async () => {
    const { limiter } = rig();
    const error = new Error("no");
    const throws = limiter.runRateLimited(() => {
      throw error;
    });
    await expect(throws).rejects.toBe(error);
    await expect(limiter.runRateLimited(() => Promise.reject(error))).rejects.toBe(error);
    expect(await limiter.runRateLimited(() => 1)).toMatchObject({ value: 1 });
    expect(limiter.snapshot()).toMatchObject({ inFlight: 0, windowSize: 50, completed: 0 });
  });

  it("lets who waits leave by a signal or after a time, uncounted", async () => {
    const { clock, limiter, send } = rig();
    send();
    const controller = new AbortController();
    const waits = limiter.runRateLimited(() => 1, { signal: controller.signal });
    const short = limiter.runRateLimited(() => 1, { timeoutMs: 5 });
    await settlePromises();
    controller.abort("enough");
    await expect(waits).rejects.toBe("enough");
    clock.advance(5);
    await expect(short).rejects.toMatchObject({ reason: "deadline" });
    expect(limiter.snapshot()).toMatchObject({ queueFulls: 0, waiting: 0 });
  });
});
