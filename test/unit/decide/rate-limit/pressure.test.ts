import { beforeEach, describe, expect, it } from "vitest";
import { Pressure } from "../../../../src/decide/rate-limit/pressure.js";

const tickMs = 20;
let pressure: Pressure;
let nowMs: number;

beforeEach(() => {
  pressure = new Pressure({
    loopDelayMsMax: 100,
    requestsInFlightMax: 10,
    requestsInFlightBytesMax: 1_000_000,
    asksStoreWhenLate: false,
  });
  nowMs = 5_000;
});

/** One look of a loop that is late by so much. */
function tick(lateMs = 0) {
  nowMs += tickMs + lateMs;
  return pressure.tick(nowMs, nowMs + tickMs);
}

function ticksFor(durationMs: number): void {
  for (let passedMs = 0; passedMs < durationMs; passedMs += tickMs) tick();
}

function begin(count: number): void {
  for (let i = 0; i < count; i += 1) pressure.begin(100);
}

function end(count: number): void {
  for (let i = 0; i < count; i += 1) pressure.end(100);
}

describe("Pressure, by the event loop's delay", () => {
  it("says nothing before the first look", () => {
    expect(pressure.overload(nowMs)).toBeUndefined();
    expect(pressure.overload(nowMs + 1_000_000)).toBeUndefined();
  });

  it("lets a loop be late up to the bound", () => {
    tick();
    for (let i = 0; i < 100; i += 1) expect(tick(100)).toBeUndefined();
    expect(pressure.overload(nowMs)).toBeUndefined();
  });

  it("takes a stall for no overload, however long, and says that there was one", () => {
    for (const stalledMs of [101, 150, 2_000, 60_000]) {
      tick();
      expect(tick(stalledMs)).toEqual({ kind: "loopStalled", stalledMs });
      expect(pressure.overload(nowMs)).toBeUndefined();
      expect(pressure.isShedding).toBe(false);
      ticksFor(500);
    }
  });

  it("knows of a stall at once, also by the look that is due, until 200 ms were well", () => {
    tick();
    expect(pressure.isLate(nowMs + tickMs + 100)).toBe(false);
    expect(pressure.isLate(nowMs + tickMs + 101)).toBe(true);
    tick(500);
    expect(pressure.isLate(nowMs + 20)).toBe(true);
    ticksFor(180);
    expect(pressure.isLate(nowMs)).toBe(true);
    ticksFor(20);
    expect(pressure.isLate(nowMs)).toBe(false);
  });

  it("takes stops of 150 ms twice a second for no overload, whatever the hour", () => {
    tick();
    for (let i = 0; i < 1_000; i += 1) {
      tick(150);
      expect(pressure.overload(nowMs)).toBeUndefined();
      ticksFor(330);
    }
  });

  it("is overloaded by turns that stay late, after a second of them", () => {
    tick();
    const events = Array.from({ length: 7 }, () => tick(130));
    expect(events.slice(0, -1)).toEqual(
      Array.from({ length: 6 }, () => ({ kind: "loopStalled", stalledMs: 130 })),
    );
    expect(events.at(-1)).toEqual({ kind: "overloadBegan", cause: "loopDelay" });
    expect(pressure.overload(nowMs)).toBe("loopDelay");
    expect(pressure.isShedding).toBe(true);
  });

  it("takes lateness above half of the bound for more of the same, and ends after 500 ms", () => {
    tick();
    for (let i = 0; i < 7; i += 1) tick(130);
    for (let i = 0; i < 50; i += 1) tick(51);
    expect(pressure.overload(nowMs)).toBe("loopDelay");
    ticksFor(480);
    expect(pressure.overload(nowMs)).toBe("loopDelay");
    tick();
    expect(pressure.overload(nowMs)).toBeUndefined();
    for (let i = 0; i < 50; i += 1) tick(51);
    expect(pressure.overload(nowMs)).toBeUndefined();
  });

  it.each([true, false])(
    "passes the store by only where one is asked over a network: %s",
    (here) => {
      pressure = new Pressure({
        loopDelayMsMax: 100,
        requestsInFlightMax: 10,
        requestsInFlightBytesMax: 1_000_000_000,
        asksStoreWhenLate: here,
      });
      tick();
      for (let i = 0; i < 7; i += 1) tick(130);
      expect(pressure.overload(nowMs)).toBe("loopDelay");
      expect(pressure.passesStoreBy(nowMs)).toBe(!here);
      begin(11);
      expect(pressure.passesStoreBy(nowMs)).toBe(true);
    },
  );
});

describe("Pressure, by the requests in flight", () => {
  it("takes as many as it may, and not one more", () => {
    begin(10);
    expect(pressure.overload(nowMs)).toBeUndefined();
    begin(1);
    expect(pressure.overload(nowMs)).toBe("inFlight");
    expect(pressure.inFlightCount).toBe(11);
  });

  it("takes more only when they are down to the half", () => {
    begin(11);
    end(5);
    expect(pressure.overload(nowMs)).toBe("inFlight");
    end(1);
    expect(pressure.inFlightCount).toBe(5);
    expect(pressure.overload(nowMs)).toBeUndefined();
    begin(5);
    expect(pressure.overload(nowMs)).toBeUndefined();
  });

  it("ends with the last request where one is the most", () => {
    pressure = new Pressure({
      loopDelayMsMax: 100,
      requestsInFlightMax: 1,
      requestsInFlightBytesMax: 1_000_000_000,
      asksStoreWhenLate: false,
    });
    begin(2);
    end(1);
    expect(pressure.overload(nowMs)).toBe("inFlight");
    end(1);
    expect(pressure.overload(nowMs)).toBeUndefined();
  });
});

describe("Pressure, as it is told", () => {
  it("tells one begin and one end, 10 s after the last overload of many", () => {
    tick();
    const kinds = new Set<string | undefined>();
    for (let i = 0; i < 30; i += 1) {
      for (let late = 0; late < 7; late += 1) kinds.add(tick(130)?.kind);
      ticksFor(1_000);
    }
    expect([...kinds]).toEqual(["loopStalled", "overloadBegan"]);
    expect(pressure.overload(nowMs)).toBeUndefined();
    const endedAfterMs = nowMs;
    let event: ReturnType<typeof tick>;
    do event = tick();
    while (event === undefined);
    expect(event).toEqual({ kind: "overloadEnded" });
    expect(nowMs - endedAfterMs).toBeGreaterThanOrEqual(9_000);
    expect(nowMs - endedAfterMs).toBeLessThan(10_500);
    expect(tick()).toBeUndefined();
  });

  it("tells also what began and ended between two looks, when a request met it", () => {
    tick();
    begin(11);
    pressure.overload(nowMs);
    end(11);
    expect(tick()).toEqual({ kind: "overloadBegan", cause: "inFlight" });
    expect(pressure.overload(nowMs)).toBeUndefined();
  });
});

describe("Pressure, by memory", () => {
  it("is overloaded by requests that together take too much, until half of it is answered", () => {
    pressure.begin(600_000);
    pressure.begin(400_000);
    expect(pressure.overload(nowMs)).toBeUndefined();
    pressure.begin(1);
    expect(pressure.overload(nowMs)).toBe("inFlight");
    pressure.end(400_000);
    expect(pressure.overload(nowMs)).toBe("inFlight");
    pressure.end(600_000);
    expect(pressure.overload(nowMs)).toBeUndefined();
  });

  it("is overloaded while memory is used up, whatever else it is", () => {
    begin(11);
    pressure.memoryFull = "heap";
    expect(pressure.overload(nowMs)).toBe("heap");
    expect(tick()).toEqual({ kind: "overloadBegan", cause: "heap" });
    pressure.memoryFull = undefined;
    expect(pressure.overload(nowMs)).toBe("inFlight");
  });
});
