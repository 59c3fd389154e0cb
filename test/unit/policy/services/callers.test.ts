import { describe, expect, it } from "vitest";
import { callerHashRatio } from "../../../../src/core/admission/priority.js";
import { descriptorText, requestKey } from "../../../../src/policy/services/callers.js";

type RequestKey = Parameters<typeof requestKey>[0];

function keyOf(by: RequestKey, fields: Readonly<Record<string, string>>): string {
  const map = new Map(Object.entries(fields));
  return requestKey(by, { headers: map, attributes: map });
}

describe("requestKey()", () => {
  it.each([
    ["10.0.0.1:5000", "10.0.0.1"],
    ["10.0.0.1", "10.0.0.1"],
    ["[2001:db8::1]:5000", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["::1", "::1"],
    ["[fe80::1%2]:5000", "fe80::1%2"],
    ["[broken:5000", "[broken:5000"],
    ["/run/a:b.sock", "/run/a:b.sock"],
    ["", ""],
  ])("of %j is the address %j, without a port and brackets", (address, key) => {
    expect(keyOf({ kind: "remoteAddress" }, { "source.address": address })).toBe(key);
  });

  it("is a header's value or the route's name, and empty where there is none", () => {
    expect(keyOf({ kind: "header", header: "x-user" }, { "x-user": "a" })).toBe("a");
    expect(keyOf({ kind: "route" }, { "xds.route_name": "cart" })).toBe("cart");
    expect(keyOf({ kind: "header", header: "x-user" }, {})).toBe("");
    expect(keyOf({ kind: "route" }, {})).toBe("");
    expect(keyOf({ kind: "remoteAddress" }, {})).toBe("");
  });
});

describe("descriptorText()", () => {
  const user = { kind: "header", header: "x-user", key: "user" } as const;
  const address = { kind: "remoteAddress", key: "remote_address" } as const;

  it.each([
    [user, { "x-user": "ann" }, "ann"],
    [user, { "x-user": "" }, ""],
    [user, {}, undefined],
    [address, { "source.address": "[2001:db8::1]:5000" }, "2001:db8::1"],
    [address, { "source.address": "/run/client.sock" }, undefined],
    [address, { "source.address": "@client" }, undefined],
    [address, {}, undefined],
    [{ kind: "fixed", key: "plan", value: "free" }, {}, "free"],
  ] as const)("of %j in %j is %j", (part, fields, text) => {
    const map = new Map<string, string>(Object.entries(fields));
    expect(descriptorText(part, { headers: map, attributes: map })).toBe(text);
  });
});

describe("callerHashRatio()", () => {
  it("is the same in every process", () => {
    expect(callerHashRatio("user-1")).toBe(callerHashRatio("user-1"));
    expect(callerHashRatio("user-1")).toBeCloseTo(0.6, 0);
  });

  it("spreads callers evenly, also those that differ little", () => {
    const count = 10_000;
    const tenths = new Array<number>(10).fill(0);
    const outside: number[] = [];
    for (let i = 0; i < count; i += 1) {
      const ratio = callerHashRatio(`10.0.${i >> 8}.${i & 255}`);
      if (!(ratio < 1)) outside.push(ratio);
      const tenth = Math.floor(ratio * 10);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    expect(outside).toEqual([]);
    // Each has 1,000 on average, with a standard deviation of 30.
    for (const inTenth of tenths) expect(Math.abs(inTenth - count / 10)).toBeLessThan(150);
  });
});
