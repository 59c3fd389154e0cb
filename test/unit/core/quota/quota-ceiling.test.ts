import { describe, expect, it } from "vitest";
import {
  ceilingMicroHz,
  ceilingMicroHzMax,
  limitHz,
} from "../../../../src/core/quota/quota-ceiling.js";
import { quotaTickMs } from "../../../support/quota-bounds.js";

const second = 1_000_000;
const limit = { hits: 100, periodUs: second, burst: 300 };
const parts = { ttlMs: 10_000, callsShare: 0 };

describe("ceilingMicroHz()", () => {
  it.each([
    { levelHits: 0, callsShare: 0, hz: 110 },
    { levelHits: 1, callsShare: 0, hz: 110 },
    { levelHits: 151, callsShare: 0, hz: 100 },
    { levelHits: 301, callsShare: 0, hz: 90 },
    { levelHits: 301, callsShare: 0.1, hz: 80 },
    { levelHits: 226, callsShare: 0.1, hz: 90 },
    { levelHits: 601, callsShare: 0, hz: 70 },
    { levelHits: 10_000, callsShare: 0, hz: 0 },
  ])("is $hz a second at level $levelHits, with $callsShare for calls", (row) => {
    const { levelHits, callsShare, hz } = row;
    expect(ceilingMicroHz(limit, { ...parts, callsShare }, levelHits)).toBe(hz * second);
  });

  it("never rises with the level", () => {
    let before = Number.POSITIVE_INFINITY;
    for (let level = 0; level < 700; level += 0.5) {
      const now = ceilingMicroHz(limit, { ...parts, callsShare: 0.5 }, level);
      expect(now).toBeLessThanOrEqual(before);
      before = now;
    }
  });

  it("is whole, and 0 for a limit of nothing", () => {
    const odd = { hits: 7, periodUs: 86_400 * second, burst: 3 };
    expect(Number.isInteger(ceilingMicroHz(odd, parts, 0.3))).toBe(true);
    expect(ceilingMicroHz({ hits: 0, periodUs: second, burst: 0 }, parts, 0)).toBe(0);
  });
});

describe("ceilingMicroHzMax()", () => {
  it("is what the tightest limit gives while it is empty", () => {
    const tight = { hits: 600, periodUs: 60 * second, burst: 30 };
    expect(ceilingMicroHzMax([limit, tight], 10_000)).toBe(11 * second);
  });

  it("is what a double holds exactly where nothing limits", () => {
    expect(ceilingMicroHzMax([], 10_000)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("quotaTickMs()", () => {
  it.each([
    { title: "half of the burst", burst: 100, ms: 500 },
    { title: "a tenth of a second at least", burst: 1, ms: 100 },
    { title: "a second at most", burst: 100_000, ms: 1_000 },
  ])("is $title", ({ burst, ms }) => {
    expect(quotaTickMs([{ hits: 100, periodUs: second, burst }])).toBe(ms);
  });

  it("goes by the smallest burst of several limits", () => {
    expect(quotaTickMs([limit, { hits: 10, periodUs: second, burst: 4 }])).toBe(200);
  });
});

describe("limitHz()", () => {
  it("is hits a second", () => {
    expect(limitHz({ hits: 6, periodUs: 60 * second })).toBe(0.1);
  });
});
