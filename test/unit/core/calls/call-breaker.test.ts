import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OutcomeKind } from "../../../../src/core/calls/attempt-outcome.js";
import {
  type BreakerTicket,
  CallBreaker,
  type CallBreakerSettings,
} from "../../../../src/core/calls/call-breaker.js";
import { propertyRuns } from "../../../support/seeds.js";

const settings: CallBreakerSettings = {
  failureRatio: 0.5,
  callsMin: 20,
  windowMs: 10_000,
  openMs: 5_000,
  probesCount: 3,
};

/** Makes calls one after the other, as many as pass. @returns how many passed */
function call(
  breaker: CallBreaker,
  kind: OutcomeKind,
  { nowMs, count = 1 }: { nowMs: number; count?: number },
): number {
  let passed = 0;
  for (let i = 0; i < count; i += 1) {
    const ticket = breaker.admit(nowMs);
    if (ticket === undefined) continue;
    passed += 1;
    breaker.end(ticket, kind, nowMs);
  }
  return passed;
}

/** Begins a call that must pass. */
function begin(breaker: CallBreaker, nowMs: number): BreakerTicket {
  const ticket = breaker.admit(nowMs);
  if (ticket === undefined) throw new Error("the breaker refused a call");
  return ticket;
}

/** A breaker that opened at this time. */
function openedAt(nowMs: number, more: Partial<CallBreakerSettings> = {}): CallBreaker {
  const breaker = new CallBreaker({ ...settings, ...more });
  call(breaker, "failed", { nowMs, count: 20 });
  expect(breaker.state(nowMs)).toBe("open");
  return breaker;
}

describe("CallBreaker", () => {
  it("opens with the tenth failure of 20 calls, and refuses for as long as it says", () => {
    const breaker = new CallBreaker(settings);
    call(breaker, "served", { nowMs: 0, count: 10 });
    call(breaker, "failed", { nowMs: 1_000, count: 9 });
    expect(breaker.state(1_000)).toBe("closed");
    expect(call(breaker, "overloaded", { nowMs: 2_000, count: 5 })).toBe(1);
    expect([breaker.state(2_000), breaker.openMs(2_000)]).toEqual(["open", 5_000]);
    expect([breaker.state(6_999), breaker.openMs(6_999)]).toEqual(["open", 1]);
    expect(breaker.admit(6_999)).toBeUndefined();
    expect([breaker.state(7_000), breaker.openMs(7_000)]).toEqual(["halfOpen", 0]);
  });

  it("stays closed while calls are few, and while enough of many are served", () => {
    const few = new CallBreaker(settings);
    expect(call(few, "failed", { nowMs: 0, count: 19 })).toBe(19);
    expect(few.state(0)).toBe("closed");
    const many = new CallBreaker(settings);
    for (let i = 0; i < 500; i += 1) {
      call(many, "served", { nowMs: i * 100, count: 6 });
      call(many, "failed", { nowMs: i * 100, count: 5 });
    }
    expect(many.state(50_000)).toBe("closed");
  });

  it("opens when a success makes enough calls of mostly failures", () => {
    const breaker = new CallBreaker(settings);
    call(breaker, "failed", { nowMs: 0, count: 19 });
    call(breaker, "served", { nowMs: 0 });
    expect(breaker.state(0)).toBe("open");
  });

  it("counts calls of the window only", () => {
    const breaker = new CallBreaker(settings);
    call(breaker, "failed", { nowMs: 0, count: 19 });
    call(breaker, "failed", { nowMs: 10_000, count: 19 });
    expect(breaker.state(10_000)).toBe("closed");
    // Buckets go one by one, so those of 9.9 s ago still count.
    call(breaker, "failed", { nowMs: 19_900 });
    expect(breaker.state(19_900)).toBe("open");
    const idle = new CallBreaker(settings);
    call(idle, "failed", { nowMs: 0, count: 19 });
    // As long as clocks go: it takes no longer.
    call(idle, "failed", { nowMs: 2 ** 53, count: 19 });
    expect(idle.state(2 ** 53)).toBe("closed");
  });

  it("does not count what was given up", () => {
    const breaker = new CallBreaker(settings);
    expect(call(breaker, "cancelled", { nowMs: 0, count: 1_000 })).toBe(1_000);
    expect(call(breaker, "failed", { nowMs: 0, count: 19 })).toBe(19);
    expect(breaker.state(0)).toBe("closed");
  });

  it("lets so many probes through at once, and closes when all are served", () => {
    const breaker = openedAt(0);
    const probes = [1, 2, 3].map(() => begin(breaker, 5_000));
    expect(breaker.admit(5_000)).toBeUndefined();
    breaker.end(probes[0] ?? 0, "served", 5_100);
    breaker.end(probes[1] ?? 0, "served", 5_100);
    expect(breaker.state(5_100)).toBe("halfOpen");
    breaker.end(probes[2] ?? 0, "served", 5_100);
    expect(breaker.state(5_100)).toBe("closed");
    // The failures from before are forgotten.
    expect(call(breaker, "failed", { nowMs: 5_100, count: 19 })).toBe(19);
    expect(breaker.state(5_100)).toBe("closed");
  });

  it("opens again with the first probe that fails, for the whole time", () => {
    const breaker = openedAt(0);
    const probes = [1, 2, 3].map(() => begin(breaker, 5_000));
    breaker.end(probes[0] ?? 0, "served", 5_100);
    breaker.end(probes[1] ?? 0, "overloaded", 5_200);
    expect([breaker.state(5_200), breaker.openMs(5_200)]).toEqual(["open", 5_000]);
    // Successes of the last round do not count in the next one.
    breaker.end(probes[2] ?? 0, "served", 5_300);
    expect(call(breaker, "served", { nowMs: 10_200, count: 2 })).toBe(2);
    expect(breaker.state(10_200)).toBe("halfOpen");
  });

  it("is not judged by calls that began before it opened", () => {
    const breaker = new CallBreaker(settings);
    const old = [1, 2, 3, 4].map(() => begin(breaker, 0));
    call(breaker, "failed", { nowMs: 0, count: 20 });
    breaker.end(old[0] ?? 0, "served", 1_000);
    expect(breaker.state(1_000)).toBe("open");
    const probe = begin(breaker, 5_000);
    breaker.end(old[1] ?? 0, "failed", 5_000);
    expect(breaker.state(5_000)).toBe("halfOpen");
    breaker.end(probe, "served", 5_000);
    expect(call(breaker, "served", { nowMs: 5_000, count: 2 })).toBe(2);
    expect(breaker.state(5_000)).toBe("closed");
    breaker.end(old[2] ?? 0, "failed", 5_000);
    expect(call(breaker, "failed", { nowMs: 5_000, count: 19 })).toBe(19);
    expect(breaker.state(5_000)).toBe("closed");
  });

  it("lets another probe through where one was given up", () => {
    const breaker = openedAt(0, { probesCount: 1 });
    const probe = begin(breaker, 5_000);
    expect(breaker.admit(5_000)).toBeUndefined();
    breaker.end(probe, "cancelled", 5_010);
    expect(call(breaker, "served", { nowMs: 5_010 })).toBe(1);
    expect(breaker.state(5_010)).toBe("closed");
  });

  it("replaces a probe that does not come back in the open time, and counts it if it does", () => {
    const breaker = openedAt(0, { probesCount: 2 });
    const lost = begin(breaker, 5_000);
    const later = begin(breaker, 6_000);
    expect(breaker.admit(9_999)).toBeUndefined();
    begin(breaker, 10_000);
    expect(breaker.admit(10_000)).toBeUndefined();
    breaker.end(lost, "served", 10_001);
    // It had no place any more, so none came free.
    expect(breaker.admit(10_001)).toBeUndefined();
    breaker.end(later, "served", 10_002);
    expect(breaker.state(10_002)).toBe("closed");
  });

  it("keeps its promises in any history of calls", () => {
    const kinds = fc.constantFrom<OutcomeKind>("served", "failed", "overloaded", "cancelled");
    const event = fc.record({
      afterMs: fc.oneof(fc.constant(0), fc.nat(100), fc.nat(4_000)),
      beginCount: fc.nat(6),
      ends: fc.array(fc.record({ which: fc.nat(50), kind: kinds }), { maxLength: 6 }),
    });
    const some = fc.record({
      failureRatio: fc.constantFrom(0.1, 0.5, 1),
      callsMin: fc.integer({ min: 1, max: 8 }),
      windowMs: fc.constantFrom(100, 1_000),
      openMs: fc.constantFrom(50, 1_000),
      probesCount: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(some, fc.array(event, { maxLength: 60 }), (used, history) => {
        const breaker = new CallBreaker(used);
        const open = new Map<BreakerTicket[], number>();
        let nowMs = 0;
        let openedMs = Number.NEGATIVE_INFINITY;
        for (const { afterMs, beginCount, ends } of history) {
          nowMs += afterMs;
          for (let i = 0; i < beginCount; i += 1) {
            const before = breaker.state(nowMs);
            const ticket = breaker.admit(nowMs);
            if (before === "closed") expect(ticket).toBeDefined();
            if (nowMs < openedMs + used.openMs) expect(ticket === undefined).toBe(true);
            if (ticket !== undefined) open.set([ticket], before === "closed" ? -1 : nowMs);
          }
          const probes = [...open.values()].filter(
            (ms) => ms > Math.max(openedMs, nowMs - used.openMs),
          );
          if (breaker.state(nowMs) !== "closed") {
            expect(probes.length).toBeLessThanOrEqual(used.probesCount);
          }
          for (const { which, kind } of ends) {
            const call = [...open.keys()][which % Math.max(1, open.size)];
            if (call === undefined) break;
            open.delete(call);
            const before = breaker.state(nowMs);
            breaker.end(call[0] ?? 0, kind, nowMs);
            const after = breaker.state(nowMs);
            if (before !== "open" && after === "open") {
              openedMs = nowMs;
              expect(["failed", "overloaded", "served"]).toContain(kind);
            }
            if (after === "closed") openedMs = Number.NEGATIVE_INFINITY;
            if (before === "open") expect(after).toBe("open");
            if (kind === "cancelled") expect(after).toBe(before);
          }
        }
        // Whatever was lost: after the longest of its waits it lets a call through.
        expect(breaker.admit(nowMs + used.openMs)).toBeDefined();
      }),
      propertyRuns(500),
    );
  });
});
