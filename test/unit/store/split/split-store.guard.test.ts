import { beforeEach, describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import type { StoreOutcome } from "../../../../src/store/limit-store.js";
import { SplitGuard } from "../../../../src/store/split/split-store.js";
import { farDeadlineMs, once, testCharge } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { LawPart, type PartFate } from "../../../support/law-part.js";

let clock: FakeClock;
let part: LawPart;
let guard: SplitGuard;
let askedCount: number;

beforeEach(() => {
  clock = new FakeClock();
  part = new LawPart(clock);
  guard = new SplitGuard(part, clock);
  meet("answered");
});

function meet(fate: PartFate): void {
  askedCount = 0;
  part.meet = () => {
    askedCount += 1;
    return fate;
  };
}

/** Asks once after 30 ms: how it went, in a word. */
async function ask(): Promise<string> {
  clock.advance(30);
  try {
    await guard.take([once(testCharge({ burst: 1_000, hits: 1_000 }))], farDeadlineMs);
    return "decided";
  } catch (thrown) {
    return isServiceError(thrown) ? thrown.code : "INTERNAL";
  }
}

async function askTimes(count: number): Promise<readonly string[]> {
  const words: string[] = [];
  for (let i = 0; i < count; i += 1) words.push(await ask());
  return words;
}

async function hang(): Promise<void> {
  meet("lost");
  expect(await askTimes(5)).toEqual(Array(5).fill("STORE_TIMEOUT"));
}

describe("SplitGuard", () => {
  it("leaves a part alone that does not answer in time, but for a probe now and then", async () => {
    await hang();
    expect(await askTimes(3)).toEqual(Array(3).fill("STORE_CIRCUIT_OPEN"));
    expect(askedCount).toBe(5);
    expect(await askTimes(3)).toEqual([
      "STORE_TIMEOUT",
      "STORE_CIRCUIT_OPEN",
      "STORE_CIRCUIT_OPEN",
    ]);
  });

  it("asks on where a part says of requests at once that they fail", async () => {
    part.take = async (batch) => {
      askedCount += 1;
      return batch.map(() => ({ kind: "failed", code: "STORE_FULL" }));
    };
    expect(await askTimes(20)).toEqual(Array(20).fill("decided"));
    expect(askedCount).toBe(20);
  });

  it("never waits longer than 250 ms for the next probe", async () => {
    await hang();
    await askTimes(100);
    meet("lost");
    const words = (await askTimes(100)).map((word) => (word === "STORE_TIMEOUT" ? "," : "."));
    // Asked every 30 ms, it is asked for good every 270.
    expect(words.join("")).toMatch(/^\.*(,\.{8}){10}/);
  });

  it("asks again as before once a probe was answered", async () => {
    await hang();
    meet("answered");
    expect(await askTimes(5)).toEqual([
      "STORE_CIRCUIT_OPEN",
      "STORE_CIRCUIT_OPEN",
      "STORE_CIRCUIT_OPEN",
      "decided",
      "decided",
    ]);
  });

  it("goes on asking a part that fails at once, which costs nobody any time", async () => {
    meet("refused");
    expect(await askTimes(50)).toEqual(Array(50).fill("STORE_UNAVAILABLE"));
  });

  it("takes any other answer for a sign of life", async () => {
    for (let i = 0; i < 20; i += 1) {
      meet(i % 4 === 3 ? "refused" : "lost");
      expect(await ask()).not.toBe("STORE_CIRCUIT_OPEN");
    }
  });

  it("counts a batch as timed out only when all of it is", async () => {
    const timedOut: StoreOutcome = { kind: "failed", code: "STORE_TIMEOUT" };
    const decided = await part.take([once(testCharge())]);
    part.take = async () => [timedOut, ...decided];
    expect(await askTimes(50)).toEqual(Array(50).fill("decided"));
    part.take = async () => [timedOut, timedOut];
    expect((await askTimes(6)).at(-1)).toBe("STORE_CIRCUIT_OPEN");
  });

  it("gives nothing back to a part that it leaves alone", async () => {
    await hang();
    const giving = guard.giveBack([], farDeadlineMs);
    await expect(giving).rejects.toMatchObject({ code: "STORE_CIRCUIT_OPEN" });
  });

  it("asks for people whatever the breaker says", async () => {
    await hang();
    meet("answered");
    await guard.ping(farDeadlineMs);
    expect(await guard.peek(testCharge().key, farDeadlineMs)).toBeDefined();
    expect(await guard.forget([testCharge().key], farDeadlineMs)).toBe(1);
    await guard.verify(farDeadlineMs);
    await guard.close();
    expect(await ask()).toBe("STORE_CIRCUIT_OPEN");
  });
});
