import { describe, expect, it } from "vitest";
import type { Rule } from "../../../../src/core/limits/limit.js";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { quotasMax } from "../../../../src/policy/quotas/quota-list.js";
import {
  quotaClassesMax,
  quotaDefaultsMax,
  quotaPartsMax,
  quotaWeightBounds,
} from "../../../../src/policy/quotas/quota-parts.js";
import type { QuotaPolicy } from "../../../../src/policy/quotas/quota-policy.js";
import { callsShareBounds } from "../../../../src/policy/quotas/quota-policy.js";
import {
  quotaBodyCharsMax,
  quotaHeadersMax,
  quotaHitsPerHourMin,
} from "../../../../src/policy/quotas/quota-settings.js";

/** A policy of quotas, each written as the inside of braces, beside a limit by tenant. */
function parse(quotas: readonly string[], more = ""): ParsedPolicy {
  const text = [
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:",
    "  rateLimits:",
    "    - domain: shop",
    "      on_store_failure: deny",
    "      descriptors: [{key: tenant, rate_limit: {unit: second, requests_per_unit: 100}}]",
    "  services: [{name: orders}, {name: search}]",
    "  quotas:",
    ...quotas.map((quota) => `    - {${quota}}`),
    more,
  ].join("\n");
  return parsePolicy([{ file: "a.yaml", text }]);
}

const tenants = "name: q, domain: shop, bucket: [{header: x, as: tenant}]";
const rated = "name: q, domain: shop, bucket: [{header: x, as: own}]";

function idsOf(...quotas: readonly string[]): readonly string[] {
  const parsed = parse(quotas);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

function quotaOf(quota: string): QuotaPolicy {
  const parsed = parse([quota]);
  const [first] = parsed.kind === "policy" ? parsed.quotas : [];
  if (first === undefined) throw new Error(`a wrong quota: ${JSON.stringify(parsed)}`);
  return first;
}

function rulesOf(quota: string): readonly Rule[] {
  const parsed = parse([quota]);
  return parsed.kind === "policy" ? parsed.rules : [];
}

describe("readQuotas()", () => {
  it("makes a rate of a quota's own a limit of its domain, which it is called by", () => {
    const rules = rulesOf(`${rated}, rate: {hits: 5, period: 1m}`);
    expect(rules.at(-1)).toMatchObject({
      domain: "shop",
      path: [{ key: "own" }],
      label: "own",
      index: 1,
      effect: {
        kind: "limited",
        limits: [{ name: "q", hits: 5, periodUs: 60_000_000, burst: 5, onStoreFailure: "deny" }],
      },
    });
    const dry = rulesOf(`${rated}, rate: {hits: 5, period: 1m, burst: 7, dryRun: true}`);
    expect(dry.at(-1)?.effect).toMatchObject({ limits: [{ burst: 7, role: "shadow" }] });
  });

  it("lets a quota's own limit be replaced by its name, and met by a service's calls", () => {
    const text = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: a}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: vip, rate_limit: {unit: second, requests_per_unit: 9, replaces: [{name: q}]}}
  services:
    - {name: orders, rateLimit: {domain: shop, descriptors: [[{header: x, as: own}]]}}
  quotas: [{${rated}, match: [{name: hot, present: true}], rate: {hits: 5, period: 1s}}]
`;
    expect(parsePolicy([{ file: "a.yaml", text }]).kind).toBe("policy");
    const without = text.replace("replaces: [{name: q}]", "replaces: [{name: r}]");
    expect(parsePolicy([{ file: "a.yaml", text: without }]).kind).toBe("problems");
  });

  it("takes and refuses services that do or do not overlap", () => {
    const other = tenants.replace("name: q", "name: r");
    expect(idsOf(tenants, other)).toEqual(["HG265"]);
    expect(idsOf(`${tenants}, services: [orders]`, `${other}, services: [search]`)).toEqual([]);
    expect(idsOf(`${tenants}, services: [orders]`, other)).toEqual(["HG265"]);
    const fixed = (name: string, value: string): string =>
      `name: ${name}, domain: shop, bucket: [{value: ${value}, as: tenant}]`;
    expect(idsOf(fixed("q", "a"), fixed("r", "b"))).toEqual([]);
    expect(idsOf(fixed("q", "a"), fixed("r", "a"))).toEqual(["HG265"]);
    expect(idsOf(fixed("q", "a"), other)).toEqual(["HG265"]);
  });

  it("says nothing of limits that were not all read", () => {
    const broken = parsePolicy([
      {
        file: "a.yaml",
        text: `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: a}
spec:
  rateLimits: [{domain: shop, descriptors: [{key: tenant, rate_limit: {unit: secnd}}]}]
  quotas: [{${rated}}]
`,
      },
    ]);
    const ids = broken.kind === "problems" ? broken.problems.map(({ id }) => id) : [];
    expect(ids).toEqual(["HG125", "HG142"]);
  });

  it("takes so many quotas, and no more", () => {
    const many = (count: number): readonly string[] =>
      Array.from({ length: count }, (_, i) => {
        return `name: q${i}, domain: shop, bucket: [{value: v${i}, as: tenant}]`;
      });
    expect(idsOf(...many(quotasMax))).toEqual([]);
    expect(idsOf(...many(quotasMax + 1))).toEqual(["HG160"]);
  });

  it("takes so many parts, defaults, classes and headers, and no more", () => {
    const list = (count: number, one: (i: number) => string): string =>
      Array.from({ length: count }, (_, i) => one(i)).join(", ");
    const parts = (count: number): string =>
      `name: q, domain: shop, bucket: [${list(count, (i) => `{header: x, as: k${i}}`)}], ` +
      "rate: {hits: 1, period: 1s}";
    expect(idsOf(parts(quotaPartsMax))).toEqual([]);
    expect(idsOf(parts(quotaPartsMax + 1))).toEqual(["HG160"]);
    const defaults = (count: number): string =>
      parts(4).replaceAll(/as: k(\d)/g, (text, i: string) =>
        Number(i) < count ? `${text}, default: a` : text,
      );
    expect(idsOf(defaults(quotaDefaultsMax))).toEqual([]);
    expect(idsOf(defaults(quotaDefaultsMax + 1))).toEqual(["HG160"]);
    const classes = (count: number): string =>
      `${tenants}, classes: {header: x, weights: {${list(count, (i) => `c${i}: 1`)}}}`;
    expect(idsOf(classes(quotaClassesMax))).toEqual([]);
    expect(idsOf(classes(quotaClassesMax + 1))).toEqual(["HG160"]);
    const headers = (count: number): string =>
      `${tenants}, deny: {headers: {${list(count, (i) => `x-${i}: a`)}}}`;
    expect(idsOf(headers(quotaHeadersMax))).toEqual([]);
    expect(idsOf(headers(quotaHeadersMax + 1))).toEqual(["HG160"]);
    const body = (length: number): string => `${tenants}, deny: {body: ${"x".repeat(length)}}`;
    expect(idsOf(body(quotaBodyCharsMax))).toEqual([]);
    expect(idsOf(body(quotaBodyCharsMax + 1))).toEqual(["HG131"]);
  });

  it.each([
    ["ttl: 2s", []],
    ["ttl: 1s", ["HG141"]],
    ["ttl: 5m", []],
    ["ttl: 301s", ["HG141"]],
    ["ttl: 2001ms", ["HG260"]],
    ["afterExpiry: {for: 2s}", []],
    ["afterExpiry: {for: 1s}", ["HG141"]],
    ["afterExpiry: {for: 1d}", []],
    ["afterExpiry: {for: 1d1s}", ["HG141"]],
    ["deny: {retryAfter: 1s}", []],
    ["deny: {retryAfter: 999ms}", ["HG141"]],
    ["deny: {status: 429, grpcStatus: 16}", []],
    ["deny: {status: 418}", ["HG269"]],
    ["deny: {grpcStatus: 17}", ["HG141"]],
    [`callsShare: ${callsShareBounds.max}`, []],
    ["callsShare: 0.91", ["HG141"]],
    [`classes: {header: x, weights: {a: ${quotaWeightBounds.max}}}`, []],
    [`classes: {header: x, weights: {a: ${quotaWeightBounds.max + 1}}}`, ["HG141"]],
    ["beforeAssignment: limit", ["HG269"]],
    ["afterExpiry: {fallback: last}", ["HG269"]],
    ["services: []", ["HG125"]],
    ["services: [orders, orders]", []],
    ["when: request.path.lowerAscii() == 'a'", ["HG212"]],
    ["when: request.path", ["HG211"]],
  ])("says of %s: %o", (more, ids) => {
    expect(idsOf(`${tenants}, ${more}`)).toEqual(ids);
  });

  it("takes rates that can be divided, from one hit an hour on", () => {
    const rate = (text: string): readonly string[] => idsOf(`${rated}, rate: {${text}}`);
    expect(quotaHitsPerHourMin).toBe(1);
    expect(rate("hits: 1, period: 1h")).toEqual([]);
    expect(rate("hits: 1, period: 61m")).toEqual(["HG267"]);
    expect(rate("hits: 4294967295, period: 1s")).toEqual([]);
    expect(rate("hits: 4294967296, period: 1s")).toEqual(["HG141"]);
  });

  it("keeps nothing for calls where it has a rate of its own, unless it says so", () => {
    const rated =
      "name: q, domain: shop, bucket: [{header: x, as: own}], rate: {hits: 5, period: 1s}";
    expect(quotaOf(rated).callsShareRatio).toBe(0);
    expect(quotaOf(`${rated}, callsShare: 0.2`).callsShareRatio).toBe(0.2);
  });

  it("has usual values for all that it leaves out", () => {
    expect(quotaOf(tenants)).toEqual({
      name: "q",
      domain: "shop",
      services: undefined,
      match: [],
      when: undefined,
      bucket: [{ kind: "header", header: "x", key: "tenant", fallback: undefined }],
      classes: undefined,
      callsShareRatio: 0.1,
      ttlSeconds: 10,
      beforeAssignment: "allow",
      afterExpiry: {
        forSeconds: 3_600,
        fallback: { kind: "tokens", rate: { hits: 100, periodSeconds: 1, burst: 100 } },
      },
      deny: {
        status: 429,
        body: undefined,
        headers: [{ name: "retry-after", value: "1" }],
        grpcStatus: 8,
      },
    });
  });
});
