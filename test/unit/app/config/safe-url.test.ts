import { describe, expect, it } from "vitest";
import { isLoopbackHost } from "../../../../src/app/config/safe-url.js";

describe("isLoopbackHost()", () => {
  it.each([
    ["127.0.0.1", true],
    ["127.8.9.1", true],
    ["::1", true],
    ["[::1]", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["::", false],
    ["10.0.0.1", false],
    ["example.com", false],
    ["127.0.0.1.example.com", false],
  ])("knows of %s: %s", (host, isLocal) => {
    expect(isLoopbackHost(host)).toBe(isLocal);
  });
});
