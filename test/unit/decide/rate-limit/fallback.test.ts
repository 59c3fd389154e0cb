import { describe, expect, it } from "vitest";
import { decideWithoutStore, localShare } from "../../../../src/decide/rate-limit/fallback.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { testCharge } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";

const yearUs = 31_536_000_000_000;

describe("localShare()", () => {
  it.each<{
    story: string;
    replicas: number;
    given: [number, number, number];
    share: [number, number, number];
  }>([
    { story: "alone", replicas: 1, given: [10, 60_000_000, 20], share: [10, 60_000_000, 20] },
    { story: "of three", replicas: 3, given: [10, 60_000_000, 10], share: [10, 180_000_000, 3] },
    {
      story: "smaller than a hit",
      replicas: 99,
      given: [4, 1_000_000, 4],
      share: [4, 99_000_000, 1],
    },
    { story: "beyond ten years", replicas: 20, given: [8, yearUs, 8], share: [4, 10 * yearUs, 1] },
    {
      story: "beyond ten years, of little",
      replicas: 90,
      given: [1, yearUs, 1],
      share: [1, 10 * yearUs, 1],
    },
    {
      story: "of a blocked limit",
      replicas: 3,
      given: [0, 1_000_000, 0],
      share: [0, 1_000_000, 0],
    },
  ])("is exact in rate and rounded down in burst: $story", ({ replicas, given, share }) => {
    const [hits, periodUs, burst] = given;
    const charge = localShare(testCharge({ hits, periodUs, burst }), replicas);
    expect([charge.hits, charge.periodUs, charge.burst]).toEqual(share);
  });
});

describe("decideWithoutStore()", () => {
  it("passes any cost of a limit that allows on failure, and remembers nothing of it", async () => {
    const ask = { charges: [testCharge({ cost: 1_000 })], modes: ["allow"] } as const;
    const localStore = new MemoryLimitStore({ clock: new FakeClock() });
    const decided = await decideWithoutStore(ask, localStore, 1);
    expect(decided.isDenied).toBe(false);
    expect(localStore.keyCount).toBe(0);
  });
});
