import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatGrpcTimeout, parseGrpcTimeout } from "../../../../src/core/base/grpc-timeout.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("parseGrpcTimeout()", () => {
  it.each([
    { text: "2H", ms: 7_200_000 },
    { text: "3M", ms: 180_000 },
    { text: "1S", ms: 1_000 },
    { text: "250m", ms: 250 },
    { text: "1500u", ms: 1.5 },
    { text: "99999999n", ms: 99.999999 },
    { text: "0m", ms: 0 },
    { text: "99999999H", ms: 99_999_999 * 3_600_000 },
  ])("reads $text as $ms ms", ({ text, ms }) => {
    expect(parseGrpcTimeout(text)).toBeCloseTo(ms, 6);
  });

  it.each(["", "S", "10", "-1S", "1s", "1.5S", "100000000n", "1 S", "1S ", "x1S", "1SS", "١S"])(
    "knows no time in %j",
    (text) => {
      expect(parseGrpcTimeout(text)).toBeUndefined();
    },
  );
});

describe("formatGrpcTimeout()", () => {
  it.each([
    { ms: 250.9, text: "250m", story: "rounds down to whole milliseconds" },
    { ms: 0.3, text: "1m", story: "never says zero" },
    { ms: 99_999_999, text: "99999999m", story: "stays with milliseconds while eight digits hold" },
    { ms: 100_000_999, text: "100000S", story: "goes on in seconds, rounded down" },
    { ms: 100_000_000_000, text: "1666666M", story: "goes on in minutes" },
    { ms: 6_000_000_000_000, text: "1666666H", story: "goes on in hours" },
    { ms: 1e300, text: "99999999H", story: "ends at the largest there is" },
  ])("$story: $ms ms is $text", ({ ms, text }) => {
    expect(formatGrpcTimeout(ms)).toBe(text);
  });

  it("is read back as no more than it was, and less by no more than its unit", () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 1e14, noNaN: true }), (ms) => {
        const read = parseGrpcTimeout(formatGrpcTimeout(ms)) ?? Number.NaN;
        expect(read).toBeLessThanOrEqual(ms);
        expect(ms - read).toBeLessThan(Math.max(1, ms / 27_000));
      }),
      propertyRuns(100),
    );
  });
});
