import { fromBinary, fromJson } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type DescriptorEntry,
  limitKey,
  overrideKey,
  readShortKey,
  shortKey,
  sizedKey,
  withoutSize,
} from "../../../../src/core/limits/key.js";
import { type Limit, type LimitUnit, unitSeconds } from "../../../../src/core/limits/limit.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

const minute = { periodUs: 60_000_000 };

/** Everything that a bucket's key is made of. */
type Identity =
  | {
      readonly kind: "policy";
      readonly domain: string;
      readonly entries: readonly DescriptorEntry[];
      readonly limit: Pick<Limit, "name" | "periodUs">;
    }
  | {
      readonly kind: "override";
      readonly domain: string;
      readonly entries: readonly DescriptorEntry[];
      readonly unit: { readonly unit: LimitUnit; readonly unitMultiplier: number };
    };

function keyOf(identity: Identity): string {
  const { domain, entries } = identity;
  if (identity.kind === "override") return overrideKey(domain, entries, identity.unit);
  return limitKey(domain, entries, identity.limit);
}

/** What an identity is, in a notation of its own. */
function meaningOf(identity: Identity): string {
  const entries = identity.entries.map(({ key, value }) => [key, value]);
  const { kind, domain } = identity;
  if (identity.kind === "override") {
    return JSON.stringify([
      kind,
      domain,
      entries,
      identity.unit.unit,
      identity.unit.unitMultiplier,
    ]);
  }
  const { name, periodUs } = identity.limit;
  return JSON.stringify([kind, domain, entries, name === undefined ? periodUs : [name]]);
}

const loneSurrogates = [0xd800, 0xdfff].map((code) => String.fromCharCode(code));

/** Texts that try to be mistaken for lengths, ends and beginnings of others. */
const texts = fc.oneof(
  fc.constantFrom(...loneSurrogates),
  fc.constantFrom(
    "",
    ":",
    "1",
    "1:",
    "0:",
    "1:a",
    "2:aa",
    "p3:60s",
    "n1:a",
    "o7:1minute",
    "é",
    "😀",
  ),
  fc
    .array(fc.constantFrom("0", "1", "2", ":", "a", "n", "p", "o", "s"), { maxLength: 6 })
    .map((parts) => parts.join("")),
  fc.string({ unit: "grapheme", maxLength: 5 }),
  fc.string({ unit: anyCodePoint, maxLength: 5 }),
);

const entryLists = fc.array(fc.record({ key: texts, value: texts }), { maxLength: 3 });

const identities: fc.Arbitrary<Identity> = fc.oneof(
  fc.record({
    kind: fc.constant("policy" as const),
    domain: texts,
    entries: entryLists,
    limit: fc.oneof(
      fc.record({ periodUs: fc.integer({ min: 1, max: 100 }).map((s) => s * 1_000_000) }),
      fc.record({ name: texts, periodUs: fc.constant(60_000_000) }),
    ),
  }),
  fc.record({
    kind: fc.constant("override" as const),
    domain: texts,
    entries: entryLists,
    unit: fc.record({
      unit: fc.constantFrom<LimitUnit>("second", "minute", "hour", "day", "week", "month", "year"),
      unitMultiplier: fc.integer({ min: 1, max: 100 }),
    }),
  }),
);

/** Moves a character from one text to the next: what a joined key would not notice. */
function shifted({ key, value }: DescriptorEntry): DescriptorEntry {
  return { key: key + value.slice(0, 1), value: value.slice(1) };
}

describe("limitKey()", () => {
  it("reads as its docstring says", () => {
    expect(limitKey("shop", [{ key: "user", value: "7" }], minute)).toBe("2g4:shop4:user1:7p3:60s");
  });

  it("gives one key to one identity and another to any other", () => {
    const property = fc.property(fc.array(identities, { minLength: 2, maxLength: 40 }), (all) => {
      const keys = new Map(all.map((identity) => [keyOf(identity), meaningOf(identity)]));
      for (const identity of all) expect(keys.get(keyOf(identity))).toBe(meaningOf(identity));
    });
    fc.assert(property, propertyRuns(300));
  });

  it("tells entries apart that read alike when joined", () => {
    const property = fc.property(entryLists, texts, (entries, domain) => {
      const others: readonly (readonly DescriptorEntry[])[] = [
        entries.map(shifted),
        [...entries, { key: "", value: "" }],
        entries.slice(1),
        entries.map(({ key, value }) => ({ key: value, value: key })),
        [{ key: domain, value: "" }, ...entries],
      ];
      const mine = limitKey(domain, entries, minute);
      for (const other of others) {
        const isSame = JSON.stringify(other) === JSON.stringify(entries);
        expect(limitKey(domain, other, minute) === mine).toBe(isSame);
      }
    });
    fc.assert(property, propertyRuns(300));
  });

  it("stays the same through edits of all but the name, or else the period", () => {
    const edited = { hits: 5, burst: 9, role: "shadow", unit: "second", unitMultiplier: 60 };
    expect(limitKey("d", [], { ...minute, ...edited })).toBe(limitKey("d", [], minute));
    const named = { ...minute, name: "a" };
    expect(limitKey("d", [], { ...named, periodUs: 1_000_000 })).toBe(limitKey("d", [], named));
  });

  it.each([
    ["a name and a period", { name: "60s", ...minute }, minute],
    ["two periods", { periodUs: 1_000_000 }, minute],
    ["two names", { name: "a", ...minute }, { name: "b", ...minute }],
    ["an empty name and none", { name: "", ...minute }, minute],
  ])("tells %s apart", (_name, left, right) => {
    expect(limitKey("d", [], left)).not.toBe(limitKey("d", [], right));
  });

  it("writes every period as whole seconds", () => {
    const periods = [1, ...Object.values(unitSeconds), 315_360_000];
    for (const seconds of periods) {
      const text = `${seconds}s`;
      expect(limitKey("d", [], { periodUs: seconds * 1_000_000 })).toBe(
        `2g1:dp${text.length}:${text}`,
      );
    }
  });

  it("stays apart in UTF-8 for all texts that the API lets in", () => {
    const lone = String.fromCharCode(0xd800);
    expect(() => fromJson(StringValueSchema, lone)).toThrow();
    const bytes = Uint8Array.of(10, 3, 0xed, 0xa0, 0x80);
    expect(() => fromBinary(StringValueSchema, bytes)).toThrow();
    const wellFormed = entryLists.filter((entries) =>
      entries.every(
        ({ key, value }) => !/\p{Surrogate}/u.test(key) && !/\p{Surrogate}/u.test(value),
      ),
    );
    const property = fc.property(wellFormed, wellFormed, (left, right) => {
      const bytesOf = (entries: readonly DescriptorEntry[]): string =>
        Buffer.from(limitKey("d", entries, minute), "utf8").toString("hex");
      const isSame = JSON.stringify(left) === JSON.stringify(right);
      expect(bytesOf(left) === bytesOf(right)).toBe(isSame);
    });
    fc.assert(property, propertyRuns(300));
  });
});

describe("overrideKey()", () => {
  it("never meets a policy limit's key", () => {
    const property = fc.property(texts, entryLists, texts, (domain, entries, name) => {
      for (const unit of ["second", "minute", "year"] as const) {
        const override = overrideKey(domain, entries, { unit, unitMultiplier: 1 });
        const periodUs = unitSeconds[unit] * 1_000_000;
        expect(override).not.toBe(limitKey(domain, entries, { periodUs }));
        expect(override).not.toBe(limitKey(domain, entries, { name, periodUs }));
        expect(override).not.toBe(limitKey(domain, entries, { name: `1${unit}`, periodUs }));
      }
    });
    fc.assert(property, propertyRuns(200));
  });

  it("gives each size a key of its own, and finds back what they share", () => {
    const property = fc.property(texts, entryLists, fc.nat(), (domain, entries, hits) => {
      const shared = overrideKey(domain, entries, { unit: "day", unitMultiplier: 1 });
      const keys = [shared, sizedKey(shared, hits), sizedKey(shared, hits + 1), sizedKey(shared)];
      expect(new Set(keys).size).toBe(keys.length);
      expect(keys.map(withoutSize)).toEqual(keys.map(() => shared));
    });
    fc.assert(property, propertyRuns(200));
  });

  it("tells units and multiples apart, even of one length", () => {
    const keys = [
      overrideKey("d", [], { unit: "second", unitMultiplier: 60 }),
      overrideKey("d", [], { unit: "minute", unitMultiplier: 1 }),
      overrideKey("d", [], { unit: "minute", unitMultiplier: 11 }),
      overrideKey("d", [], { unit: "hour", unitMultiplier: 1 }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("shortKey()", () => {
  const words = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });

  it("holds the digest, whatever it is, and readShortKey() finds it again", () => {
    const property = fc.property(
      fc.record({ a: words, b: words, c: words, d: words }),
      (digest) => {
        const read = { a: 0, b: 0, c: 0, d: 0 };
        expect(readShortKey(shortKey(digest), read)).toBe(true);
        expect(read).toEqual(digest);
      },
    );
    fc.assert(property, propertyRuns(100));
  });

  it("never meets a key that is spelled out, also where that is as long", () => {
    const spelled = limitKey("", [], { name: "ab", periodUs: 60_000_000 });
    expect(spelled.length).toBe(shortKey({ a: 1, b: 2, c: 3, d: 4 }).length);
    expect(readShortKey(spelled, { a: 0, b: 0, c: 0, d: 0 })).toBe(false);
    const longer = limitKey("\udc00", [], { name: "a", periodUs: 60_000_000 });
    expect(readShortKey(longer, { a: 0, b: 0, c: 0, d: 0 })).toBe(false);
  });
});
