import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import type { LimitKey } from "../../../../src/core/limits/limit.js";
import { noOverrides } from "../../../../src/core/limits/override-table.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { KeyRecords } from "../../../../src/decide/rate-limit/key-records.js";
import { NewKeyGuard } from "../../../../src/decide/rate-limit/new-keys.js";
import {
  type PreparedQuery,
  prepareQuery,
} from "../../../../src/decide/rate-limit/prepared-query.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import type { LimitSwitches } from "../../../../src/decide/rate-limit/switches.js";
import { WindowSource } from "../../../../src/decide/rate-limit/window-source.js";
import { requestChargesMax } from "../../../../src/store/limit-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const perUser = testLimit(10);
const perDay = testLimit(100, { name: "daily", unit: "day", periodUs: 86_400_000_000 });
const policy = testPolicy([
  { path: ["user"], effect: [perUser, perDay] },
  { path: ["user=root"], effect: { kind: "unlimited" } },
  { path: ["group"], effect: { kind: "none" } },
  { path: ["group", "user"], effect: [perUser] },
  { path: ["tokens"], effect: [testLimit(5, { role: "settle", peek: "exhausted" })] },
  { path: ["paced"], effect: [testLimit(5, { over: { kind: "delay", maxMs: 2_000 } })] },
  { path: ["patient"], effect: [testLimit(5, { over: { kind: "delay", maxMs: 9_000 } })] },
]);

function descriptor(
  entries: readonly string[],
  fields: Partial<DescriptorQuery> = {},
): DescriptorQuery {
  const parsed = entries.map((entry) => {
    const [key = "", value = ""] = entry.split("=");
    return { key, value };
  });
  return { entries: parsed, hits: 1, isRefund: false, ...fields };
}

interface Surroundings {
  readonly domain?: string;
  readonly newKeysPerSecondMax?: number;
  readonly isKept?: boolean;
  readonly canDelay?: boolean;
  readonly switches?: LimitSwitches;
}

/** Prepares queries one after the other with the same memory of keys. */
function preparer({
  domain = "shop",
  newKeysPerSecondMax = 1_000,
  isKept = true,
  canDelay = false,
  switches = noSwitches,
}: Surroundings = {}) {
  const records = new KeyRecords();
  const newKeys = new NewKeyGuard({ newKeysPerSecondMax });
  const counters = new DecisionCounters();
  const base = {
    policy,
    counters,
    overrides: noOverrides,
    switches,
    records,
    newKeys,
    digest: sha256,
    nowMs: 1_000,
    windowSource: new WindowSource(),
    epochUs: 1_700_000_000_000_000,
    nameOf: (key: LimitKey) => key,
  };
  return (...descriptors: readonly DescriptorQuery[]): PreparedQuery =>
    prepareQuery({ domain, descriptors, ...(canDelay ? { canDelay } : {}) }, { ...base, isKept });
}

function plan(...descriptors: readonly DescriptorQuery[]): PreparedQuery {
  return preparer()(...descriptors);
}

describe("prepareQuery()", () => {
  it("makes a charge for each limit of each matched descriptor, in order", () => {
    const { descriptors, asks } = plan(
      descriptor(["user=ann"]),
      descriptor(["group=a", "user=ann"]),
    );
    expect(descriptors).toMatchObject([
      { kind: "limited", counters: { label: "user" }, firstAsk: 0, askCount: 2 },
      { kind: "limited", counters: { label: "group.user" }, firstAsk: 2, askCount: 1 },
    ]);
    expect(asks.map((ask) => ask.limit)).toEqual([perUser, perDay, perUser]);
    const charges = asks.map((ask) => ask.charge);
    expect(charges.map(({ hits, burst, cost, role }) => [hits, burst, cost, role])).toEqual([
      [10, 10, 1, "enforce"],
      [100, 100, 1, "enforce"],
      [10, 10, 1, "enforce"],
    ]);
    expect(new Set(charges.map((charge) => charge.key)).size).toBe(3);
  });

  it.each([
    { story: "an unlimited rule", entries: ["user=root"], kind: "unlimited" },
    { story: "a rule without a limit", entries: ["group=a"], kind: "unmatched" },
    { story: "no rule", entries: ["color=red"], kind: "unmatched" },
    { story: "a path that goes on", entries: ["user=ann", "color=red"], kind: "unmatched" },
  ])("charges nothing for $story", ({ entries, kind }) => {
    const { descriptors, asks } = plan(descriptor(entries));
    expect(descriptors[0]?.kind).toBe(kind);
    expect(asks).toEqual([]);
  });

  it("knows a domain from one that no policy names", () => {
    const other = preparer({ domain: "else" })(descriptor(["user=ann"]));
    expect(other).toMatchObject({
      isDomainKnown: false,
      descriptors: [{ kind: "unmatched" }],
      asks: [],
    });
    expect(plan(descriptor(["user=root"])).isDomainKnown).toBe(true);
  });

  it("carries refunds and the way of peeking into the charge, for one hit each", () => {
    const { asks, charges } = plan(
      descriptor(["group=a", "user=ann"], { hits: 7, isRefund: true }),
      descriptor(["tokens=x"], { hits: 0 }),
    );
    expect(charges).toMatchObject([
      { cost: 1, isRefund: true, peekExhausted: false },
      { cost: 1, isRefund: false, role: "settle", peekExhausted: true },
    ]);
    expect(asks.map((ask) => [ask.charge, ask.descriptorIndex])).toEqual([
      [charges[0], 0],
      [charges[1], 1],
    ]);
  });

  it.each([
    { story: "enforced limits on keys of their own", entries: ["user=a"], isRepeatable: true },
    { story: "a settled limit", entries: ["tokens=a"], isRepeatable: false },
  ])("says whether calls of $story may be decided together", ({ entries, isRepeatable }) => {
    expect(plan(descriptor(entries)).isRepeatable).toBe(isRepeatable);
    const twice = plan(descriptor(entries), descriptor(entries));
    expect(twice.isRepeatable).toBe(false);
  });

  it("lets limits that delay hold a request, for the least of their times, beside others", () => {
    const prepare = preparer({ canDelay: true });
    const mixed = prepare(descriptor(["group=a", "user=ann"]), descriptor(["paced=x"]));
    expect(mixed.delayUs).toBe(2_000_000);
    expect(mixed.charges.map(({ delayUs }) => delayUs)).toEqual([undefined, 2_000_000]);
    const both = prepare(descriptor(["patient=x"]), descriptor(["paced=x"]));
    expect(both.delayUs).toBe(2_000_000);
    // Its hits could pass at once, and be more than the burst.
    const twice = prepare(descriptor(["paced=x"]), descriptor(["paced=x"]));
    expect(twice.delayUs).toBe(0);
    expect(twice.charges.map(({ delayUs }) => delayUs)).toEqual([undefined, undefined]);
    expect(plan(descriptor(["paced=x"])).delayUs).toBe(0);
  });

  it("makes no record for a query that is not kept", () => {
    const [ask] = preparer({ isKept: false })(descriptor(["user=a"])).asks;
    expect(ask?.record).toBeUndefined();
  });

  it("gives queries that meet on a key the same record", () => {
    const prepare = preparer();
    const [one] = prepare(descriptor(["user=ann"])).asks;
    const two = prepare(descriptor(["tokens=x"]), descriptor(["user=ann"])).asks;
    expect(two[1]?.record).toBe(one?.record);
    expect(two[0]?.record).not.toBe(one?.record);
  });

  it("names a long value by its digest, and a short one by itself", () => {
    const [fits] = plan(descriptor([`user=${"a".repeat(256)}`])).charges;
    const [long] = plan(descriptor([`user=${"a".repeat(257)}`])).charges;
    expect(fits?.key).toContain("a".repeat(256));
    expect(long?.key).toContain(`#${sha256("a".repeat(257))}`);
    expect(long?.key).not.toContain("aaaa");
    const [pretender] = plan(descriptor([`user=${sha256("a".repeat(257))}`])).charges;
    expect(pretender?.key).not.toBe(long?.key);
  });

  it("sends too many new keys of a rule to one bucket a limit, for that call only", () => {
    const prepare = preparer({ newKeysPerSecondMax: 2 });
    const keysOf = (user: string): readonly string[] =>
      prepare(descriptor([`user=${user}`])).charges.map((charge) => charge.key);
    const own = [keysOf("a"), keysOf("b")];
    const shared = [keysOf("c"), keysOf("d")];
    expect(new Set(own.flat()).size).toBe(4);
    expect(shared[0]).toEqual(shared[1]);
    expect(new Set([...own.flat(), ...shared.flat()]).size).toBe(6);
    expect(keysOf("a")).toEqual(own[0]);
    const flooded = prepare(descriptor(["user=e"]));
    expect(flooded.isKeepable).toBe(false);
    expect(flooded.descriptors[0]).toMatchObject({ counters: { newKeys: { overflowCount: 3 } } });
    expect(prepare(descriptor(["user=a"])).isKeepable).toBe(true);
  });

  it("charges the limit that a request carries apart from the policy's, enforced", () => {
    const override = { hits: 3, unit: "hour", unitMultiplier: 2 } as const;
    const carried = plan(descriptor(["tokens=x"], { override }));
    expect(carried.descriptors).toEqual([{ kind: "limited", firstAsk: 0, askCount: 1 }]);
    expect(carried.asks.map((ask) => ask.charge)).toMatchObject([
      { hits: 3, burst: 3, periodUs: 7_200_000_000, role: "enforce" },
    ]);
    const [own] = plan(descriptor(["tokens=x"])).asks;
    expect(carried.asks[0]?.charge.key).not.toBe(own?.charge.key);
  });

  it("refuses a carried limit whose period is above ten years", () => {
    const override = { hits: 3, unit: "year", unitMultiplier: 11 } as const;
    expect(() => plan(descriptor(["user=a"], { override }))).toThrowError(
      expect.objectContaining({ code: "REQUEST_INVALID" }),
    );
  });

  it("refuses a request with more charges than are decided at once", () => {
    const many = Array.from({ length: requestChargesMax / 2 }, () => descriptor(["user=ann"]));
    expect(plan(...many).asks).toHaveLength(requestChargesMax);
    expect(() => plan(...many, descriptor(["user=ann"]))).toThrowError(
      expect.objectContaining({ code: "REQUEST_TOO_LARGE" }),
    );
  });
});
