import { describe, expect, it } from "vitest";
import { LogInterval } from "../../../../src/core/base/log-interval.js";

describe("LogInterval", () => {
  it("begins once an interval, for each subject by itself", () => {
    const interval = new LogInterval<string>(100);
    expect([interval.begins("a", 0), interval.begins("a", 99)]).toEqual([true, false]);
    expect([interval.begins("b", 99), interval.begins("a", 100)]).toEqual([true, true]);
    expect([interval.begins("a", 199), interval.begins("b", 199)]).toEqual([false, true]);
  });
});
