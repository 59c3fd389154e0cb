import { describe, expect, it } from "vitest";
import { isPlainPath, matchesPath } from "../../../src/policy/path-prefix.js";

describe("matchesPath()", () => {
  it.each([
    ["/healthz", "/healthz", true],
    ["/healthz", "/healthz/", true],
    ["/healthz", "/healthz/db", true],
    ["/healthz", "/healthzz", false],
    ["/healthz", "/", false],
    ["/healthz", "/Healthz", false],
    ["/grpc.health.v1.Health/", "/grpc.health.v1.Health/Check", true],
    ["/grpc.health.v1.Health/", "/grpc.health.v1.Health", false],
    ["/.well-known", "/.well-known/jwks.json", true],
    ["/", "/anything/at/all", true],
    ["/healthz", "/healthz/../orders", false],
    ["/healthz", "/healthz/..", false],
    ["/healthz", "/healthz/%2E%2e/orders", false],
    ["/healthz", "/healthz/.%2e/orders", false],
    ["/healthz", "/healthz/..;a=b/orders", false],
    ["/healthz", "/healthz/..%2forders", false],
    ["/healthz", "/healthz/..\\orders", false],
    ["/healthz", "/healthz//orders", false],
  ])("of %s and %s says %s", (prefix, path, isMatch) => {
    expect(matchesPath(["/other", prefix], path)).toBe(isMatch);
  });

  it("matches nothing without prefixes", () => {
    expect(matchesPath([], "/")).toBe(false);
  });
});

describe("isPlainPath()", () => {
  it.each(["/", "/a.b/c", "/.well-known/a", "/a..b", "/a%20b", "/..."])("takes %s", (path) => {
    expect(isPlainPath(path)).toBe(true);
  });
});
