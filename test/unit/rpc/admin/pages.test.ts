import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  nextOf,
  pageToken,
  pageTokenCharsMax,
  readPageToken,
  readVersionedToken,
  versionedToken,
} from "../../../../src/rpc/admin/pages.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("nextOf()", () => {
  it("answers what sorting and cutting would", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string()),
        fc.option(fc.string(), { nil: undefined }),
        fc.integer({ min: 1, max: 20 }),
        (texts, after, countMax) => {
          const sorted = texts.toSorted((a, b) => (a < b ? -1 : 1));
          const expected = sorted.filter((text) => after === undefined || text > after);
          expect(nextOf(texts, after, countMax)).toEqual(expected.slice(0, countMax));
        },
      ),
      propertyRuns(100),
    );
  });
});

describe("readPageToken()", () => {
  it("reads what pageToken() made", () => {
    expect(readPageToken(pageToken("a.b:c_d-1"))).toBe("a.b:c_d-1");
    expect(readPageToken("")).toBeUndefined();
  });

  it.each(["x1", "p", "p a", `p${"1".repeat(pageTokenCharsMax)}`])("refuses %j", (token) => {
    expect(() => readPageToken(token)).toThrow("page_token");
  });
});

describe("readVersionedToken()", () => {
  it("reads what versionedToken() made of the same version", () => {
    expect(readVersionedToken(versionedToken(120, "admin-v.7"), "admin-v.7")).toBe(120);
    expect(readVersionedToken("", "v1")).toBe(0);
  });

  it("says of another version that the policy has changed", () => {
    const changed = "page_token: the policy has changed; start again";
    expect(() => readVersionedToken(versionedToken(120, "v1"), "v2")).toThrow(changed);
    expect(() => readVersionedToken(pageToken("120"), "v2")).toThrow(changed);
  });

  it.each(["p-1.v1", "p.v1", "pten.v1", "p1234567890.v1", "1.v1"])("refuses %j", (token) => {
    expect(() => readVersionedToken(token, "v1")).toThrow("it is not a token of the previous page");
  });
});
