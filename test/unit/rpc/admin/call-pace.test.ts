import { describe, expect, it } from "vitest";
import { CallPace, pacedCallersMax } from "../../../../src/rpc/admin/call-pace.js";
import { FakeClock } from "../../../support/fake-clock.js";

describe("CallPace", () => {
  it("lets a burst pass, and then the rate, for each caller apart", () => {
    const clock = new FakeClock();
    const pace = new CallPace(clock, { perSecond: 10, burst: 20 });
    const passed = Array.from({ length: 25 }, () => pace.take("ann")).filter((ms) => ms === 0);
    expect(passed).toHaveLength(20);
    expect(pace.take("ann")).toBe(100);
    expect(pace.take("ben")).toBe(0);
    clock.advance(100);
    expect(pace.take("ann")).toBe(0);
    expect(pace.take("ann")).toBe(100);
  });

  it("lets callers share a bucket where there are too many", () => {
    const clock = new FakeClock();
    const pace = new CallPace(clock, { perSecond: 1, burst: 1 });
    const waits = Array.from({ length: pacedCallersMax }, (_, i) => pace.take(`c${i}`));
    expect(waits.filter((ms) => ms !== 0)).toEqual([]);
    expect(pace.take("one more")).toBe(0);
    expect(pace.take("another one")).toBe(1_000);
    clock.advance(1_000);
    expect(pace.take("another one")).toBe(0);
    expect(pace.take("one more")).toBe(0);
  });
});
