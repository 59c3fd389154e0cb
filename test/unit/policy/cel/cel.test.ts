import { Environment } from "@marcbachmann/cel-js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScalarValue } from "../../../../src/core/admission/exchange-messages.js";
import {
  type Condition,
  ConditionCompiler,
  conditionCharsMax,
  conditionDepthMax,
  conditionNodesMax,
} from "../../../../src/policy/cel/cel.js";
import { conditionStepsMax } from "../../../../src/policy/cel/condition-parts.js";
import { factFields, type RequestFacts } from "../../../../src/policy/cel/request-facts.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const compiler = new ConditionCompiler();

function conditionOf(text: string): Condition {
  const compiled = compiler.compile(text);
  if (compiled.kind === "wrong") throw new Error(`${text}: ${compiled.mistake.message}`);
  return compiled.condition;
}

function mistakeOf(text: string) {
  const compiled = compiler.compile(text);
  if (compiled.kind === "condition") throw new Error(`${text} is right`);
  const { start, end, ...mistake } = compiled.mistake;
  return { ...mistake, at: text.slice(start, end), start };
}

function request(
  headers: Readonly<Record<string, string>>,
  attributes: Readonly<Record<string, ScalarValue>> = {},
): RequestFacts {
  return {
    headers: new Map(Object.entries(headers)),
    attributes: new Map(Object.entries(attributes)),
  };
}

const checkout = request(
  {
    ":path": "/checkout/pay?user=me#top",
    ":authority": "Shop.example",
    ":method": "POST",
    ":scheme": "https",
    "x-request-id": "r1",
    "x-plan": "paid",
    "x-city": "Malm\u00f6 \ud83c\udf09",
  },
  {
    "request.protocol": "HTTP/2",
    "source.address": "10.0.0.1:1234",
    "connection.uri_san_peer_certificate": "spiffe://shop/web",
    "request.size": 5,
  },
);

describe("ConditionCompiler", () => {
  it.each([
    ["true", true],
    ['request.path == "/checkout/pay?user=me#top"', true],
    ['request.url_path == "/checkout/pay"', true],
    ['request.query == "user=me"', true],
    ['request.host.lowerAscii() == "shop.example"', true],
    ['request.host == "shop.example"', false],
    ['request.method in ["PUT", "POST"]', true],
    ["size(request.method) in [3, 5]", false],
    ['request.scheme == "https" && request.id == "r1"', true],
    ['request.protocol == "HTTP/2"', true],
    ['source.address.startsWith("10.")', true],
    ['source.principal.endsWith("/web")', true],
    ['request.headers["x-plan"] == "paid"', true],
    ['"x-plan" in request.headers', true],
    ['"x-none" in request.headers', false],
    ['!("x-none" in request.headers)', true],
    ["has(request.headers.missing)", false],
    ["has(request.query)", true],
    ['request.path.contains("pay")', true],
    ['["/cart", "/checkout"].exists(p, request.path.startsWith(p))', true],
    ['["/cart", "/checkout"].all(p, request.path.startsWith(p))', false],
    ['["pa", "id"].all(p, request.headers["x-plan"].contains(p))', true],
    ['[].exists(p, p == "a")', false],
    ['["a", "b"].exists(p, ["b", "c"].exists(q, p == q))', true],
    ['size(request.headers["x-city"]) == 7', true],
    ["request.method.size() >= 4 ? true : false", true],
    ['request.method < "PUT" && request.method > "GET" && request.method <= "POST"', true],
    ["1 != 2", true],
  ])("says of %s: %s", (text, isTrue) => {
    expect(conditionOf(text).holds(checkout)).toBe(isTrue);
  });

  it.each([
    'request.headers["x-none"] == "a"',
    'request.headers["x-none"] != "a"',
    '!(request.headers["x-none"] == "a")',
    'request.headers["x-none"] == "a" ? true : true',
    'request.headers["x-none"] in ["a"]',
    'request.headers["x-none"].startsWith("a") && true',
    '["a", "b"].all(p, request.headers["x-none"] == p)',
    'size(request.headers["x-none"]) == 0',
  ])("does not hold where the request lacks what it asks for: %s", (text) => {
    expect(conditionOf(text).holds(checkout)).toBe(false);
  });

  it.each([
    ['request.headers["x-none"] == "a" || true', true],
    ['true || request.headers["x-none"] == "a"', true],
    ['!(request.headers["x-none"] == "a" && false)', true],
  ])("holds where one side decides alone: %s", (text, isTrue) => {
    expect(conditionOf(text).holds(checkout)).toBe(isTrue);
  });

  it("takes an attribute of another kind for one that is not there", () => {
    const facts = request({}, { "source.address": 5 });
    expect(conditionOf('source.address == "5" || true').holds(facts)).toBe(true);
    expect(conditionOf("has(source.address)").holds(facts)).toBe(false);
  });

  it("knows which headers and attributes it reads, and those of its lists", () => {
    const text =
      'request.headers["x-user"] == "a" || "x-plan" in request.headers || ' +
      '["a"].exists(p, request.query.contains(p) && source.principal == p)';
    const { headerNames, attributeNames } = conditionOf(text);
    expect([...headerNames].sort()).toEqual([":path", "x-plan", "x-user"]);
    expect([...attributeNames]).toEqual(["connection.uri_san_peer_certificate"]);
  });
});

describe("ConditionCompiler, of a wrong text", () => {
  it.each([
    ["", "HG210", ""],
    ["request.path ==", "HG210", ""],
    ['request.path == "a', "HG210", '"a'],
    ["request.path = 'a'", "HG210", "="],
    ["(true", "HG210", ""],
    ["true)", "HG210", ")"],
    ["request.path", "HG211", "request.path"],
    ["1", "HG211", "1"],
    ["reqest.path == 'a'", "HG211", "reqest"],
    ["request.pth == 'a'", "HG211", "pth"],
    ["request.path == 1", "HG211", "request.path == 1"],
    ["request.path.startWith('a')", "HG211", "request.path.startWith('a')"],
    ["request.path.startsWith(1)", "HG211", "request.path.startsWith(1)"],
    ["request.headers['a'].b == 'a'", "HG211", "b"],
    ["request.path.matches('a+')", "HG212", "request.path.matches('a+')"],
    ["request.path.contains(request.query)", "HG212", "request.query"],
    ["request.path + 'a' == 'b'", "HG212", "request.path + 'a'"],
    ["size(request.path) + 1 == 2", "HG212", "size(request.path) + 1"],
    ["-1 < 2", "HG212", "-1"],
    ["1.5 < 2.5", "HG212", "1.5"],
    ["b'a' == b'b'", "HG212", "b'a'"],
    ["9007199254740992 > 1", "HG212", "9007199254740992"],
    ["request.headers[request.path] == 'a'", "HG212", "request.headers[request.path]"],
    ["request.path in request.headers", "HG212", "request.path"],
    ["request.headers.size() > 1", "HG212", "request.headers"],
    ["request['path'] == 'a'", "HG212", "request['path']"],
    ["request.headers == {'a': 'b'}", "HG212", "request.headers"],
    ["['a'] == ['a']", "HG212", "['a']"],
    ["request.path in [request.query]", "HG212", "request.query"],
    ["['a'].exists_one(p, p == 'a')", "HG212", "['a'].exists_one(p, p == 'a')"],
    ["['a'].map(p, p).exists(p, p == 'a')", "HG212", "['a'].map(p, p).exists(p, p == 'a')"],
    ["cel.bind(x, request.path, x == 'a')", "HG212", "cel.bind(x, request.path, x == 'a')"],
    ["dyn(request.path) == 'a'", "HG212", "dyn(request.path)"],
    ["timestamp(request.path) == timestamp('a')", "HG212", "timestamp(request.path)"],
    ["request.headers['X-User'] == 'a'", "HG223", "request.headers['X-User']"],
    ["'x user' in request.headers", "HG223", "'x user'"],
  ])("refuses %s as %s at %s", (text, id, at) => {
    expect(mistakeOf(text)).toMatchObject({ id, at });
  });

  it.each([
    ["reqest.path == 'a'", "request"],
    ["request.pth == 'a'", "path"],
    ["request.path.startWith('a')", "startsWith"],
    ["request.headers['X-User'] == 'a'", "x-user"],
  ])("suggests for %s: %s", (text, suggestion) => {
    expect(mistakeOf(text).suggestion).toBe(suggestion);
  });

  it("points behind what ends too early", () => {
    expect(mistakeOf("request.path ==")).toMatchObject({ message: /ends too early/, start: 15 });
  });

  it("bounds length, parts, depth and steps, and takes what reaches each bound", () => {
    const padded = (length: number): string => "true".padEnd(length);
    expect(conditionOf(padded(conditionCharsMax)).holds(checkout)).toBe(true);
    expect(mistakeOf(padded(conditionCharsMax + 1)).id).toBe("HG213");
    const nested = (depth: number): string => `${"(".repeat(depth)}true${")".repeat(depth)}`;
    expect(conditionOf(nested(conditionDepthMax - 1)).holds(checkout)).toBe(true);
    expect(mistakeOf(nested(conditionDepthMax)).id).toBe("HG213");
    // A junction has a part more than it has sides, less one; spaces would be too long.
    const sides = conditionNodesMax / 2 + 1;
    expect(mistakeOf(Array.from({ length: sides }, () => "1").join("<")).id).toBe("HG213");
    // One of the list, then four of each item: itself, and a test of three parts.
    const list = (count: number): string =>
      `[${Array.from({ length: count }, () => "1").join(",")}].exists(p,p==1)`;
    const itemsMax = Math.floor((conditionStepsMax - 1) / 4);
    expect(conditionOf(list(itemsMax)).holds(checkout)).toBe(true);
    expect(mistakeOf(list(itemsMax + 1))).toMatchObject({ id: "HG213", message: /too many steps/ });
    const deep = `[1,2,3,4,5,6,7].exists(a,[1,2,3,4,5,6,7].exists(b,[1,2,3,4,5].exists(c,a==b)))`;
    expect(mistakeOf(deep).id).toBe("HG213");
  });

  it("says at most a short piece of it", () => {
    const long = `request.path.${"x".repeat(900)}(1)`;
    expect(mistakeOf(long).message.length).toBeLessThan(160);
  });
});

/** Texts that are conditions, right or wrong in their types, over a small vocabulary. */
const conditionTexts: fc.Arbitrary<string> = fc.letrec<{
  flag: string;
  text: string;
  whole: string;
}>((tie) => ({
  text: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('"a"', '"ab"', '""', '"/A"', "request.path", "request.query", "source.address"),
    fc.constantFrom('request.headers["a"]', 'request.headers["b"]', "request.headers.c", "p"),
    tie("text").map((text) => `${text}.lowerAscii()`),
    fc.tuple(tie("flag"), tie("text"), tie("text")).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
  ),
  whole: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom("0", "1", "2"),
    tie("text").map((text) => `size(${text})`),
  ),
  flag: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      "true",
      '"a" in request.headers',
      "has(request.headers.b)",
      "has(request.path)",
    ),
    fc
      .tuple(tie("text"), fc.constantFrom("==", "!=", "<", "<="), tie("text"))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(tie("whole"), fc.constantFrom("==", "!=", ">", ">="), tie("whole"))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(tie("text"), fc.constantFrom("startsWith", "endsWith"), tie("text"))
      .map(([a, name, b]) => `${a}.${name}(${b})`),
    tie("text").map((text) => `${text}.contains("a")`),
    tie("text").map((text) => `${text} in ["a", "ab"]`),
    tie("flag").map((flag) => `!${flag}`),
    fc
      .tuple(tie("flag"), fc.constantFrom("&&", "||"), tie("flag"))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(fc.constantFrom("exists", "all"), tie("flag"))
      .map(([name, flag]) => `["a", "ab"].${name}(p, ${flag})`),
  ),
})).flag;

describe("ConditionCompiler, beside the library's own evaluator", () => {
  /** As the library wants it: `request.headers.size()` and the like would see these. */
  function libraryContext(facts: RequestFacts): Record<string, unknown> {
    const fieldsOf = (variable: "request" | "source"): Record<string, unknown> =>
      Object.fromEntries(
        [...factFields[variable]].flatMap(([name, field]) => {
          const value = field.read(facts);
          return value === undefined ? [] : [[name, value]];
        }),
      );
    return {
      request: { ...fieldsOf("request"), headers: facts.headers },
      source: fieldsOf("source"),
    };
  }

  const environment = new Environment();
  for (const [variable, fields] of Object.entries(factFields)) {
    const texts = Object.fromEntries([...fields.keys()].map((name) => [name, "string"]));
    const headers = variable === "request" ? { headers: "map<string, string>" } : {};
    environment.registerVariable(variable, { schema: { ...texts, ...headers } });
  }

  const values = fc.constantFrom("a", "ab", "A", "");
  const requests = fc
    .record({ a: values, b: values, c: values, ":path": values }, { requiredKeys: [] })
    .map((headers) => request(headers, { "source.address": "a" }));

  it("comes to the same, also where something is not there", () => {
    let comparedCount = 0;
    fc.assert(
      fc.property(conditionTexts, requests, (text, facts) => {
        const compiled = compiler.compile(text);
        if (compiled.kind === "wrong") {
          // Only for a `p` outside its list, or for size.
          expect(["HG211", "HG213"]).toContain(compiled.mistake.id);
          return;
        }
        const parsed = environment.parse(text);
        expect(parsed.check().valid).toBe(true);
        let wanted: unknown;
        try {
          wanted = parsed(libraryContext(facts));
        } catch {
          wanted = false;
        }
        comparedCount += 1;
        expect(compiled.condition.holds(facts), text).toBe(wanted);
      }),
      propertyRuns(300),
    );
    expect(comparedCount).toBeGreaterThan(metCount(100));
  });
});
