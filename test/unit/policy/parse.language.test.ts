import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPattern, type Rule } from "../../../src/core/limits/limit.js";
import { metadataCharsMax, metadataDepthMax } from "../../../src/policy/limits/metadata.js";
import { replacesMax } from "../../../src/policy/limits/replaces.js";
import { patternsPerKeyMax } from "../../../src/policy/limits/siblings.js";
import { type ParsedPolicy, type ParseOptions, parsePolicy } from "../../../src/policy/parse.js";
import { metCount, propertyRuns } from "../../support/seeds.js";

function parse(text: string, options?: ParseOptions): ParsedPolicy {
  return parsePolicy([{ file: "a.yaml", text }], options);
}

function idsOf(parsed: ParsedPolicy): readonly string[] {
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

function rulesOf(parsed: ParsedPolicy): readonly Rule[] {
  return parsed.kind === "policy" ? parsed.rules : [];
}

/** A ratelimit file of one descriptor with a limit. */
function descriptorText(names: string): string {
  const limit = "rate_limit: {unit: day, requests_per_unit: 1}";
  return `domain: a\ndescriptors: [{key: k, ${limit}, ${names}}]`;
}

describe("parsePolicy(), its options", () => {
  const sources = ["a", "b"].map((key) => ({
    file: `${key}.yaml`,
    text: `domain: shop\ndescriptors: [{key: ${key}}]`,
  }));

  it("refuses a domain of several files, unless they are to be merged", () => {
    expect(idsOf(parsePolicy(sources))).toEqual(["HG150"]);
    const merged = parsePolicy(sources, { mergesDomains: true });
    expect(merged).toMatchObject({ domains: ["shop"], rules: [{ label: "a" }, { label: "b" }] });
  });

  it("counts the patterns of a domain over its files", () => {
    const half = (first: number): string => {
      const items = Array.from({ length: patternsPerKeyMax / 2 }, (_, i) => `{key: ${first + i}*}`);
      return `domain: shop\ndescriptors: [${items.join(", ")}]`;
    };
    const files = [half(1_000), half(2_000)].map((text, i) => ({ file: `${i}.yaml`, text }));
    expect(parsePolicy(files, { mergesDomains: true }).kind).toBe("policy");
    const more = { file: "more.yaml", text: 'domain: shop\ndescriptors: [{key: "z*"}]' };
    const problems = parsePolicy([...files, more], { mergesDomains: true });
    expect(problems).toMatchObject({ problems: [{ id: "HG160", file: "more.yaml" }] });
  });

  it("takes one dialect only where it is told so", () => {
    const policy = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec: {}";
    expect(idsOf(parse(policy, { onlyDialect: "ratelimit" }))).toEqual(["HG111"]);
    expect(parse("domain: a", { onlyDialect: "ratelimit" }).kind).toBe("policy");
    expect(idsOf(parse("domain: a", { onlyDialect: "headgate" }))).toEqual(["HG111"]);
  });
});

describe("parsePolicy(), the bounds of the language", () => {
  it("reads as many replaced names as a limit may have", () => {
    const text = (count: number): string => {
      const names = Array.from({ length: count }, (_, i) => `{name: n${i}}`);
      return descriptorText("").replace("unit: day", `unit: day, replaces: [${names.join(", ")}]`);
    };
    expect(rulesOf(parse(text(replacesMax)))[0]?.replaces).toHaveLength(replacesMax);
    expect(idsOf(parse(text(replacesMax + 1)))).toEqual(["HG160"]);
  });

  it("reads metadata up to its longest and deepest", () => {
    const long = (count: number): string => descriptorText(`metadata: {a: "${"x".repeat(count)}"}`);
    const frame = JSON.stringify({ a: "" }).length;
    expect(parse(long(metadataCharsMax - frame)).kind).toBe("policy");
    expect(idsOf(parse(long(metadataCharsMax - frame + 1)))).toEqual(["HG135"]);
    const deep = (levels: number): string =>
      descriptorText(`metadata: ${"{a: ".repeat(levels - 1)}{}${"}".repeat(levels - 1)}`);
    expect(parse(deep(metadataDepthMax)).kind).toBe("policy");
    expect(idsOf(parse(deep(metadataDepthMax + 1)))).toEqual(["HG135"]);
    const lists = `metadata: {a: ${"[".repeat(metadataDepthMax)}${"]".repeat(metadataDepthMax)}}`;
    expect(idsOf(parse(descriptorText(lists)))).toEqual(["HG135"]);
  });
});

describe("parsePolicy() of merge keys", () => {
  const limit = "{unit: day, requests_per_unit: 5, name: daily}";

  it("reads what is merged as what is written", () => {
    const merged = `domain: a
descriptors:
- {key: a, rate_limit: &l ${limit}}
- {key: b, rate_limit: {<<: *l, unit: hour}}
- {key: c, rate_limit: {name: hourly, <<: [{unit: hour}, *l]}}`;
    const written = `domain: a
descriptors:
- {key: a, rate_limit: ${limit}}
- {key: b, rate_limit: {name: daily, requests_per_unit: 5, unit: hour}}
- {key: c, rate_limit: {name: hourly, requests_per_unit: 5, unit: hour}}`;
    expect(rulesOf(parse(merged))).toHaveLength(3);
    expect(parse(merged)).toEqual(parse(written));
  });

  it("merges no more than aliases may stand for", () => {
    const items = Array.from({ length: 400 }, () => "{key: k}").join(", ");
    const uses = Array.from({ length: 200 }, (_, i) => `{key: u${i}, <<: *big}`).join(", ");
    const text = `domain: a\ndescriptors: [&big {key: big, descriptors: [${items}]}, ${uses}]`;
    expect(idsOf(parse(text))).toEqual(["HG113"]);
  });
});

/** Any value a name may be given, right or wrong. */
const anyValue = fc.constantFrom(
  "",
  "~",
  "true",
  "no",
  "a",
  "a*",
  '"*"',
  "0",
  "7",
  "1.5",
  "day",
  "MONTH",
  "UTC",
  "10d",
  "gcra",
  "fixed_window",
  "settle",
  "ietf",
  "[]",
  "{}",
  "{name: a}",
  "[{name: a}]",
  "[{name: b}, {name: n}]",
  "{unit: day, requests_per_unit: 3}",
  "{unit: day, requests_per_unit: 3, name: n}",
  "{unit: day, requests_per_unit: 3, name: n, replaces: [{name: n}]}",
  "{unlimited: true, name: a, replaces: [{name: n}]}",
  "[{unit: day, requests_per_unit: 3, name: n}, {period: 5s, requests_per_unit: 1}]",
);

const descriptorNames = [
  "key",
  "value",
  "rate_limit",
  "rate_limits",
  "shadow_mode",
  "quota_mode",
  "detailed_metric",
  "value_to_metric",
  "share_threshold",
  "metadata",
  "headers",
  "on_store_failure",
  "<<",
  "nonsense",
];

const someFields = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...descriptorNames), anyValue), {
    selector: ([name]) => name,
    maxLength: 6,
  })
  .map((pairs) => pairs.map(([name, value]) => `${name}: ${value}`));

/** Often none, so that some of a few hundred policies are sound. */
const fields = fc.oneof(someFields, fc.constant([]));

/** Mostly right: a key, and some names beside it. */
function descriptorsOver(below: fc.Arbitrary<readonly string[]>): fc.Arbitrary<string> {
  return fc.tuple(fc.constantFrom("k", "k*", "l"), fields, below).map(([key, names, items]) => {
    const own = names.filter((name) => !name.startsWith("key:"));
    return `{${[`key: ${key}`, ...own, `descriptors: [${items.join(", ")}]`].join(", ")}}`;
  });
}

const leaves = descriptorsOver(fc.constant([]));
const descriptors = descriptorsOver(fc.array(leaves, { maxLength: 2 }));

function expectSound(rule: Rule, index: number): void {
  expect(rule.index).toBe(index);
  const { path, sharePatterns, metricPath, replaces, effect } = rule;
  if (sharePatterns !== undefined) {
    expect(sharePatterns).toHaveLength(path.length);
    expect(sharePatterns.some((pattern) => pattern !== undefined)).toBe(true);
    sharePatterns.forEach((pattern, i) => {
      const step = path[i];
      if (pattern !== undefined) expect(step !== undefined && isPattern(step)).toBe(true);
    });
  }
  if (metricPath !== undefined) expect(metricPath).toHaveLength(path.length);
  if (effect.kind === "none") expect(Object.keys(rule)).toHaveLength(5);
  if (replaces === undefined) return;
  expect(new Set(replaces).size).toBe(replaces.length);
  const own = effect.kind === "limited" ? effect.limits.map(({ name }) => name) : [];
  expect(replaces.filter((name) => own.includes(name))).toEqual([]);
}

describe("parsePolicy() of any text in the language's words", () => {
  const heads = {
    ratelimit: (items: string) => `domain: d\ndescriptors: [${items}]`,
    headgate: (items: string) =>
      [
        "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}",
        `spec: {rateLimits: [{domain: d, descriptors: [${items}]}]}`,
      ].join("\n"),
  };

  it.each(Object.entries(heads))("gives sound rules, or problems (%s)", (_, head) => {
    let soundCount = 0;
    fc.assert(
      fc.property(fc.array(descriptors, { minLength: 1, maxLength: 3 }), (items) => {
        const parsed = parse(head(items.join(", ")));
        rulesOf(parsed).forEach(expectSound);
        if (parsed.kind === "policy") soundCount += 1;
        expect(parsed.kind === "policy" || parsed.problems.length > 0).toBe(true);
        expect(structuredClone(parsed)).toEqual(parsed);
      }),
      propertyRuns(500),
    );
    expect(soundCount).toBeGreaterThan(metCount(2));
  });
});
