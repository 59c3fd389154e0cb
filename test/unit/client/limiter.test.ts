import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { createLimiter, type LimiterOptions } from "../../../src/client/limiter.js";
import { FakeClock, settlePromises } from "../../support/fake-clock.js";

function limiter(options: LimiterOptions) {
  const clock = new FakeClock();
  return { clock, limiter: createLimiter({ clock, ...options }) };
}

describe("createLimiter()", () => {
  it("gives permits up to its limit, and again once they are released, once each", () => {
    const { limiter: two } = limiter({ law: "fixed", initial: 2 });
    const first = two.tryAcquire();
    const second = two.tryAcquire();
    expect(two.tryAcquire()).toBeUndefined();
    first?.release();
    first?.release();
    expect(two.snapshot()).toEqual({ limit: 2, inFlight: 1, waiting: 0 });
    expect(two.tryAcquire()).toBeDefined();
    expect(two.tryAcquire()).toBeUndefined();
    second?.release("cancelled");
  });

  it("lets those who wait in by priority, before anybody new", async () => {
    const { limiter: one } = limiter({ law: "fixed", initial: 1, queue: { codel: false } });
    const first = await one.acquire();
    const order: string[] = [];
    for (const priority of ["low", "critical"] as const) {
      void one.acquire({ priority }).then((permit) => {
        order.push(priority);
        permit.release();
      });
    }
    await settlePromises();
    expect(one.snapshot()).toEqual({ limit: 1, inFlight: 1, waiting: 2 });
    first.release();
    expect(one.tryAcquire()).toBeUndefined();
    await settlePromises();
    expect(order).toEqual(["critical", "low"]);
    expect(one.tryAcquire()).toBeDefined();
  });

  it("rejects who waits too long, leaves by a signal, or finds no place", async () => {
    const options = { queue: { sizeMax: 2, waitMsMax: 100 } } as const;
    const { clock, limiter: one } = limiter({ law: "fixed", initial: 1, ...options });
    const first = await one.acquire();
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = one.acquire({ signal });
    const short = one.acquire({ timeoutMs: 10 });
    await expect(one.acquire()).rejects.toMatchObject({ reason: "queueFull" });
    controller.abort("enough");
    await expect(waiting).rejects.toBe("enough");
    await expect(one.acquire({ signal })).rejects.toBe("enough");
    expect(getEventListeners(signal, "abort")).toEqual([]);
    clock.advance(10);
    await expect(short).rejects.toMatchObject({ name: "AdmissionError", reason: "deadline" });
    const patient = one.acquire();
    await settlePromises();
    clock.advance(100);
    await expect(patient).rejects.toMatchObject({ admission: "limiter", reason: "queueTimeout" });
    expect(clock.timerCount).toBe(0);
    first.release();
    expect(one.snapshot()).toEqual({ limit: 1, inFlight: 0, waiting: 0 });
  });

  it.each([
    ["above a learned limit by chance", {}, 10],
    ["not above the most", { max: 6 }, 6],
    ["not where the queue knows no class", { queue: { order: "fifo" } }, 4],
    ["not above a limit that is fixed", { law: "fixed" }, 4],
  ] as const)("lets critical calls go %s", (_, options, most) => {
    const { limiter: four } = limiter({ law: "gradient", initial: 4, ...options });
    for (let i = 0; i < 4; i += 1) expect(four.tryAcquire()).toBeDefined();
    expect(four.tryAcquire("high")).toBeUndefined();
    while (four.tryAcquire("critical") !== undefined);
    expect(four.snapshot()).toMatchObject({ limit: 4, inFlight: most });
  });

  it("lets nobody but critical calls in above its limit", async () => {
    const { limiter: four } = limiter({ law: "gradient", initial: 4, queue: { codel: false } });
    const permits = Array.from({ length: 10 }, () => four.tryAcquire("critical"));
    const order: string[] = [];
    for (const priority of ["low", "critical"] as const) {
      void four.acquire({ priority }).then(() => order.push(priority));
    }
    await settlePromises();
    for (const [i, permit] of permits.entries()) {
      permit?.release("cancelled");
      await settlePromises();
      // After one there is room for critical calls; after eight of eleven for all.
      expect(order).toEqual(i < 7 ? ["critical"] : ["critical", "low"]);
    }
  });

  it("learns from what its permits came to, once each", () => {
    const { limiter: aimd } = limiter({ law: "aimd", initial: 10 });
    const permits = Array.from({ length: 6 }, () => aimd.tryAcquire());
    for (const permit of permits) permit?.release("cancelled");
    expect(aimd.snapshot().limit).toBe(10);
    const more = Array.from({ length: 6 }, () => aimd.tryAcquire());
    for (const kind of ["served", "served", "overloaded"] as const) more[5]?.release(kind);
    expect(aimd.snapshot().limit).toBe(11);
  });

  it.each([
    ["aimd", "failed", true],
    ["aimd", "overloaded", true],
    ["vegas", "failed", false],
    ["vegas", "overloaded", true],
  ] as const)("lowers the limit of %s for what %s: %s", (law, kind, isLower) => {
    const { clock, limiter: learning } = limiter({ law, initial: 10 });
    for (let i = 0; i < 30; i += 1) {
      clock.advance(100);
      learning.tryAcquire()?.release(kind);
    }
    expect(learning.snapshot().limit < 10).toBe(isLower);
  });

  it.each(["gradient", "vegas"] as const)("finds the capacity of a service by %s", async (law) => {
    const { clock, limiter: learning } = limiter({ law, initial: 100, max: 200 });
    // Ten at a time take 50 ms each; the others wait there.
    let busyUntilMs = 0;
    for (let ms = 0; ms < 60_000; ms += 5) {
      for (let permit = learning.tryAcquire(); permit !== undefined; ) {
        const held = permit;
        busyUntilMs = Math.max(busyUntilMs, clock.monotonicMs()) + 5;
        clock.schedule(busyUntilMs - clock.monotonicMs() + 45, () => held.release());
        permit = learning.tryAcquire();
      }
      clock.advance(5);
    }
    expect(learning.snapshot().limit).toBeGreaterThanOrEqual(8);
    expect(learning.snapshot().limit).toBeLessThan(30);
  });
});
