import { describe, expect, it } from "vitest";
import { ConditionCompiler } from "../../../../src/policy/cel/cel.js";
import { alternativesMax } from "../../../../src/policy/cel/condition-alternatives.js";

const compiler = new ConditionCompiler();

/** Alternatives in words: `:path prefix /a & x-b present | ...`. */
function words(condition: string): string | undefined {
  return compiler
    .alternatives(condition)
    ?.map((tests) =>
      tests
        .map(({ fact, test, text }) => {
          const name = fact.kind === "header" ? fact.name : fact.kind;
          return `${name} ${test} ${text}`.trimEnd();
        })
        .join(" & "),
    )
    .join(" | ");
}

describe("ConditionCompiler.alternatives()", () => {
  it.each([
    ['request.path.startsWith("/a")', ":path prefix /a"],
    ['request.url_path == "/a"', "urlPath exact /a"],
    ['"/a" == request.url_path', "urlPath exact /a"],
    ['request.host.endsWith(".example")', ":authority suffix .example"],
    ['request.scheme == "https"', ":scheme exact https"],
    ['request.headers["x-a"].contains("b")', "x-a contains b"],
    ['request.headers.plan == "free"', "plan exact free"],
    ['"x-a" in request.headers', "x-a present"],
    ["has(request.headers.plan)", "plan present"],
    ['request.method in ["GET", "HEAD"]', ":method exact GET | :method exact HEAD"],
    [
      'request.method == "GET" && (request.path == "/a" || request.path == "/b")',
      ":method exact GET & :path exact /a | :method exact GET & :path exact /b",
    ],
  ])("understands %s", (condition, expected) => {
    expect(words(condition)).toBe(expected);
  });

  it.each([
    'request.path != "/a"',
    '!("x-a" in request.headers)',
    "size(request.path) > 3",
    'source.address == "10.0.0.1"',
    'request.query == "a=b"',
    'request.protocol == "HTTP/2"',
    'request.path.lowerAscii() == "/a"',
    "request.path == request.host",
    'request.headers["x-a"] == ""',
    'request.path.startsWith("")',
    "has(request.path)",
    '["/a", "/b"].exists(p, request.path.startsWith(p))',
    'request.path == "/a" && request.path != "/b"',
    'request.path != "/a" || request.path == "/b"',
    "true",
    "not a condition (",
  ])("leaves %s to others", (condition) => {
    expect(words(condition)).toBeUndefined();
  });

  it("understands no more alternatives than each may become routes", () => {
    const list = (count: number): string =>
      JSON.stringify(Array.from({ length: count }, (_, index) => `m${index}`));
    const half = alternativesMax / 2;
    const both = (one: number, other: number): string =>
      `request.method in ${list(one)} && request.host in ${list(other)}`;
    expect(compiler.alternatives(`request.method in ${list(alternativesMax)}`)).toHaveLength(
      alternativesMax,
    );
    expect(words(`request.method in ${list(alternativesMax + 1)}`)).toBeUndefined();
    expect(compiler.alternatives(both(half, 2))).toHaveLength(alternativesMax);
    expect(words(both(half + 1, 2))).toBeUndefined();
  });
});
