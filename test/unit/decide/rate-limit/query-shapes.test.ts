import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import type { LimitKey } from "../../../../src/core/limits/limit.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { KeyRecords } from "../../../../src/decide/rate-limit/key-records.js";
import { NewKeyGuard } from "../../../../src/decide/rate-limit/new-keys.js";
import { prepareQuery } from "../../../../src/decide/rate-limit/prepared-query.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import {
  type QueryShape,
  QueryShapes,
  shapedAsksMax,
  shapedQuery,
} from "../../../../src/decide/rate-limit/query-shapes.js";
import { WindowSource } from "../../../../src/decide/rate-limit/window-source.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { digestOf } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const store = new MemoryLimitStore({ clock: new FakeClock() });
const perUser = testLimit(10);
const perDay = testLimit(100, { name: "daily", unit: "day", periodUs: 86_400_000_000 });
const many = Array.from({ length: shapedAsksMax + 1 }, (_, i) => testLimit(5, { name: `l${i}` }));
const policy = testPolicy([
  { path: ["user"], effect: [perUser, perDay] },
  { path: ["user=root"], effect: { kind: "unlimited" } },
  { path: ["free"], effect: [perUser], fields: { replaces: ["daily"] } },
  { path: ["team"], effect: [perDay] },
  { path: ["series"], effect: [perUser], fields: { metricPath: [{ kind: "request" }] } },
  { path: ["many"], effect: many },
  { path: ["quota"], effect: [testLimit(3, { role: "quota" })] },
]);

function descriptor(text: string, fields: Partial<DescriptorQuery> = {}): DescriptorQuery {
  const [key = "", value = ""] = text.split("=");
  return { entries: [{ key, value }], hits: 1, isRefund: false, ...fields };
}

function preparer(newKeysPerSecondMax = 1_000, domain = "shop", overrides = noOverrides) {
  const parts = {
    policy,
    counters: new DecisionCounters(),
    switches: noSwitches,
    overrides,
    records: new KeyRecords(),
    isKept: false,
    newKeys: new NewKeyGuard({ newKeysPerSecondMax }),
    nameOf: (key: LimitKey) => store.shorten(key),
    digest: sha256,
    nowMs: 1_000,
    windowSource: new WindowSource(),
    epochUs: 1_700_000_000_000_000,
  };
  return (...descriptors: readonly (string | DescriptorQuery)[]) =>
    prepareQuery(
      {
        domain,
        descriptors: descriptors.map((one) => (typeof one === "string" ? descriptor(one) : one)),
      },
      parts,
    );
}

describe("QueryShapes", () => {
  it("has one shape for queries that differ in their keys alone", () => {
    const shapes = new QueryShapes();
    const prepare = preparer();
    const shape = shapes.shapeOf(prepare("user=ann", "team=a"));
    expect(shape?.index).toBe(0);
    expect(shapes.shapeOf(prepare("user=bob", "team=b"))).toBe(shape);
    expect(shapes.at(0)).toBe(shape);
    expect(shapes.at(1)).toBeUndefined();
  });

  it("has one shape for keys whose overrides do the same to the same limit", () => {
    const override = (user: string, by: number): Override => ({
      id: `${user}-half`,
      domain: "shop",
      entries: [{ key: "user", value: user }],
      isPrefix: false,
      effect: { kind: "multiplier", by },
      reason: "a test",
      author: "ann",
      createdEpochMs: 0,
    });
    const given = [override("ann", 0.5), override("bob", 0.5), override("cy", 2)];
    const prepare = preparer(1_000, "shop", new OverrideTable(given, 1, 0));
    const shapes = new QueryShapes();
    const [ann, bob, cy, dan] = ["ann", "bob", "cy", "dan"].map((user) => prepare(`user=${user}`));
    const shape = ann && shapes.shapeOf(ann);
    expect([ann, bob, cy, dan].map((one) => one && shapes.shapeOf(one)?.index)).toEqual([
      0, 0, 1, 2,
    ]);
    const keys = bob?.asks.map(({ charge }) => charge.key) ?? [];
    expect(shape && shapedQuery(shape, keys.map(digestOf)).charges).toEqual(bob?.charges);
  });

  it("tells queries apart that meet other limits, or meet them otherwise", () => {
    const shapes = new QueryShapes();
    const prepare = preparer();
    const refund = descriptor("team=a", { isRefund: true });
    const prepared = [
      prepare("user=ann"),
      prepare("user=root"),
      prepare("nobody=ann"),
      preparer(1_000, "void")("nobody=ann"),
      prepare("team=a"),
      prepare(refund),
      prepare("team=a", "team=b"),
      prepare("team=a", "team=a"),
      prepare("team=a", "user=ann"),
      prepare("user=ann", "team=a"),
      prepare("free=x"),
      prepare("free=x", "user=ann"),
      prepare("free=x", "team=a"),
      prepare(refund, "quota=x"),
      prepare("team=a", refund, "quota=x"),
      prepare(refund, "team=a", "quota=x"),
    ];
    const indexes = prepared.map((one) => shapes.shapeOf(one)?.index);
    expect(indexes).toEqual(prepared.map((_, i) => i));
  });

  it.each([
    {
      story: "that carry a limit of their own",
      one: descriptor("user=a", { override: { hits: 1, unit: "minute", unitMultiplier: 1 } }),
    },
    { story: "that are counted under a name of their own", one: "series=a" },
    { story: "with more limits than shapedAsksMax", one: "many=a" },
  ])("has none for queries $story", ({ one }) => {
    expect(new QueryShapes().shapeOf(preparer()(one))).toBeUndefined();
  });

  it("has none for a query that a flood sent to a shared key", () => {
    const prepare = preparer(1);
    const shapes = new QueryShapes();
    expect(shapes.shapeOf(prepare("user=ann"))).toBeDefined();
    expect(shapes.shapeOf(prepare("user=bob"))).toBeUndefined();
  });

  it("has one shape for the queries of callers that share other keys", () => {
    const shapes = new QueryShapes();
    const prepare = preparer();
    const ask = (user: number, quota: string) => {
      const prepared = prepare(`quota=${quota}`, `user=${user}`);
      return { prepared, shape: shapes.shapeOf(prepared) };
    };
    const first = ask(0, "gold").shape;
    expect(first?.ownChecks).toEqual([0, 1, 2]);
    for (let user = 1; user < 20; user += 1) ask(user, "gold");
    const { prepared, shape } = ask(20, "gold");
    expect(shape?.ownChecks).toEqual([1, 2]);
    expect(ask(21, "gold").shape).toBe(shape);
    expect(ask(22, "silver").shape).toBe(first);
    const keys = prepared.charges.slice(1).map(({ key }) => digestOf(key));
    const rehydrated = shape && shapedQuery(shape, keys);
    expect(rehydrated).toEqual(prepared);
    expect(rehydrated?.asks[0]).toBe(shape?.sample.asks[0]);
  });

  it("has the most frequent keys of all in the shape where all are frequent", () => {
    const shapes = new QueryShapes();
    const prepare = preparer();
    let shape: QueryShape | undefined;
    for (const team of ["a", "b"]) {
      const prepared = prepare("quota=x", `team=${team}`);
      for (let i = 0; i < 20; i += 1) shape = shapes.shapeOf(prepared);
    }
    expect(shape?.ownChecks).toEqual([1]);
    expect(shapes.shapeOf(prepare("quota=x", "team=a"))).toBe(shape);
  });

  it("has shapes with keys for half of its bound", () => {
    const shapes = new QueryShapes(4);
    const prepare = preparer();
    const ownChecks = Array.from({ length: 60 }, (_, i) => {
      const team = Math.floor(i / 20);
      return shapes.shapeOf(prepare(`quota=${i}`, `user=${team}`))?.ownChecks;
    });
    expect(ownChecks[19]).toEqual([0]);
    expect(ownChecks[59]).toEqual([0, 1, 2]);
  });

  it("has no further ones above its bound, and keeps those it has", () => {
    const shapes = new QueryShapes(1);
    const prepare = preparer();
    expect(shapes.shapeOf(prepare("user=ann"))).toBeDefined();
    expect(shapes.shapeOf(prepare("team=a"))).toBeUndefined();
    expect(shapes.shapeOf(prepare("user=bob"))).toBeDefined();
  });
});

describe("shapedQuery()", () => {
  it("makes the query that preparing it would", () => {
    const prepare = preparer();
    const queries = [["user=bob"], ["user=bob", "team=b"], ["user=root"], ["free=y", "user=bob"]];
    for (const query of queries) {
      const shape = new QueryShapes().shapeOf(prepare(...query.map((one) => `${one}-other`)));
      const rootShape = new QueryShapes().shapeOf(prepare(...query));
      const used = query[0] === "user=root" ? rootShape : shape;
      const wanted = prepare(...query);
      const keys = wanted.charges.map(({ key }) => key);
      expect(used && shapedQuery(used, keys.map(digestOf))).toEqual(wanted);
    }
  });
});
