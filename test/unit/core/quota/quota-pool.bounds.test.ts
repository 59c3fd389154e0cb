import { describe, expect, it } from "vitest";
import { quotaBounds } from "../../../support/quota-bounds.js";

const parts = {
  limits: [{ hits: 100, periodUs: 1_000_000, burst: 100 }],
  ttlMs: 10_000,
  holdersMax: 20,
  replicasMax: 1,
  lateMs: 1_000,
  hasCalls: false,
};

describe("quotaBounds()", () => {
  it("is 6,763 and 8,006 hits a minute at 100 a second", () => {
    const { envelope, total } = quotaBounds(parts);
    expect(Math.round(60 * envelope.hitsPerSecond + envelope.hitsMax)).toBe(6_763);
    expect(Math.round(60 * total.hitsPerSecond + total.hitsMax)).toBe(8_006);
  });

  it("leaves half a burst more where callers use the limit too", () => {
    const shared = quotaBounds({ ...parts, hasCalls: true });
    expect(shared.total.hitsMax).toBeCloseTo(quotaBounds(parts).total.hitsMax + 50, 9);
    expect(shared.envelope).toEqual(quotaBounds(parts).envelope);
  });
});
