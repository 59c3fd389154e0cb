import { describe, expect, it } from "vitest";
import { parseGrpcTimeout } from "../../../src/wire/grpc-timeout.js";

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
