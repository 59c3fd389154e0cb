import { describe, expect, it } from "vitest";
import { bucketQuery, serviceQuery } from "../../../../src/decide/admission/service-query.js";
import type { DescriptorPart } from "../../../../src/policy/services/descriptor-parts.js";
import type { ServiceDescriptor } from "../../../../src/policy/services/service-rate-limit.js";
import { askedOnce } from "../../../../src/policy/services/service-rate-limit.js";

function made(
  descriptors: readonly ServiceDescriptor[],
  headers: Readonly<Record<string, string>>,
  address = "10.1.2.3:4000",
) {
  const rateLimit = { domain: "shop", inExtProc: false, descriptors };
  return serviceQuery(
    { name: "orders", rateLimit },
    {
      headers: new Map(Object.entries(headers)),
      attributes: new Map([["source.address", address]]),
    },
  );
}

/** The value of one part, or why there is none. */
function valueOfPart(
  part: DescriptorPart,
  headers: Readonly<Record<string, string>> = {},
  address?: string,
): string | undefined {
  const { query, leftOut } = made([askedOnce([part])], headers, address) ?? { leftOut: [] };
  return query?.descriptors[0]?.entries[0]?.value ?? leftOut[0]?.why;
}

describe("serviceQuery()", () => {
  it("is nothing for a service without limits", () => {
    const facts = { headers: new Map<string, string>(), attributes: new Map<string, string>() };
    expect(serviceQuery({ name: "orders", rateLimit: undefined }, facts)).toBeUndefined();
  });

  it("asks each descriptor by its costs, and says which are left out", () => {
    const user = { kind: "header", header: "x-user", key: "user" } as const;
    const plan = { kind: "header", header: "x-plan", key: "plan" } as const;
    const hits = { kind: "fixed", count: 3 } as const;
    const answer = made(
      [
        { ...askedOnce([user]), hits, isRefund: true },
        askedOnce([plan, user]),
        { ...askedOnce([user]), when: "streamDone" },
        { ...askedOnce([user]), hits: { kind: "format", format: "%BYTES_RECEIVED%" } },
      ],
      { "x-user": "ann" },
    );
    const entries = [{ key: "user", value: "ann" }];
    expect(answer).toEqual({
      query: {
        domain: "shop",
        descriptors: [
          { entries, hits: 3, isRefund: true },
          { entries, hits: 1, isRefund: false },
        ],
      },
      leftOut: [
        { index: 1, key: "plan", why: "absent" },
        { index: 2, key: "user", why: "streamDone" },
      ],
    });
    expect(made([askedOnce([plan])], {})?.query).toBeUndefined();
  });

  it("reads a parameter of the query as Envoy decodes it", () => {
    const part = { kind: "query", parameter: "id", key: "id" } as const;
    expect(valueOfPart(part, { ":path": "/a?x=1&id=a%20b" })).toBe("a b");
    expect(valueOfPart(part, { ":path": "/a" })).toBe("absent");
    expect(valueOfPart(part, { ":path": "/a?id=1+1&id=2" })).toBe("1+1");
    expect(valueOfPart(part, { ":path": "/a?id=%zz%4" })).toBe("%zz%4");
    expect(valueOfPart(part, { ":path": "/a?id" })).toBe("");
    expect(valueOfPart(part, { ":path": "/a??id=1" })).toBe("absent");
  });

  it("asks for a header that is there and empty", () => {
    const part = { kind: "header", header: "x-user", key: "user" } as const;
    expect(valueOfPart(part, { "x-user": "" })).toBe("");
    expect(valueOfPart(part)).toBe("absent");
  });

  it.each([
    ["[2001:db8::1]:4000", "2001:db8::1"],
    ["2001:DB8:0:0:1::5", "2001:db8::1:0:0:5"],
    ["fe80::1%2", "fe80::1%2"],
    ["10.1.2.3:4000", "10.1.2.3"],
    ["/run/client.sock", "absent"],
  ])("writes the address %s as Envoy does: %s", (address, text) => {
    expect(valueOfPart({ kind: "remoteAddress", key: "remote_address" }, {}, address)).toBe(text);
  });

  it("masks addresses", () => {
    const part = { kind: "maskedAddress", key: "net", v4PrefixBits: 12, v6PrefixBits: 44 } as const;
    expect(valueOfPart(part)).toBe("10.0.0.0/12");
    expect(valueOfPart(part, {}, "[2001:db8:1:2:3::5]:80")).toBe("2001:db8::/44");
    expect(valueOfPart(part, {}, "2001:db8:1:2:3::5")).toBe("2001:db8::/44");
    expect(valueOfPart(part, {}, "/run/socket")).toBe("absent");
    const whole = { ...part, v4PrefixBits: 32, v6PrefixBits: 128 };
    expect(valueOfPart(whole)).toBe("10.1.2.3/32");
    expect(valueOfPart(whole, {}, "[2001:0:0:1::5]:80")).toBe("2001:0:0:1::5/128");
    expect(valueOfPart({ ...whole, v4PrefixBits: 0 })).toBe("0.0.0.0/0");
  });

  it.each([
    ["exact", "gold", true],
    ["exact", "gol", false],
    ["prefix", "go", true],
    ["suffix", "ld", true],
    ["contains", "ol", true],
    ["contains", "x", false],
    ["present", "", true],
  ] as const)("matches headers by %s %s: %s", (test, text, isMatched) => {
    const matches = [{ name: "x-plan", test, text }];
    const part = { kind: "headerMatch", key: "m", value: "yes", matches } as const;
    const headers = { "x-plan": "gold" };
    expect(valueOfPart({ ...part, isMatch: true }, headers)).toBe(isMatched ? "yes" : "absent");
    expect(valueOfPart({ ...part, isMatch: false }, headers)).toBe(isMatched ? "absent" : "yes");
  });

  it("matches nothing that is not there, and parameters like headers", () => {
    const matches = [{ name: "id", test: "present", text: "" }] as const;
    const part = { kind: "queryMatch", key: "m", value: "yes", isMatch: true, matches } as const;
    expect(valueOfPart(part, { ":path": "/?id=" })).toBe("yes");
    expect(valueOfPart(part, { ":path": "/" })).toBe("absent");
  });

  it("says of what only Envoy knows that it does not", () => {
    const matches = [{ name: "x-plan", test: "regex", text: "g.*" }] as const;
    const metadata = { key: "k", from: "dynamic", namespace: "n", path: ["p"] } as const;
    const unknown: readonly DescriptorPart[] = [
      { kind: "sourceCluster", key: "k" },
      { kind: "expression", key: "k", cel: "request.method" },
      { kind: "metadata", ...metadata, fallback: undefined },
      { kind: "headerMatch", key: "k", value: "yes", isMatch: true, matches },
    ];
    for (const part of unknown) expect(valueOfPart(part)).toBe("unknown");
    expect(valueOfPart({ kind: "metadata", ...metadata, fallback: "none" })).toBe("none");
    expect(valueOfPart({ kind: "destinationCluster", key: "k" })).toBe("orders");
  });
});

describe("bucketQuery()", () => {
  it("takes a part's default where the request has none, or an empty one", () => {
    const plan = { kind: "header", header: "x-plan", key: "plan" } as const;
    const planOf = (fallback: string | undefined, headers: Readonly<Record<string, string>>) => {
      const bucket = [{ ...plan, fallback }];
      const quota = { domain: "shop", services: undefined, match: [], bucket };
      const facts = { headers: new Map(Object.entries(headers)), attributes: new Map() };
      return bucketQuery(quota, "orders", facts)?.descriptors[0]?.entries[0]?.value;
    };
    expect(planOf("free", { "x-plan": "gold" })).toBe("gold");
    expect(planOf("free", { "x-plan": "" })).toBe("free");
    expect(planOf("free", {})).toBe("free");
    expect(planOf(undefined, { "x-plan": "" })).toBeUndefined();
    expect(planOf(undefined, {})).toBeUndefined();
  });
});
