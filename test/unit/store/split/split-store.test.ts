import { beforeEach, describe, expect, it } from "vitest";
import { type Charge, levelAt, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import type { StoreOutcome, StoreRequest } from "../../../../src/store/limit-store.js";
import { SplitStore } from "../../../../src/store/split/split-store.js";
import { farDeadlineMs, once, testCharge, testKey } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { LawPart, type PartFate } from "../../../support/law-part.js";

/** How far the second part's clock is ahead. */
const offsetUs = 5_000_000;

let clock: FakeClock;
let left: LawPart;
let right: LawPart;
let store: SplitStore;

beforeEach(() => {
  clock = new FakeClock();
  left = new LawPart(clock);
  right = new LawPart(clock, offsetUs);
  const partOf = ({ key }: { readonly key: string }): number => (key.startsWith("left") ? 0 : 1);
  store = new SplitStore({
    parts: [left, right],
    partOf,
    partsOfKey: (key) => [partOf({ key })],
    clock,
  });
});

function yearly(key: string, overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
  return testCharge({ key, hits: 10, periodUs: 31_536_000_000_000, burst: 10, ...overrides });
}

async function take(request: StoreRequest): Promise<StoreOutcome> {
  const [outcome] = await store.take([request], farDeadlineMs);
  if (outcome === undefined) throw new Error("no outcome");
  return outcome;
}

function take1(...charges: readonly Charge[]): Promise<StoreOutcome> {
  return take(once(...charges));
}

/** Granted, denied or failed, which charges are over, and how many hits each bucket shows. */
function reported(outcome: StoreOutcome): string {
  if (outcome.kind === "failed") return outcome.code;
  const { grantedCount, results, nowUs } = outcome.result;
  const shown = results.map(({ isOver, bucket }) => {
    const level = levelAt({ hits: 10, periodUs: 31_536_000_000_000 }, bucket, nowUs);
    return `${Math.ceil(level / unitsPerHit)}${isOver ? " over" : ""}`;
  });
  return `${grantedCount}: ${shown.join(", ")}`;
}

async function used(key: string): Promise<number> {
  const peeked = await store.peek(testKey(key), farDeadlineMs);
  return Math.ceil((peeked?.bucket.level ?? 0) / unitsPerHit);
}

/** Somebody else takes hits of the right part just before its nth call. */
function rushBefore(nth: number, charge: Charge): void {
  let count = 0;
  right.meet = async (): Promise<PartFate> => {
    count += 1;
    if (count !== nth) return "answered";
    right.meet = () => "answered";
    await right.take([once(charge)]);
    return "answered";
  };
}

/** The nth call of a part meets this fate, the others are answered. */
function fate(part: LawPart, nth: number, of: PartFate): void {
  let count = 0;
  part.meet = () => {
    count += 1;
    return count === nth ? of : "answered";
  };
}

describe("SplitStore.take() of a request over two parts", () => {
  it("charges both", async () => {
    expect(reported(await take1(yearly("left"), yearly("right", { cost: 3 })))).toBe("1: 1, 3");
    expect([await used("left"), await used("right")]).toEqual([1, 3]);
  });

  it("charges neither when the peek finds one of them over", async () => {
    await take1(yearly("right", { cost: 10 }));
    expect(reported(await take1(yearly("left"), yearly("right")))).toBe("0: 0, 10 over");
    expect(left.charged).toEqual([]);
    expect(left.givenBack).toEqual([]);
  });

  it("counts a key twice that is charged twice", async () => {
    const six = yearly("left", { cost: 6 });
    expect(reported(await take1(six, yearly("right"), six))).toBe("0: 0, 0, 6 over");
  });

  it("gives back when a part denies that had room at the peek", async () => {
    rushBefore(2, yearly("right", { cost: 10 }));
    const outcome = await take1(yearly("left", { cost: 2 }), yearly("right"));
    expect(reported(outcome)).toBe("0: 0, 10 over");
    expect(left.givenBack).toMatchObject([{ key: "left", cost: 2 }]);
    expect([await used("left"), await used("right")]).toEqual([0, 10]);
  });

  it("shows all buckets on one clock, although the parts' differ", async () => {
    await take1(yearly("left", { cost: 9 }), yearly("right", { cost: 9 }));
    clock.advance(1_000);
    const outcome = await take1(yearly("left"), yearly("right"));
    if (outcome.kind !== "decided") throw new Error("not decided");
    const { nowUs, results } = outcome.result;
    expect(results.map(({ bucket }) => bucket.tUs)).toEqual([nowUs, nowUs]);
    clock.advance(1_000);
    const denied = await take1(yearly("left"), yearly("right"));
    if (denied.kind !== "decided") throw new Error("not decided");
    const ages = denied.result.results.map(({ bucket }) => denied.result.nowUs - bucket.tUs);
    expect(ages).toEqual([1_000_000, 1_000_000]);
  });

  it("evaluates a shadow charge without denying", async () => {
    await take1(yearly("right", { cost: 10 }));
    const shadow = yearly("right", { role: "shadow" });
    expect(reported(await take1(yearly("left"), shadow))).toBe("1: 1, 10 over");
  });

  it("denies by quota charges only when all of them are over, wherever they are", async () => {
    const quota = (key: string, cost = 1): Charge => yearly(key, { role: "quota", cost });
    await take1(quota("right", 10));
    expect(reported(await take1(quota("left", 9), quota("right")))).toBe("1: 9, 10 over");
    expect(reported(await take1(quota("left", 2), quota("right")))).toBe("0: 9 over, 10 over");
    expect([await used("left"), await used("right")]).toEqual([9, 10]);
  });

  it("denies by quota charges that have become over since the peek, and gives back", async () => {
    const quota = (key: string, cost = 1): Charge => yearly(key, { role: "quota", cost });
    await take1(quota("left", 10));
    rushBefore(2, yearly("right", { cost: 10 }));
    const outcome = await take1(quota("left"), quota("right"), yearly("left b", { cost: 4 }));
    expect(reported(outcome)).toBe("0: 10 over, 10 over, 0");
    expect(await used("left b")).toBe(0);
  });

  it("settles and refunds once, also when the request is denied", async () => {
    await take1(yearly("left", { cost: 5 }), yearly("right", { cost: 10 }));
    const refund = yearly("left", { isRefund: true, cost: 2 });
    const settle = yearly("left s", { role: "settle", cost: 4 });
    const peek = yearly("left p", { cost: 0 });
    const outcome = await take1(refund, yearly("right"), settle, peek);
    expect(reported(outcome)).toBe("0: 3, 10 over, 4, 0");
    expect([await used("left"), await used("left s")]).toEqual([3, 4]);
  });

  it("keeps what is settled when a part denies after the peek", async () => {
    rushBefore(2, yearly("right", { cost: 10 }));
    const settle = yearly("left s", { role: "settle", cost: 4 });
    const outcome = await take1(settle, yearly("left"), yearly("right"));
    expect(reported(outcome)).toBe("0: 4, 0, 10 over");
    expect([await used("left"), await used("left s")]).toEqual([0, 4]);
  });

  it("leaves a debt alone that it peeks at", async () => {
    const settle = (cost: number): Charge => yearly("left", { role: "settle", cost });
    await take1(settle(9));
    await take1(settle(9));
    expect(reported(await take1(settle(1), yearly("right")))).toBe("0: 19 over, 0");
    expect(await used("left")).toBe(19);
  });
});

describe("SplitStore.take() of identical requests over two parts", () => {
  const both = (cost = 1): readonly Charge[] => [yearly("left", { cost }), yearly("right")];

  it("grants as many as fit both", async () => {
    await take1(yearly("right", { cost: 4 }));
    const outcome = await take({ charges: both(), multiplicity: 20 });
    expect(reported(outcome)).toBe("6: 6, 10 over");
    expect([await used("left"), await used("right")]).toEqual([6, 10]);
  });

  it("grants all of them where they fit", async () => {
    expect(reported(await take({ charges: both(3), multiplicity: 3 }))).toBe("3: 9, 3");
  });

  it("gives back what one part granted more than the other", async () => {
    rushBefore(2, yearly("right", { cost: 8 }));
    const outcome = await take({ charges: both(), multiplicity: 5 });
    expect(reported(outcome)).toBe("2: 2, 10 over");
    expect(left.givenBack).toMatchObject([{ key: "left", cost: 3 }]);
    expect([await used("left"), await used("right")]).toEqual([2, 10]);
  });

  it("gives back all of it where the other part granted none", async () => {
    rushBefore(2, yearly("right", { cost: 10 }));
    expect(reported(await take({ charges: both(2), multiplicity: 3 }))).toBe("0: 0, 10 over");
    expect(await used("left")).toBe(0);
  });
});

describe("SplitStore.take() when a reply is lost", () => {
  const ask = (): Promise<StoreOutcome> => take1(yearly("left", { cost: 2 }), yearly("right"));

  it.each<PartFate>(["refused", "lost"])("at the peek (%s): charges nothing", async (how) => {
    fate(right, 1, how);
    expect(reported(await ask())).toMatch(/^STORE_/);
    expect([await used("left"), await used("right")]).toEqual([0, 0]);
  });

  it.each<[PartFate, number]>([
    ["refused", 0],
    ["lost", 1],
  ])("at the charge (%s): fails, and what was charged stays", async (how, usedRight) => {
    fate(right, 2, how);
    expect(reported(await ask())).toMatch(/^STORE_/);
    expect([await used("left"), await used("right")]).toEqual([2, usedRight]);
    expect(left.givenBack).toEqual([]);
  });

  it.each<[PartFate, number]>([
    ["refused", 2],
    ["lost", 0],
  ])("at the giving back (%s): is denied, at most its cost stays", async (how, usedLeft) => {
    rushBefore(2, yearly("right", { cost: 10 }));
    fate(left, 3, how);
    expect(reported(await ask())).toBe("0: 2, 10 over");
    expect([await used("left"), await used("right")]).toEqual([usedLeft, 10]);
  });
});

describe("SplitStore.take() of a batch", () => {
  it("asks each part once for all that needs one part, in order", async () => {
    const batches: number[] = [];
    for (const part of [left, right]) {
      part.meet = (call) => {
        if (call.kind === "take") batches.push(call.batch.length);
        return "answered";
      };
    }
    const batch = ["left", "right", "left", "right", "left"].map((key) =>
      once(yearly(key, { cost: 4 })),
    );
    const outcomes = await store.take(batch, farDeadlineMs);
    expect(outcomes.map(reported)).toEqual(["1: 4", "1: 4", "1: 8", "1: 8", "0: 8 over"]);
    expect(batches).toEqual([3, 2]);
  });

  it("fails only what needs the part that fails", async () => {
    right.meet = () => "refused";
    const batch = [
      once(yearly("left")),
      once(yearly("right")),
      once(yearly("left"), yearly("right")),
    ];
    const outcomes = await store.take(batch, farDeadlineMs);
    expect(outcomes.map(reported)).toEqual(["1: 1", "STORE_UNAVAILABLE", "STORE_UNAVAILABLE"]);
    expect(await used("left")).toBe(1);
  });

  it("rejects when all that it needed fails and nothing has answered for a second", async () => {
    right.meet = () => "refused";
    await expect(take1(yearly("right"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await take1(yearly("left"));
    clock.advance(999);
    expect(reported(await take1(yearly("right")))).toBe("STORE_UNAVAILABLE");
    clock.advance(1);
    await expect(take1(yearly("right"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});
