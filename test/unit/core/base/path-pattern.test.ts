import { describe, expect, it } from "vitest";
import { isPlainPath, matchesPath } from "../../../../src/core/base/path-pattern.js";

describe("matchesPath()", () => {
  it.each([
    ["/healthz", "/healthz", true],
    ["/healthz", "/healthz/", false],
    ["/healthz", "/healthz/z", false],
    ["/healthz", "/healthzz", false],
    ["/healthz", "/healthz;a=b", false],
    ["/healthz", "/", false],
    ["/healthz", "/Healthz", false],
    ["/healthz/", "/healthz", false],
    ["/healthz/", "/healthz/z", false],
    ["/static/*", "/static", true],
    ["/static/*", "/static/", true],
    ["/static/*", "/static/a/b.css", true],
    ["/static/*", "/statics", false],
    ["/static/*", "/", false],
    ["/.well-known/*", "/.well-known/jwks.json", true],
    ["/*", "/anything/at/all", true],
    ["/*", "/", true],
    ["/static/*", "/static/../orders", false],
    ["/static/*", "/static/..", false],
    ["/static/*", "/static/%2E%2e/orders", false],
    ["/static/*", "/static/.%2e/orders", false],
    ["/static/*", "/static/..;a=b/orders", false],
    ["/static/*", "/static/..%2forders", false],
    ["/static/*", "/static/..\\orders", false],
    ["/static/*", "/static//orders", false],
  ])("of %s and %s says %s", (pattern, path, isMatch) => {
    expect(matchesPath(["/other", pattern], path)).toBe(isMatch);
  });

  it("matches nothing without patterns", () => {
    expect(matchesPath([], "/")).toBe(false);
  });
});

describe("isPlainPath()", () => {
  it.each(["/", "/a.b/c", "/.well-known/a", "/a..b", "/a%20b", "/..."])("takes %s", (path) => {
    expect(isPlainPath(path)).toBe(true);
  });
});
