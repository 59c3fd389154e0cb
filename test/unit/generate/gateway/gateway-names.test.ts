import { describe, expect, it } from "vitest";
import { gatewayDuration } from "../../../../src/generate/gateway/gateway-names.js";

/** Source: Gateway API, Duration. */
const pattern = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/;

describe("gatewayDuration()", () => {
  it.each([
    { ms: 0, text: "0s" },
    { ms: 250, text: "250ms" },
    { ms: 1_500, text: "1s500ms" },
    { ms: 90_000, text: "90s" },
    { ms: 86_400_000, text: "86400s" },
    { ms: 360_000_001, text: "100h1ms" },
  ])("writes $ms ms as $text", ({ ms, text }) => {
    expect(gatewayDuration(ms)).toBe(text);
    expect(text).toMatch(pattern);
  });
});
