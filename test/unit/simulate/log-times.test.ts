import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTimestampUs } from "../../../src/core/base/timestamp.js";
import { LogTimes } from "../../../src/simulate/log-times.js";
import { propertyRuns } from "../../support/seeds.js";

describe("LogTimes", () => {
  it("reads what a time is read as alone, whatever it has read before", () => {
    const second = fc.constantFrom(
      "2026-01-05T08:00:00",
      "2026-01-05 08:00:01",
      "2026-02-30T08:00:00",
      "2024-02-29T23:59:60",
      "0000000000000000000",
      "1767600000",
    );
    const digits = fc.string({
      unit: fc.constantFrom("0", "1", "5", "9"),
      maxLength: 11,
      size: "max",
    });
    const fraction = fc
      .tuple(fc.constantFrom("", ".", ",", "x"), digits)
      .map((two) => two.join(""));
    const zone = fc.constantFrom("Z", "", "+01:00", "z", "ZZ");
    const time = fc.tuple(second, fraction, zone).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(time), (texts) => {
        const times = new LogTimes();
        for (const text of [...texts, ...texts]) {
          expect(times.read(text), text).toBe(parseTimestampUs(text));
        }
      }),
      propertyRuns(100),
    );
  });
});
