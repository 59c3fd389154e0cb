import { beforeEach, describe, expect, it } from "vitest";
import { Pressure } from "../../../src/decide/pressure.js";

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
    expect(pressure.cause(nowMs)).toBeUndefined();
    expect(pressure.cause(nowMs + 1_000_000)).toBeUndefined();
  });

  it("lets a loop be late up to the bound", () => {
    tick();
    expect(tick(100)).toBeUndefined();
    expect(pressure.cause(nowMs)).toBeUndefined();
  });

  it("is overloaded by a look that is later than the bound", () => {
    tick();
    expect(tick(101)).toEqual({ kind: "overloadBegan", cause: "loopDelay" });
    expect(pressure.cause(nowMs)).toBe("loopDelay");
  });

  it("knows a late loop by the look that is due, before it comes", () => {
    tick();
    expect(pressure.cause(nowMs + tickMs + 100)).toBeUndefined();
    expect(pressure.cause(nowMs + tickMs + 101)).toBe("loopDelay");
  });

  it("trusts the loop again when it kept up for 200 ms", () => {
    tick();
    tick(500);
    expect(pressure.cause(nowMs + 20)).toBe("loopDelay");
    ticksFor(180);
    expect(pressure.cause(nowMs)).toBe("loopDelay");
    ticksFor(20);
    expect(pressure.cause(nowMs)).toBeUndefined();
  });

  it("takes lateness above half of the bound for more of the same", () => {
    tick();
    tick(101);
    for (let i = 0; i < 50; i += 1) tick(51);
    expect(pressure.cause(nowMs)).toBe("loopDelay");
    for (let i = 0; i < 4; i += 1) tick(50);
    expect(pressure.cause(nowMs)).toBeUndefined();
    tick(51);
    expect(pressure.cause(nowMs)).toBeUndefined();
  });

  it("knows of lateness also where it is no reason to pass the store by", () => {
    pressure = new Pressure({
      loopDelayMsMax: 100,
      requestsInFlightMax: 10,
      requestsInFlightBytesMax: 1_000_000_000,
      asksStoreWhenLate: true,
    });
    tick();
    expect(tick(60_000)).toBeUndefined();
    expect(pressure.cause(nowMs)).toBeUndefined();
    expect(pressure.isLate(nowMs)).toBe(true);
    begin(11);
    expect(pressure.cause(nowMs)).toBe("inFlight");
  });
});

describe("Pressure, by the requests in flight", () => {
  it("takes as many as it may, and not one more", () => {
    begin(10);
    expect(pressure.cause(nowMs)).toBeUndefined();
    begin(1);
    expect(pressure.cause(nowMs)).toBe("inFlight");
    expect(pressure.inFlightCount).toBe(11);
  });

  it("takes more only when they are down to the half", () => {
    begin(11);
    end(5);
    expect(pressure.cause(nowMs)).toBe("inFlight");
    end(1);
    expect(pressure.inFlightCount).toBe(5);
    expect(pressure.cause(nowMs)).toBeUndefined();
    begin(5);
    expect(pressure.cause(nowMs)).toBeUndefined();
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
    expect(pressure.cause(nowMs)).toBe("inFlight");
    end(1);
    expect(pressure.cause(nowMs)).toBeUndefined();
  });
});

describe("Pressure, as it is told", () => {
  it("tells one begin and one end, 10 s after the last overload of many", () => {
    tick();
    const events = [tick(101)];
    for (let i = 0; i < 30; i += 1) {
      ticksFor(1_000);
      events.push(tick(101));
    }
    expect(pressure.cause(nowMs)).toBe("loopDelay");
    const endedAfterMs = nowMs;
    let event: ReturnType<typeof tick>;
    do event = tick();
    while (event === undefined);
    expect(events.filter((one) => one !== undefined)).toHaveLength(1);
    expect(event).toEqual({ kind: "overloadEnded" });
    expect(nowMs - endedAfterMs).toBeGreaterThanOrEqual(10_000);
    expect(nowMs - endedAfterMs).toBeLessThan(10_500);
    expect(tick()).toBeUndefined();
  });

  it("tells also what began and ended between two looks, when a request met it", () => {
    tick();
    begin(11);
    pressure.cause(nowMs);
    end(11);
    expect(tick()).toEqual({ kind: "overloadBegan", cause: "inFlight" });
    expect(pressure.cause(nowMs)).toBeUndefined();
  });
});

describe("Pressure, by memory", () => {
  it("is overloaded by requests that together take too much, until half of it is answered", () => {
    pressure.begin(600_000);
    pressure.begin(400_000);
    expect(pressure.cause(nowMs)).toBeUndefined();
    pressure.begin(1);
    expect(pressure.cause(nowMs)).toBe("inFlight");
    pressure.end(400_000);
    expect(pressure.cause(nowMs)).toBe("inFlight");
    pressure.end(600_000);
    expect(pressure.cause(nowMs)).toBeUndefined();
  });

  it("is overloaded while memory is used up, whatever else it is", () => {
    begin(11);
    pressure.memoryFull = "heap";
    expect(pressure.cause(nowMs)).toBe("heap");
    expect(tick()).toEqual({ kind: "overloadBegan", cause: "heap" });
    pressure.memoryFull = undefined;
    expect(pressure.cause(nowMs)).toBe("inFlight");
  });
});
