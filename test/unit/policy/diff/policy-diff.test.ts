import { describe, expect, it } from "vitest";
import { limitKey } from "../../../../src/core/limits/key.js";
import { reportedPartsMax } from "../../../../src/policy/diff/field-changes.js";
import { changeSentence, comparePolicies } from "../../../../src/policy/diff/policy-diff.js";
import { parsePolicy } from "../../../../src/policy/parse.js";

function policyOf(spec: string) {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: test}\nspec:\n";
  const parsed = parsePolicy([{ file: "policy.yaml", text: `${head}${spec}` }]);
  if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems));
  return parsed;
}

/** The limits of one rule, `user` of `shop`. */
function limits(...texts: readonly string[]) {
  const list = `[${texts.join(", ")}]`;
  return policyOf(
    `  rateLimits: [{domain: shop, descriptors: [{key: user, rate_limits: ${list}}]}]\n`,
  );
}

function service(fields: string) {
  return policyOf(`  services: [{name: orders, ${fields}}]\n`);
}

function sentences(before: ReturnType<typeof policyOf>, after: ReturnType<typeof policyOf>) {
  return comparePolicies(before, after).map((one) => `${one.effect}: ${changeSentence(one)}`);
}

/** Each row is one limit before and after, and what is said. */
const limitRows = [
  {
    name: "half of it",
    before: "{name: pace, period: 10s, requests_per_unit: 50}",
    after: "{name: pace, period: 10s, requests_per_unit: 25}",
    says: [
      "stricter: shop/user pace: 50 per 10 s becomes 25 per 10 s (half as much); " +
        "its state is kept",
    ],
  },
  {
    name: "another way to write the same",
    before: "{unit: minute, requests_per_unit: 60}",
    after: "{period: 60s, requests_per_unit: 60, burst: 60}",
    says: [],
  },
  {
    name: "a blocked key",
    before: "{name: pace, unit: second, requests_per_unit: 50}",
    after: "{name: pace, unit: second, requests_per_unit: 0}",
    says: [
      "stricter: shop/user pace: 50 per second becomes none (nothing at all); its state is kept",
    ],
  },
  {
    name: "a tenth more",
    before: "{unit: second, requests_per_unit: 100}",
    after: "{unit: second, requests_per_unit: 110}",
    says: [
      "looser: shop/user: 100 per second becomes 110 per second (10 % more); its state is kept",
    ],
  },
  {
    name: "a smaller burst",
    before: "{unit: second, requests_per_unit: 10, burst: 40}",
    after: "{unit: second, requests_per_unit: 10, burst: 20}",
    says: ["stricter: shop/user: at most 40 at once becomes 20; its state is kept"],
  },
  {
    name: "another name",
    before: "{name: old, unit: second, requests_per_unit: 10}",
    after: "{name: new, unit: second, requests_per_unit: 10}",
    says: [
      "looser: shop/user new: still 10 per second; its bucket starts empty, " +
        "because its name was old and the name is part of the key",
    ],
  },
  {
    name: "another period without a name",
    before: "{unit: minute, requests_per_unit: 60}",
    after: "{unit: second, requests_per_unit: 1}",
    says: [
      "stricter: shop/user: 60 per minute becomes 1 per second (the same rate), at most " +
        "60 at once becomes 1; its bucket starts empty, because the period of an unnamed " +
        "limit is part of the key",
    ],
  },
];

describe("comparePolicies()", () => {
  it("says once for a domain that descriptors leave a ratelimit file, unless they settle", () => {
    const limit = "rate_limit: {unit: day, requests_per_unit: 5";
    const there = `domain: shop\ndescriptors: [{key: a, ${limit}}}, {key: b, ${limit}}}]\n`;
    const before = parsePolicy([{ file: "a.yaml", text: there }]);
    if (before.kind === "problems") throw new Error(JSON.stringify(before.problems));
    const here = (charge: string) =>
      policyOf(
        `  rateLimits: [{domain: shop, descriptors: [{key: a, ${limit}}}, ` +
          `{key: b, ${limit}${charge}}}]}]\n`,
      );
    expect(sentences(before, here(""))).toEqual([
      expect.stringMatching(
        /^different: shop: 2 descriptors move out of a ratelimit file: costs reported/,
      ),
    ]);
    expect(sentences(here(""), before)).toEqual([]);
    expect(sentences(before, here(", charge: settle")).join("\n")).toContain(
      "shop: 1 descriptor moves out of a ratelimit file",
    );
  });

  it.each(limitRows)("tells $name", ({ before, after, says }) => {
    expect(sentences(limits(before), limits(after))).toEqual(says);
  });

  it.each(limitRows)("says of $name that it stays used where its key does", (row) => {
    const [before, after] = [limits(row.before), limits(row.after)];
    const keys = [before, after].map(({ rules: [rule] }) => {
      const [limit] = rule?.effect.kind === "limited" ? rule.effect.limits : [];
      if (limit === undefined) throw new Error("no limit");
      return limitKey("shop", [{ key: "user", value: "7" }], limit);
    });
    const isReported = sentences(before, after).some((text) =>
      text.includes("bucket starts empty"),
    );
    expect(isReported).toBe(keys[0] !== keys[1]);
  });

  it("tells several limits of a rule apart by name or period, wherever they stand", () => {
    const [second, day] = [
      "{unit: second, requests_per_unit: 1}",
      "{unit: day, requests_per_unit: 100}",
    ];
    expect(sentences(limits(second, day), limits(day, second))).toEqual([]);
    expect(sentences(limits(second), limits(second, day))).toEqual([
      "stricter: shop/user: a new limit: 100 per day; its bucket starts empty",
    ]);
    expect(sentences(limits(second, day), limits(second))).toEqual([
      "looser: shop/user: the limit of 100 per day is removed, with its state",
    ]);
  });

  it("tells fields of services by the policy's names, and what was the default", () => {
    expect(
      sentences(
        service("circuitBreakers: {}"),
        service("circuitBreakers: {maxPendingRequests: 50}"),
      ),
    ).toEqual([
      "stricter: service orders: circuitBreakers.maxPendingRequests changes from 100 " +
        "(the default) to 50; regenerate the proxies' configuration",
    ]);
  });

  it("names fields that are called otherwise once they are read as the policy does", () => {
    const one = "perEndpoint: {maxConnections: 9}";
    expect(
      sentences(
        service(`circuitBreakers: {${one}}, retries: {numRetries: 3, backOff: {base: 10ms}}`),
        service("circuitBreakers: {}, retries: {numRetries: 1, backOff: {base: 25ms}}"),
      ).map((text) => text.replace(/; regenerate.*/, "")),
    ).toEqual([
      "stricter: service orders: retries.numRetries changes from 3 to 1",
      "different: service orders: circuitBreakers.perEndpoint.maxConnections is " +
        "removed: it was 9",
      "different: service orders: retries.backOff.base changes from 10ms to 25ms (the default)",
    ]);
  });

  /** Both were read and obeyed, and a change of nothing else was no change. */
  it("tells how far an override may go, and what an exception is called", () => {
    const rate = "unit: second, requests_per_unit: 5";
    expect(sentences(limits(`{${rate}}`), limits(`{${rate}, overrideMax: 4}`))).toEqual([
      "different: shop/user: overrideMax changes from 10 (the default) to 4",
    ]);
    const exception = (fields: string) =>
      policyOf(
        `  rateLimits: [{domain: shop, descriptors: [{key: user, rate_limit: {${fields}}}]}]\n`,
      );
    expect(sentences(exception("unlimited: true"), exception("unlimited: true, name: a"))).toEqual([
      "different: shop/user: it changes its name",
    ]);
  });

  it("tells that a limit counts all regions together, or each alone", () => {
    const rate = "unit: second, requests_per_unit: 5";
    const [region, global] = [limits(`{${rate}}`), limits(`{${rate}, spread: global}`)];
    expect(sentences(region, limits(`{${rate}, spread: region}`))).toEqual([]);
    expect(sentences(region, global)).toEqual([
      "stricter: shop/user: all regions together now have what each of them had; its state is kept",
    ]);
    expect(sentences(global, region)).toEqual([
      "looser: shop/user: each region now has what all of them together had; its state is kept",
    ]);
  });

  it("tells blocks that come and go, and checks that begin to refuse", () => {
    expect(sentences(service("admission: {}"), service("timeouts: {}"))[0]).toContain(
      "looser: service orders: admission is removed",
    );
    expect(
      sentences(
        service("admission: {queue: {}, dryRun: [queue]}"),
        service("admission: {queue: {}}"),
      ),
    ).toEqual(['stricter: service orders: admission.dryRun changes from "queue" to none']);
  });

  /** What it does was guessed from the name, so these were merely different. */
  it("goes by what a field says of a larger number, also where it stands for two", () => {
    const block = (minRemaining: string, max: string, low: number) =>
      service(
        `admission: {maxInFlight: 9, deadline: {minRemaining: ${minRemaining}}, ` +
          `estimatedWait: {max: ${max}}, shedAt: {low: ${low}}}`,
      );
    expect(sentences(block("5ms", "1s", 0.5), block("50ms", "2s", 0.6))).toEqual([
      expect.stringMatching(/^stricter: .* admission\.deadline\.minRemaining changes from 5ms/),
      expect.stringMatching(/^looser: .* admission\.shedAt\.low\.soft changes from 0\.48 to/),
      expect.stringMatching(/^looser: .* admission\.shedAt\.low\.hard changes from 0\.5 to 0\.6/),
      expect.stringMatching(/^looser: .* admission\.estimatedWait\.max/),
    ]);
  });

  it(`tells ${reportedPartsMax} parts of a list, and how many more there are`, () => {
    const hosts = Array.from({ length: reportedPartsMax + 2 }, (_, index) => `h${index}.example`);
    const [text] = sentences(service("hosts: []"), service(`hosts: [${hosts.join(", ")}]`));
    expect(text).toContain(`"h${reportedPartsMax - 1}.example" and 2 more`);
  });

  it("says what becomes stricter first, then what becomes looser", () => {
    const before = limits(
      "{name: a, unit: second, requests_per_unit: 1}",
      "{name: b, unit: second, requests_per_unit: 2}",
    );
    const after = limits(
      "{name: a, unit: second, requests_per_unit: 2}",
      "{name: b, unit: second, requests_per_unit: 1}",
    );
    const effects = comparePolicies(before, after).map(({ effect }) => effect);
    expect(effects).toEqual(["stricter", "looser"]);
  });
});
