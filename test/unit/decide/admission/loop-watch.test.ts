import { describe, expect, it } from "vitest";
import { watchLoop } from "../../../../src/decide/admission/loop-watch.js";
import { Pressure, type PressureEvent } from "../../../../src/decide/rate-limit/pressure.js";
import { FakeClock } from "../../../support/fake-clock.js";

function start(isIdle = () => false) {
  const clock = new FakeClock();
  const pressure = new Pressure({
    loopDelayMsMax: 100,
    requestsInFlightMax: 10,
    requestsInFlightBytesMax: 1_000_000_000,
    asksStoreWhenLate: false,
  });
  const events: PressureEvent[] = [];
  const cancel = watchLoop({ clock, pressure, onEvent: (event) => events.push(event), isIdle });
  return { clock, pressure, events, cancel };
}

describe("watchLoop()", () => {
  it("sees nothing wrong with a loop that keeps up", () => {
    const { clock, pressure, events } = start();
    clock.advance(60_000);
    expect(events).toEqual([]);
    expect(pressure.overload(clock.monotonicMs())).toBeUndefined();
  });

  it("sees a stall, whenever it began, and no overload in it", () => {
    const { clock, pressure, events } = start();
    clock.advance(1_007);
    clock.stall(150);
    expect(pressure.isLate(clock.monotonicMs())).toBe(true);
    clock.advance(20);
    expect(events).toEqual([{ kind: "loopStalled", stalledMs: expect.any(Number) }]);
    expect(pressure.overload(clock.monotonicMs())).toBeUndefined();
  });

  it("sees turns that stay long, and their end", () => {
    const { clock, pressure, events } = start();
    for (let i = 0; i < 10; i += 1) {
      clock.stall(150);
      clock.advance(1);
    }
    expect(events.at(-1)).not.toEqual({ kind: "overloadEnded" });
    expect(events).toContainEqual({ kind: "overloadBegan", cause: "loopDelay" });
    clock.advance(600);
    expect(pressure.overload(clock.monotonicMs())).toBeUndefined();
    clock.advance(10_000);
    expect(events.at(-1)).toEqual({ kind: "overloadEnded" });
  });

  it("looks four times a second while the loop idles, and sees longer stalls even so", () => {
    let askedCount = 0;
    const { clock, events } = start(() => {
      askedCount += 1;
      return true;
    });
    clock.advance(10_000);
    expect(askedCount).toBe(41);
    expect(events).toEqual([]);
    clock.stall(400);
    clock.advance(1);
    expect(events).toEqual([{ kind: "loopStalled", stalledMs: expect.any(Number) }]);
  });

  it("leaves no timer behind when it is cancelled, however often it has looked", () => {
    const { clock, cancel } = start();
    clock.advance(1_000);
    expect(clock.timerCount).toBe(1);
    cancel();
    expect(clock.timerCount).toBe(0);
  });
});
