import { describe, expect, it } from "vitest";
import { ConditionCompiler } from "../../../../src/policy/cel/cel.js";
import type { CelExpression } from "../../../../src/policy/cel/condition-expression.js";

/** An expression as one reads it: `_==_(request.path, "/a")`. */
function read({
  const_expr,
  ident_expr,
  select_expr,
  call_expr,
  list_expr,
}: CelExpression): string {
  if (const_expr !== undefined) return Object.values(const_expr).map(literal).join("");
  if (ident_expr !== undefined) return ident_expr.name;
  if (select_expr !== undefined) return `${read(select_expr.operand)}.${select_expr.field}`;
  if (list_expr !== undefined) return `[${list_expr.elements.map(read).join(", ")}]`;
  if (call_expr === undefined) return "nothing";
  const target = call_expr.target === undefined ? "" : `${read(call_expr.target)}.`;
  return `${target}${call_expr.function}(${call_expr.args.map(read).join(", ")})`;
}

function literal(value: unknown): string {
  return JSON.stringify(value);
}

function idsIn(expression: CelExpression): readonly number[] {
  const { id, select_expr, call_expr, list_expr } = expression;
  const parts = [
    ...(select_expr === undefined ? [] : [select_expr.operand]),
    ...(call_expr?.target === undefined ? [] : [call_expr.target]),
    ...(call_expr?.args ?? []),
    ...(list_expr?.elements ?? []),
  ];
  return [id, ...parts.flatMap(idsIn)];
}

const compiler = new ConditionCompiler();

describe("ConditionCompiler.expression()", () => {
  it.each([
    ['request.path == "/a"', '_==_(request.path, "/a")'],
    ['request.headers["x-a"] != "b"', '_!=_(_[_](request.headers, "x-a"), "b")'],
    ['request.headers.a == "b"', '_==_(_[_](request.headers, "a"), "b")'],
    ['"x-a" in request.headers', '@in("x-a", request.headers)'],
    ["has(request.headers.a)", '@in("a", request.headers)'],
    ["has(request.path)", '_!=_(request.path, "")'],
    ['request.method in ["GET", "PUT"]', '@in(request.method, ["GET", "PUT"])'],
    ['request.path.startsWith("/a")', 'request.path.startsWith("/a")'],
    ["size(request.path) > 5", '_>_(size(request.path), "5")'],
    ["request.path.size() <= 5", '_<=_(size(request.path), "5")'],
    ["!(true && false) || true", "_||_(!_(_&&_(true, false)), true)"],
    ["true ? false : true", "_?_:_(true, false, true)"],
    ['source.principal == "a"', '_==_(connection.uri_san_peer_certificate, "a")'],
    ['source.address == "a"', '_==_(source.address, "a")'],
    [
      '["/a", "/b"].exists(p, request.path == p)',
      '_||_(_||_(false, _==_(request.path, "/a")), _==_(request.path, "/b"))',
    ],
    ['["/a"].all(p, request.path != p)', '_&&_(true, _!=_(request.path, "/a"))'],
  ])("writes %s as %s, each part with an id of its own", (text, expected) => {
    const compiled = compiler.expression(text);
    if (compiled.kind === "wrong") throw new Error(compiled.mistake.message);
    expect(read(compiled.expression)).toBe(expected);
    const ids = idsIn(compiled.expression);
    expect(new Set(ids).size).toBe(ids.length);
    expect(Math.min(...ids)).toBe(1);
  });

  it("says what Envoy does not offer, and where", () => {
    const text = 'true && request.path.lowerAscii() == "/a"';
    const compiled = compiler.expression(text);
    const mistake = compiled.kind === "wrong" ? compiled.mistake : undefined;
    expect(mistake).toMatchObject({
      id: "HG212",
      message: expect.stringContaining("lowerAscii()"),
    });
    expect(text.slice(mistake?.start, mistake?.end)).toContain("lowerAscii");
  });

  it("says what no condition may hold", () => {
    expect(compiler.expression("request.pth")).toMatchObject({ mistake: { id: "HG211" } });
    expect(compiler.expression("a ==")).toMatchObject({ mistake: { id: "HG210" } });
  });
});
