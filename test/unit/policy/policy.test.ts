import { describe, expect, it } from "vitest";
import type { Rule } from "../../../src/core/limits/limit.js";
import { parsePolicy } from "../../../src/policy/parse.js";
import { PolicyBuilder } from "../../../src/policy/policy.js";
import { defaultProxies } from "../../../src/policy/proxies/default-proxies.js";

const text = `
domain: shop
descriptors:
  - {key: a, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: b, descriptors: [{key: c, value: d}]}
`;

function rulesOf(yaml: string): readonly Rule[] {
  const parsed = parsePolicy([{ file: "a.yaml", text: yaml }]);
  expect(parsed.kind).toBe("policy");
  return parsed.kind === "policy" ? parsed.rules : [];
}

describe("new PolicyBuilder()", () => {
  it("makes one policy of rules that arrive in pieces, as copies from another thread", () => {
    const builder = new PolicyBuilder("0123456789abcdef");
    builder.addDomains(["quiet", "shop"]);
    for (const rule of rulesOf(text)) builder.add(structuredClone([rule]));
    const policy = builder.finish();
    expect(policy.version).toBe("0123456789abcdef");
    expect([...policy.domains.keys()]).toEqual(["quiet", "shop"]);
    expect(policy.rules.map((rule) => rule.label)).toEqual(["a", "b", "b.c_d"]);
    const entries = [
      { key: "b", value: "x" },
      { key: "c", value: "d" },
    ];
    expect(policy.domains.get("shop")?.match(entries)).toBe(policy.rules[2]);
    expect(policy.domains.get("quiet")?.match(entries)).toBeUndefined();
  });

  it("keeps what holds for proxies, which is what is usual where nobody says it", () => {
    const builder = new PolicyBuilder("1");
    builder.setProxies({ ...defaultProxies, expectedCount: 7 });
    expect(builder.finish().proxies.expectedCount).toBe(7);
    expect(new PolicyBuilder("1").finish().proxies).toBe(defaultProxies);
  });

  it("gives a frozen policy", () => {
    const policy = new PolicyBuilder("1").finish();
    expect(Object.isFrozen(policy)).toBe(true);
    expect(Object.isFrozen(policy.rules)).toBe(true);
  });

  it("freezes metadata, also of rules that another thread has copied", () => {
    const builder = new PolicyBuilder("1");
    const yaml = "{key: a, rate_limit: {unit: day, requests_per_unit: 1}, metadata: {b: [{c: ~}]}}";
    builder.add(structuredClone(rulesOf(`domain: shop\ndescriptors: [${yaml}]`)));
    const metadata = builder.finish().rules[0]?.metadata;
    const list: unknown = metadata?.["b"];
    expect(metadata).toEqual({ b: [{ c: null }] });
    expect([metadata, list, Array.isArray(list) && list[0]].map(Object.isFrozen)).toEqual([
      true,
      true,
      true,
    ]);
  });

  it("fails an assert when a rule arrives out of order", () => {
    const [, second] = rulesOf(text);
    const builder = new PolicyBuilder("1");
    expect(() => builder.add(second === undefined ? [] : [second])).toThrow("order of their index");
  });

  it("fails an assert when it is used after the policy is finished", () => {
    const builder = new PolicyBuilder("1");
    builder.finish();
    expect(() => builder.add([])).toThrow("finished");
    expect(() => builder.addDomains([])).toThrow("finished");
    expect(() => builder.setProxies(defaultProxies)).toThrow("finished");
    expect(() => builder.setQuotas([])).toThrow("finished");
    expect(() => builder.finish()).toThrow("finished");
  });
});
