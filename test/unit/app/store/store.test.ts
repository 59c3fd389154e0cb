import { describe, expect, it } from "vitest";
import { localKeysMax, openLocalStore } from "../../../../src/app/store/store.js";
import type { MemoryLimitStore } from "../../../../src/store/memory.js";
import { once, testCharge } from "../../../support/charges.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";

/** Brings new keys, 256 a batch; answers how many of them found room. */
async function fill(store: MemoryLimitStore, keyCount: number): Promise<number> {
  let storedCount = 0;
  for (let at = 0; at < keyCount; at += 256) {
    const batch = Array.from({ length: Math.min(256, keyCount - at) }, (_, i) =>
      once(testCharge({ key: `key ${at + i}` })),
    );
    const outcomes = await store.take(batch);
    storedCount += outcomes.filter(({ kind }) => kind === "decided").length;
  }
  return storedCount;
}

describe("openLocalStore()", () => {
  it("holds localKeysMax keys, however many the embedded store may hold", async () => {
    const store = openLocalStore(
      { memoryKeysMax: 1_000_000 },
      {
        clock: new FakeClock(),
        random: new FakeRandom(),
      },
    );
    expect(await fill(store, localKeysMax + 500)).toBe(localKeysMax);
    expect(store.keyCount).toBe(localKeysMax);
  });

  it("holds fewer where the embedded store may hold fewer", async () => {
    const store = openLocalStore(
      { memoryKeysMax: 300 },
      {
        clock: new FakeClock(),
        random: new FakeRandom(),
      },
    );
    expect(await fill(store, 1_000)).toBe(300);
  });
});
