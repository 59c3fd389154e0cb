import { beforeEach, describe, expect, it } from "vitest";
import { levelAt, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { regionalCharge } from "../../../../src/core/limits/lending.js";
import type { Limit } from "../../../../src/core/limits/limit.js";
import { epochWindows } from "../../../../src/core/limits/window.js";
import { Lender, type LendingEvent } from "../../../../src/fleet/regions/lender.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { farDeadlineMs, testCharge } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit } from "../../../support/policies.js";

const day: Partial<Limit> = { unit: "day", periodUs: 86_400_000_000, spread: "global" };
const limit = testLimit(60, day);
const names = ["east", "north", "west"] as const;

let clock: FakeClock;
let stores: Record<(typeof names)[number], FaultyStore>;
let events: LendingEvent[];
let lender: Lender;

beforeEach(() => {
  clock = new FakeClock();
  const create = (): FaultyStore => new FaultyStore(new MemoryLimitStore({ clock }), clock);
  stores = { east: create(), north: create(), west: create() };
  events = [];
  lender = new Lender({
    region: "north",
    store: stores.north,
    peers: [
      { name: "west", store: stores.west },
      { name: "east", store: stores.east },
    ],
    clock,
    random: new FakeRandom(),
    replicaCount: () => 1,
    onEvent: (event) => events.push(event),
  });
});

function chargeOf(whole: Limit, isWindowed: boolean) {
  const { hits, periodUs, burst } = whole;
  const windows = isWindowed ? epochWindows(periodUs, clock.epochUs()) : undefined;
  const fields = { hits, periodUs, burst, ...(windows === undefined ? {} : { windows }) };
  return regionalCharge(testCharge(fields), { index: 1, count: 3 });
}

/** Asks north for one hit after the other. @returns how many it admitted */
async function demand(hits: number, whole = limit, isWindowed = false): Promise<number> {
  let admitted = 0;
  for (let i = 0; i < hits; i += 1) {
    const charge = chargeOf(whole, isWindowed);
    const request = { charges: [charge], multiplicity: 1 };
    const [outcome] = await stores.north.take([request], farDeadlineMs);
    if (outcome?.kind !== "decided") throw new Error("the store decides");
    const [result] = outcome.result.results;
    admitted += outcome.result.grantedCount;
    if (result !== undefined) {
      lender.note({ limit: whole, charge, result, nowUs: outcome.result.nowUs });
    }
  }
  return admitted;
}

async function levelHits(region: (typeof names)[number], isWindowed = false): Promise<number> {
  const charge = chargeOf(limit, isWindowed);
  const found = await stores[region].peek(charge.key, farDeadlineMs);
  if (found === undefined) return 0;
  return Math.round(levelAt(charge, found.bucket, found.nowUs) / unitsPerHit);
}

describe("Lender", () => {
  it("knows its place among all regions", () => {
    expect(lender.share).toEqual({ index: 1, count: 3 });
    expect(lender.regions().map(({ region }) => region)).toEqual(["east", "west"]);
  });

  it("asks nobody while its bucket is at most half full", async () => {
    expect(await demand(10)).toBe(10);
    await clock.advanceAsync(500, 10);
    expect(stores.east.batches).toEqual([]);
    expect(lender.keyCount).toBe(0);
  });

  it.each([1e9, -1, 0.5, Number.NaN])(
    "credits nothing where others say that they granted %d times what they were asked for",
    async (grantedCount) => {
      expect(await demand(25)).toBe(20);
      stores.east.fault = { kind: "claim", grantedCount };
      stores.west.fault = { kind: "claim", grantedCount };
      await clock.advanceAsync(160, 10);
      expect(stores.east.batches.length + stores.west.batches.length).toBeGreaterThan(0);
      expect(await levelHits("north")).toBe(20);
    },
  );

  it("charges half of the others' bursts, and credits the same hits", async () => {
    expect(await demand(25)).toBe(20);
    await clock.advanceAsync(160, 10);
    expect(await levelHits("east")).toBe(10);
    expect(await levelHits("west")).toBe(10);
    expect(await levelHits("north")).toBe(0);
    const lent = { callCount: 1, failedCallCount: 0, askedHits: 10, borrowedHits: 10, lostHits: 0 };
    for (const one of lender.regions()) expect(one).toMatchObject(lent);
    // The others lend no more, and keep the other half.
    expect(await demand(25)).toBe(20);
    await clock.advanceAsync(900, 10);
    expect(await levelHits("east")).toBe(10);
    expect(await levelHits("north")).toBe(20);
  });

  it("sends nothing twice when a reply is lost, and probes without charging", async () => {
    stores.east.fault = { kind: "hang" };
    await demand(25);
    await clock.advanceAsync(160, 10);
    expect(lender.regions()[1]).toMatchObject({ region: "west", borrowedHits: 10 });
    stores.east.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    await demand(25);
    await clock.advanceAsync(2_000, 10);
    expect(events).toEqual([{ kind: "regionLost", region: "east", code: "STORE_TIMEOUT" }]);
    const lost = { isReachable: false, callCount: 1, borrowedHits: 0, lostHits: 10 };
    expect(lender.regions()[0]).toMatchObject(lost);
    // It was charged once, and nobody was given that.
    expect(await levelHits("east")).toBe(10);
    stores.east.fault = { kind: "none" };
    await clock.advanceAsync(300, 10);
    expect(events.at(-1)).toEqual({ kind: "regionFound", region: "east" });
  });

  it("asks others for what a lost region was asked for", async () => {
    stores.east.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    await demand(25);
    await clock.advanceAsync(160, 10);
    expect(stores.east.batches).toHaveLength(1);
    await demand(25);
    await clock.advanceAsync(160, 10);
    expect(lender.regions()[0]?.isReachable).toBe(false);
    expect(await levelHits("west")).toBe(10);
  });

  it("borrows nothing for a second after this region's store lost a credit", async () => {
    await demand(25);
    stores.north.fault = { kind: "hang" };
    await clock.advanceAsync(420, 10);
    expect(events).toEqual([{ kind: "creditsLost", code: "STORE_TIMEOUT" }]);
    expect(lender.regions()[0]).toMatchObject({ lostHits: 10, borrowedHits: 0 });
    stores.north.fault = { kind: "none" };
    const callCount = stores.east.batches.length;
    // What was lost, as this store saw it, arrived.
    expect(await demand(25)).toBe(20);
    await clock.advanceAsync(500, 10);
    expect(stores.east.batches).toHaveLength(callCount);
  });

  it("borrows in a window, and never across its end", async () => {
    const windowed = {
      ...limit,
      periodUs: 60_000_000,
      algorithm: { kind: "fixed_window" },
    } as const;
    await clock.advanceAsync(60_000 - ((clock.epochUs() / 1_000) % 60_000));
    expect(await demand(25, windowed, true)).toBe(20);
    // The first round looks at the others' windows, the second one borrows.
    await clock.advanceAsync(320, 10);
    expect(lender.regions()[0]).toMatchObject({ borrowedHits: 10, lostHits: 0 });
    await clock.advanceAsync(59_400);
    expect(await demand(25, windowed, true)).toBe(20);
    stores.east.fault = { kind: "hang" };
    stores.west.fault = { kind: "hang" };
    await clock.advanceAsync(600, 10);
    expect(await demand(1, windowed, true)).toBe(1);
    expect(lender.regions()[0]?.borrowedHits).toBe(10);
  });

  it("leaves no timer behind, and ends after its calls", async () => {
    stores.east.fault = { kind: "hang" };
    await demand(25);
    await clock.advanceAsync(160, 10);
    const closing = lender.close();
    await clock.advanceAsync(500, 10);
    await closing;
    expect(clock.timerCount).toBe(0);
  });
});
