import { describe, expect, it } from "vitest";
import type { RetryOptions } from "../../../src/client/admission.js";
import { CallRig } from "../../support/call-rig.js";

const refusedMs = { ms: 1, kind: "overloaded", retriable: "always" } as const;
const retry: RetryOptions = { jitter: "law", attemptsMax: 3 };

describe("retries of an admission", () => {
  it("wait by the law, between the first and the last attempt", async () => {
    const rig = new CallRig({ retry });
    rig.call("a", [refusedMs, refusedMs, { ms: 1 }]);
    rig.call("b", [refusedMs]);
    await rig.pass(4_100);
    await rig.pass(20_000, 1_000);
    expect(Object.fromEntries(rig.results)).toEqual({ a: "served 3", b: "overloaded 3" });
    const times = rig.begun.map(({ atMs }) => atMs).sort((one, other) => one - other);
    expect(times).toHaveLength(6);
    expect(times.slice(0, 2)).toEqual([0, 0]);
    for (const ms of times.slice(2, 4)) expect(ms).toBeGreaterThanOrEqual(2_001);
    for (const ms of times.slice(2, 4)) expect(ms).toBeLessThan(4_001);
    expect(rig.admission.snapshot()).toMatchObject({ retriesCount: 4, attemptsCount: 6 });
    expect(rig.clock.timerCount).toBe(0);
  });

  it("wait up to three times as long as the last time, where waits are decorrelated", async () => {
    const settings = { jitter: "decorrelated", baseMs: 10, attemptsMax: 4 } as const;
    const random = { next: () => 0.5, id: () => "0" };
    const rig = new CallRig({ retry: settings, random });
    rig.call("a", [refusedMs]);
    await rig.pass(120, 0.5);
    // After 1 ms each: 20, then 10 + 0.5 x (60 - 10), then 10 + 0.5 x (105 - 10).
    expect(rig.begun.map(({ atMs }) => atMs)).toEqual([0, 21, 57, 115.5]);
  });

  it("give the permit back while they wait", async () => {
    const rig = new CallRig({ retry, concurrency: { law: "fixed", initial: 1 } });
    rig.call("a", [refusedMs, { ms: 1 }]);
    await rig.pass(10);
    expect(rig.admission.snapshot().inFlight).toBe(0);
    rig.call("b", [{ ms: 1 }]);
    await rig.pass(5_000, 1_000);
    expect(Object.fromEntries(rig.results)).toEqual({ a: "served 2", b: "served 1" });
  });

  it.each([
    ["never", true, 1],
    ["ifIdempotent", false, 1],
    ["ifIdempotent", true, 3],
    ["always", false, 3],
  ] as const)("of %s retriable with an idempotent call %s: %i", async (retriable, is, count) => {
    const rig = new CallRig({ retry });
    rig.call("a", [{ ...refusedMs, retriable, fails: "rejects" }], { isIdempotent: is });
    await rig.pass(20_000, 1_000);
    expect(rig.begun).toHaveLength(count);
    expect(rig.result("a")).toBe("planned: overloaded");
  });

  it("do not wait for what is still read of the attempt that they repeat", async () => {
    const rig = new CallRig({ retry, concurrency: { law: "fixed", initial: 1 } });
    rig.call("a", [{ ...refusedMs, holdMs: 60_000 }, { ms: 1 }], { timeoutMs: 10_000 });
    await rig.pass(2);
    expect(rig.admission.snapshot().inFlight).toBe(0);
    // Until then its response may be the result of the call.
    expect(rig.begun[0]?.attempt.signal.aborted).toBe(false);
    await rig.pass(4_000);
    expect(rig.result("a")).toBe("served 2");
    expect(rig.begun[0]?.attempt.signal.reason).toMatchObject({ name: "AbortError" });
    await rig.pass(60_000, 1_000);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("that are given up abort what is still read of the attempt before", async () => {
    const rig = new CallRig({ retry });
    const controller = new AbortController();
    rig.call("a", [{ ...refusedMs, holdMs: 60_000 }], { signal: controller.signal });
    await rig.pass(10);
    controller.abort("enough");
    expect(rig.begun[0]?.attempt.signal.reason).toBe("enough");
  });

  it("leave no time behind that their attempts waited for", async () => {
    const rig = new CallRig({ retry });
    rig.call("a", [refusedMs, { ms: 1 }], { timeoutMs: 10_000 });
    await rig.pass(5_000, 5);
    expect(rig.result("a")).toBe("served 2");
    expect(rig.clock.timerCount).toBe(0);
  });

  it("follow Retry-After, but not beyond the bound, and not what is no time", async () => {
    for (const [retryAfterMs, times] of [
      [500, [0, 501]],
      [1_001, [0]],
      [Number.NaN, [0]],
      [Number.POSITIVE_INFINITY, [0]],
      [-1e12, [0, 1]],
    ] as const) {
      const options = { jitter: "full", baseMs: 1, maxMs: 1, retryAfterMsMax: 1_000 } as const;
      const rig = new CallRig({ retry: { ...options, attemptsMax: 2 } });
      rig.call("a", [{ ...refusedMs, retryAfterMs }]);
      await rig.pass(1_100);
      expect(rig.begun.map(({ atMs }) => Math.floor(atMs))).toEqual(times);
    }
  });

  it("end at once where no time would be left for one", async () => {
    const rig = new CallRig({ retry });
    rig.call("a", [refusedMs], { timeoutMs: 1_500 });
    await rig.pass(1);
    expect(rig.result("a")).toBe("overloaded 1");
  });

  it("stop with their budget, and leave the last result", async () => {
    const rig = new CallRig({ retry: { ...retry, budgetRatio: 0.1, budgetPerSecondMin: 0.2 } });
    for (let i = 0; i < 10; i += 1) rig.call(`${i}`, [refusedMs]);
    await rig.pass(1);
    expect(rig.admission.snapshot()).toMatchObject({ retriesCount: 2, budgetRefusedCount: 8 });
    expect([...rig.results.values()].filter((one) => one === "overloaded 1")).toHaveLength(8);
  });

  it("that are refused here leave the last result", async () => {
    const rig = new CallRig({ retry, breaker: { callsMin: 1, openMs: 60_000 } });
    rig.call("a", [refusedMs]);
    await rig.pass(5_000, 1_000);
    expect(rig.result("a")).toBe("overloaded 1");
    expect(rig.admission.snapshot().refused.breakerOpen).toBe(0);
  });

  it("end when the call is given up", async () => {
    const rig = new CallRig({ retry });
    const controller = new AbortController();
    rig.call("a", [refusedMs], { signal: controller.signal });
    await rig.pass(100, 10);
    controller.abort("enough");
    await rig.pass(0);
    expect(rig.result("a")).toBe("enough");
    expect(rig.clock.timerCount).toBe(0);
  });

  it("are not made when classifying throws", async () => {
    const rig = new CallRig({ retry });
    const run = rig.admission.run(async () => 1, {
      classify: () => {
        throw new Error("cannot classify");
      },
    });
    await expect(run).rejects.toThrow("cannot classify");
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 0, attemptsCount: 1 });
  });
});

/** A rig that has seen a hundred calls of 10 ms. */
async function hedging(more: ConstructorParameters<typeof CallRig>[0] = {}): Promise<CallRig> {
  const rig = new CallRig({ hedge: { quantile: 0.95, afterMsMin: 20 }, ...more });
  for (let i = 0; i < 100; i += 1) rig.call(`before ${i}`, [{ ms: 10 }]);
  await rig.pass(10);
  rig.begun.length = 0;
  return rig;
}

describe("hedges of an admission", () => {
  const slow = [{ ms: 1_000 }, { ms: 5 }] as const;

  it("begin beside a slow attempt, win, and abort the other", async () => {
    const rig = await hedging();
    rig.call("a", slow, { isIdempotent: true });
    await rig.pass(19);
    expect(rig.begun).toHaveLength(1);
    await rig.pass(6);
    expect(rig.result("a")).toBe("served 2");
    expect(rig.begun.map(({ attempt }) => attempt.isHedge)).toEqual([false, true]);
    expect(rig.begun[0]?.attempt.signal.reason).toMatchObject({ name: "AbortError" });
    await rig.pass(0);
    expect(rig.admission.snapshot()).toMatchObject({
      inFlight: 0,
      hedgesCount: 1,
      outcomes: { served: 101, cancelled: 1 },
    });
    expect(rig.clock.timerCount).toBe(1);
  });

  it("are not made for calls that may be done once only, or that are quick", async () => {
    const rig = await hedging();
    rig.call("a", slow);
    rig.call("b", [{ ms: 19 }], { isIdempotent: true });
    await rig.pass(1_000, 10);
    expect([rig.result("a"), rig.result("b")]).toEqual(["served 1", "served 1"]);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("take no permit that others wait for, and none beyond the limit", async () => {
    const rig = await hedging({ concurrency: { law: "fixed", initial: 100 } });
    for (let i = 0; i < 100; i += 1) rig.call(`${i}`, slow, { isIdempotent: true });
    await rig.pass(500, 10);
    expect(rig.admission.snapshot()).toMatchObject({ inFlight: 100, hedgesCount: 0 });
  });

  it("take from the budget of retries", async () => {
    const retry = { budgetRatio: 0, budgetPerSecondMin: 0.1 };
    const rig = await hedging({ retry });
    for (let i = 0; i < 3; i += 1) rig.call(`${i}`, slow, { isIdempotent: true });
    await rig.pass(100, 10);
    expect(rig.admission.snapshot()).toMatchObject({
      hedgesCount: 1,
      budgetRefusedCount: 2,
      inFlight: 2,
    });
  });

  it("count as attempts, of which there is a most", async () => {
    const rig = await hedging({ retry: { attemptsMax: 1 } });
    rig.call("a", slow, { isIdempotent: true });
    await rig.pass(100, 10);
    expect(rig.begun).toHaveLength(1);
  });

  it("are not made for a call that is given up by its own work", async () => {
    const rig = await hedging();
    const controller = new AbortController();
    const run = rig.admission.run(
      () => {
        controller.abort("enough");
        return new Promise<number>(() => {});
      },
      { isIdempotent: true, signal: controller.signal },
    );
    await expect(run).rejects.toBe("enough");
    await rig.pass(100, 10);
    expect(rig.admission.snapshot()).toMatchObject({ attemptsCount: 101, callsCount: 101 });
  });

  it("begin later when slow attempts lose against them", async () => {
    const rig = await hedging({ retry: { budgetRatio: 1 } });
    for (let i = 0; i < 100; i += 1) rig.call(`${i}`, slow, { isIdempotent: true });
    await rig.pass(25);
    rig.begun.length = 0;
    rig.call("next", slow, { isIdempotent: true });
    await rig.pass(30);
    const [first, hedge] = rig.begun;
    // The losers took 25 ms so far; all that was served took at most 10 ms.
    expect((hedge?.atMs ?? 0) - (first?.atMs ?? 0)).toBeCloseTo(25, 0);
  });

  it("give the place of a probe back when there is no permit", async () => {
    const breaker = { callsMin: 1, failureRatio: 0.001, openMs: 100, probesCount: 2 };
    const queue = { waitMsMax: 10_000, codel: false } as const;
    const rig = await hedging({ concurrency: { law: "fixed", initial: 1 }, queue, breaker });
    await rig.pass(1_000, 10);
    rig.call("fails", [{ ms: 0, kind: "failed" }]);
    await rig.pass(105);
    rig.call("slow", slow, { isIdempotent: true });
    await rig.pass(50);
    expect(rig.admission.snapshot()).toMatchObject({ hedgesCount: 0, breaker: "halfOpen" });
    rig.call("second", [{ ms: 1 }]);
    await rig.pass(0);
    expect(rig.admission.snapshot()).toMatchObject({ waiting: 1 });
  });

  it("abort at once what is still read of an attempt that failed", async () => {
    const rig = await hedging();
    const first = { ms: 30, kind: "failed", holdMs: 1_000 } as const;
    rig.call("a", [first, { ms: 50 }], { isIdempotent: true });
    await rig.pass(30);
    expect(rig.begun[0]?.attempt.signal.reason).toMatchObject({ name: "AbortError" });
    await rig.pass(50);
    expect(rig.result("a")).toBe("served 2");
  });

  it("leave a call running whose hedge fails, and the other way round", async () => {
    const rig = await hedging();
    rig.call("a", [{ ms: 50 }, { ms: 5, kind: "failed" }], { isIdempotent: true });
    rig.call("b", [{ ms: 30, kind: "failed" }, { ms: 50 }], { isIdempotent: true });
    await rig.pass(100);
    expect([rig.result("a"), rig.result("b")]).toEqual(["served 1", "served 2"]);
  });
});
