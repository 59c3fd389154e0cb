import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { createAdmission } from "../../../src/client/create-admission.js";
import { CallRig } from "../../support/call-rig.js";

const one = { concurrency: { law: "fixed", initial: 1 } } as const;
const never = Number.POSITIVE_INFINITY;

describe("createAdmission()", () => {
  it("returns what work resolves with, and rejects with what it throws", async () => {
    const admission = createAdmission({ name: "shop", retry: {} });
    expect(await admission.run(async () => "value")).toBe("value");
    const error = new Error("no");
    const rejects = admission.run(() => Promise.reject(error));
    const throws = admission.run(() => {
      throw error;
    });
    await expect(rejects).rejects.toBe(error);
    await expect(throws).rejects.toBe(error);
    expect(admission.snapshot()).toMatchObject({
      callsCount: 3,
      attemptsCount: 3,
      inFlight: 0,
      outcomes: { served: 1, failed: 2 },
    });
  });

  it("refuses what finds no permit, or waits for one in a queue by priority", async () => {
    const without = new CallRig(one);
    without.call("a", [{ ms: 10 }]);
    without.call("b", [{ ms: 10 }]);
    await without.pass(10);
    expect(Object.fromEntries(without.results)).toEqual({ a: "served 1", b: "concurrency" });

    const rig = new CallRig({ ...one, queue: { sizeMax: 2, waitMsMax: 25, codel: false } });
    rig.call("a", [{ ms: 10 }]);
    rig.call("low", [{ ms: 10 }], { priority: "low" });
    rig.call("normal", [{ ms: 10 }]);
    rig.call("critical", [{ ms: 30 }], { priority: "critical" });
    await rig.pass(0);
    expect(rig.result("low")).toBe("queueFull");
    await rig.pass(60);
    expect(Object.fromEntries(rig.results)).toEqual({
      a: "served 1",
      low: "queueFull",
      critical: "served 1",
      normal: "queueTimeout",
    });
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 0, waiting: 0 });
    expect(rig.clock.timerCount).toBe(0);
  });

  it("leaves the queue when a call is given up, and removes its listener", async () => {
    const rig = new CallRig({ ...one, queue: {} });
    const controller = new AbortController();
    const { signal } = controller;
    rig.call("a", [{ ms: 10 }], { signal });
    rig.call("b", [{ ms: 10 }], { signal });
    rig.call("c", [{ ms: 10 }]);
    await rig.pass(5);
    expect(getEventListeners(signal, "abort")).toHaveLength(2);
    controller.abort("enough");
    await rig.pass(20);
    expect(Object.fromEntries(rig.results)).toEqual({ a: "enough", b: "enough", c: "served 1" });
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(rig.begun[0]?.attempt.signal.reason).toBe("enough");
    expect(rig.admission.snapshot().outcomes).toMatchObject({ served: 1, cancelled: 1 });
    rig.call("d", [{ ms: 1 }], { signal });
    await rig.pass(1);
    expect(rig.result("d")).toBe("enough");
    expect(rig.begun).toHaveLength(2);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("does not begin an attempt with less than its margin, also after a wait", async () => {
    const rig = new CallRig({ ...one, queue: {}, deadline: { remainingMsMin: 5 } });
    rig.call("short", [{ ms: 1 }], { timeoutMs: 4.9 });
    rig.call("a", [{ ms: 20 }], { timeoutMs: 25 });
    rig.call("b", [{ ms: 1 }], { timeoutMs: 24 });
    rig.call("c", [{ ms: 1 }], { timeoutMs: 26 });
    await rig.pass(30);
    expect(Object.fromEntries(rig.results)).toEqual({
      short: "deadline",
      a: "served 1",
      b: "deadline",
      c: "served 1",
    });
    expect(rig.begun.map(({ remainingMs }) => remainingMs)).toEqual([25, 6]);
  });

  it("leaves work behind that ignores its signal, and holds its permit for 30 s", async () => {
    const rig = new CallRig(one);
    rig.call("slow", [{ ms: 500, ignoresSignal: true }], { timeoutMs: 100 });
    await rig.pass(99);
    expect(rig.result("slow")).toBeUndefined();
    await rig.pass(1);
    expect(rig.result("slow")).toBe("TimeoutError");
    expect(rig.begun[0]?.attempt.signal.reason).toMatchObject({ name: "TimeoutError" });
    expect(rig.admission.snapshot().inFlight).toBe(1);
    await rig.pass(400);
    expect(rig.admission.snapshot().inFlight).toBe(0);

    rig.call("stuck", [{ ms: never, ignoresSignal: true }], { timeoutMs: 100 });
    await rig.pass(30_099, 1_000);
    expect(rig.admission.snapshot().inFlight).toBe(1);
    await rig.pass(1);
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 0, outcomes: { overloaded: 2 } });
    expect(rig.clock.timerCount).toBe(0);
  });

  it("leaves no timer behind for work that ends after its call was given up", async () => {
    const rig = new CallRig(one);
    const controller = new AbortController();
    const options = { signal: controller.signal, timeoutMs: 1_000 };
    rig.call("a", [{ ms: 100, ignoresSignal: true }], options);
    await rig.pass(10);
    controller.abort("enough");
    await rig.pass(90);
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 0, outcomes: { cancelled: 1 } });
    expect(rig.clock.timerCount).toBe(0);
  });

  it("teaches the law of a call that is out of time at once", async () => {
    const rig = new CallRig({ concurrency: { law: "aimd", initial: 10 } });
    rig.call("a", [{ ms: 500, ignoresSignal: true }], { timeoutMs: 100 });
    await rig.pass(100);
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 1, limit: 5 });
  });

  it("holds a permit for as long as an attempt asks, and can be given up until then", async () => {
    const rig = new CallRig(one);
    const controller = new AbortController();
    rig.call("a", [{ ms: 10, holdMs: 50 }], { signal: controller.signal });
    await rig.pass(10);
    expect(rig.result("a")).toBe("served 1");
    rig.call("b", [{ ms: 1 }]);
    await rig.pass(0);
    expect(rig.result("b")).toBe("concurrency");
    controller.abort("enough");
    expect(rig.begun[0]?.attempt.signal.reason).toBe("enough");
    await rig.pass(50);
    expect(rig.admission.snapshot().inFlight).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    expect(() => rig.begun[0]?.attempt.holdUntil(Promise.resolve())).toThrow("once");
    expect(rig.clock.timerCount).toBe(0);
  });

  it("aborts what is still read when the call's time is over", async () => {
    const rig = new CallRig(one);
    rig.call("a", [{ ms: 10, holdMs: 60_000 }], { timeoutMs: 100 });
    await rig.pass(99);
    expect(rig.begun[0]?.attempt.signal.aborted).toBe(false);
    await rig.pass(1);
    expect(rig.begun[0]?.attempt.signal.reason).toMatchObject({ name: "TimeoutError" });
    await rig.pass(29_999, 1_000);
    expect(rig.admission.snapshot().inFlight).toBe(1);
    await rig.pass(1);
    expect(rig.admission.snapshot().inFlight).toBe(0);
  });

  it("opens its breaker for a service that fails, and says when probes pass", async () => {
    const rig = new CallRig({ breaker: { callsMin: 2, openMs: 1_000, probesCount: 1 } });
    for (const name of ["a", "b"]) rig.call(name, [{ ms: 1, kind: "failed" }]);
    await rig.pass(1);
    expect(rig.admission.snapshot().breaker).toBe("open");
    await rig.pass(400);
    const refused = rig.admission.run(async () => 1);
    await expect(refused).rejects.toMatchObject({ reason: "breakerOpen", retryAfterMs: 600 });
    await rig.pass(600);
    rig.call("probe", [{ ms: 5 }]);
    rig.call("second", [{ ms: 5 }]);
    await rig.pass(5);
    expect([rig.result("probe"), rig.result("second")]).toEqual(["served 1", "breakerOpen"]);
    expect(rig.admission.snapshot().breaker).toBe("closed");
  });

  it("refuses who waits for a permit when the breaker opens", async () => {
    const rig = new CallRig({ ...one, queue: {}, breaker: { callsMin: 1, openMs: 100 } });
    rig.call("a", [{ ms: 10, kind: "failed" }]);
    rig.call("b", [{ ms: 10 }]);
    await rig.pass(10);
    expect(Object.fromEntries(rig.results)).toEqual({ a: "failed 1", b: "breakerOpen" });
    expect(rig.admission.snapshot().inFlight).toBe(0);
  });

  describe("gives the place of a probe back", () => {
    const breaker = { callsMin: 1, openMs: 100, probesCount: 1 };

    /** A breaker that is half-open, while what made it open still holds the only permit. */
    async function halfOpen(more: ConstructorParameters<typeof CallRig>[0]): Promise<CallRig> {
      const rig = new CallRig({ ...one, breaker, ...more });
      rig.call("fails", [{ ms: 0, kind: "failed", holdMs: 130 }]);
      await rig.pass(110);
      expect(rig.admission.snapshot()).toMatchObject({ breaker: "halfOpen", inFlight: 1 });
      return rig;
    }

    /** A probe is let through once the permit is free. */
    async function expectProbe(rig: CallRig): Promise<void> {
      await rig.pass(25);
      rig.call("probe", [{ ms: 1 }]);
      await rig.pass(1);
      expect(rig.result("probe")).toBe("served 1");
    }

    it("that found no permit", async () => {
      const rig = await halfOpen({});
      rig.call("a", [{ ms: 1 }]);
      await expectProbe(rig);
      expect(rig.result("a")).toBe("concurrency");
    });

    it("that waited too long for one", async () => {
      const rig = await halfOpen({ queue: { waitMsMax: 10 } });
      rig.call("a", [{ ms: 1 }]);
      await expectProbe(rig);
      expect(rig.result("a")).toBe("queueTimeout");
    });

    it("that was given up while it waited", async () => {
      const rig = await halfOpen({ queue: {} });
      const controller = new AbortController();
      rig.call("a", [{ ms: 1 }], { signal: controller.signal });
      await rig.pass(0);
      controller.abort("enough");
      await expectProbe(rig);
      expect(rig.result("a")).toBe("enough");
    });

    it("that the throttle refused", async () => {
      const rig = new CallRig({ throttle: {}, breaker: { ...breaker, callsMin: 100 } });
      const low = { priority: "low" } as const;
      for (let i = 0; i < 100; i += 1) rig.call(`${i}`, [{ ms: 0, kind: "overloaded" }], low);
      await rig.pass(110);
      // It refuses 100 of 101; the first that it lets through would be the probe.
      rig.call("a", [{ ms: 1 }], low);
      await rig.pass(0);
      expect(rig.result("a")).toBe("throttle");
      await expectProbe(rig);
    });

    it("that was given up while it ran", async () => {
      const rig = new CallRig({ breaker });
      rig.call("fails", [{ ms: 0, kind: "failed" }]);
      await rig.pass(110);
      const controller = new AbortController();
      rig.call("a", [{ ms: 1_000 }], { signal: controller.signal });
      await rig.pass(1);
      controller.abort("enough");
      await expectProbe(rig);
    });
  });

  it("throttles the classes that the service refuses, and not the others", async () => {
    const rig = new CallRig({ throttle: { memoryMs: 60_000 } });
    for (let i = 0; i < 200; i += 1) {
      rig.call(`low ${i}`, [{ ms: 0, kind: "overloaded" }], { priority: "low" });
      rig.call(`critical ${i}`, [{ ms: 0 }], { priority: "critical" });
      await rig.pass(1);
    }
    const { refused, throttleRatio, outcomes } = rig.admission.snapshot();
    expect(refused.throttle).toBeGreaterThan(100);
    expect(outcomes.served).toBe(200);
    expect(throttleRatio).toBeGreaterThan(0.9);
  });

  it("tells the service the class, the attempt and the time that is left", async () => {
    const deadline = { marginMs: 10, header: "x-timeout-ms" };
    const rig = new CallRig({ deadline, priorityHeader: "x-class" });
    rig.call("a", [{ ms: 10 }], { priority: "high", timeoutMs: 1_000 });
    rig.call("b", [{ ms: 10 }]);
    await rig.pass(5);
    expect(rig.begun.map(({ attempt }) => attempt.headers)).toEqual([
      {
        "x-class": "high",
        "x-headgate-attempt": "1",
        "grpc-timeout": "985m",
        "x-timeout-ms": "985",
      },
      { "x-class": "normal", "x-headgate-attempt": "1" },
    ]);
    expect(rig.begun[1]?.attempt.remainingMs).toBeUndefined();
  });
});
