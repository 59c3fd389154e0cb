import { describe, expect, it } from "vitest";
import { partsMax } from "../../../src/rpc/rate-limit-config.js";
import { Dice } from "../../simulation/dice.js";
import { isRefusal, messageDecoders } from "../../support/decoders.js";
import { FakeRandom } from "../../support/fake-random.js";
import { runSeeds, seedsFrom, seedsTimeoutMs } from "../../support/seeds.js";
import { sizeOf } from "../../support/size-of.js";
import { answerDecoders } from "../../support/store-decoders.js";
import { mutate, randomBytes } from "../../support/wire-fuzz.js";

/** Small enough that a thousand of them take seconds; what is bounded is a part of the bytes. */
const usualBytes = 262_144;

/**
 * What a thread of its own reads is bounded by how many parts it has, not by its bytes: in so many
 * bytes, parts that come in numbers are more than that, and the others grow with the bytes.
 */
const elsewhereBytes = 524_288;

const decoders = [...messageDecoders, ...answerDecoders];

describe("the worst inputs of a decoder", () => {
  it.each(decoders)(
    "are refused, or take no more than ten times their bytes: $name",
    { timeout: 60_000 },
    async ({ bytesMax, worst, decode, held = decode, isElsewhere }) => {
      const byteCount = Math.min(bytesMax, isElsewhere === true ? elsewhereBytes : usualBytes);
      const faults: string[] = [];
      for (const { what, bytes } of worst(byteCount)) {
        try {
          const size = sizeOf(await held(bytes));
          if (size > 10 * Math.max(bytes.length, byteCount)) faults.push(`${what}: ${size} bytes`);
        } catch (thrown) {
          // It is refused, before anything is made of the rest.
          if (!isRefusal(thrown)) faults.push(`${what}: ${String(thrown)}`);
        }
      }
      expect(faults).toEqual([]);
    },
  );

  it("of as many parts as a policy may have take no more than ten times the largest", async () => {
    const policies = messageDecoders.find(({ isElsewhere }) => isElsewhere);
    if (policies === undefined) throw new Error("none is read elsewhere");
    // Empty ones, of two bytes each.
    const worst = policies.worst(2 * partsMax).find(({ what }) => what === "descriptors, empty");
    const made = await policies.decode(worst?.bytes ?? Buffer.alloc(0));
    // Its texts and the message: it is not refused.
    expect(made).toHaveLength(2);
    expect(sizeOf(made)).toBeGreaterThan(5 * policies.bytesMax);
    expect(sizeOf(made)).toBeLessThan(10 * policies.bytesMax);
  });
});

describe("a decoder that reads in turns", () => {
  it.each(decoders.filter(({ turns }) => turns !== undefined))(
    "lets others have theirs each 16 KiB: $name",
    ({ bytesMax, worst, turns }) => {
      const counts = worst(bytesMax).map(({ what, bytes }) => {
        let turnCount = 0;
        for (const read = turns?.(bytes); read?.next().done === false; ) turnCount += 1;
        return { what, turnCount, bytes: bytes.length };
      });
      const whole = counts.filter(({ what }) => what !== "texts");
      // A text or a row more than 16 KiB.
      for (const { what, turnCount, bytes } of whole) {
        expect(turnCount, what).toBeGreaterThanOrEqual(Math.floor(bytes / 16_500));
      }
      expect(Math.max(...whole.map(({ turnCount }) => turnCount))).toBeGreaterThan(250);
      // Of no more texts than Envoys.
      expect(counts.find(({ what }) => what === "texts")?.turnCount).toBe(4);
    },
  );
});

describe("a decoder", () => {
  it.each(decoders)("reads what it is for: $name", async ({ valid, decode }) => {
    for (const bytes of valid) expect(await decode(bytes), bytes.toString()).toBeDefined();
  });

  it.each(decoders)(
    "makes of any bytes a value, or a refusal of its own: $name",
    { timeout: seedsTimeoutMs(60_000) },
    async ({ valid, decode }) => {
      await runSeeds(seedsFrom(1, 5), async (seed) => {
        const dice = new Dice(new FakeRandom(seed));
        for (let i = 0; i < 300; i += 1) {
          const whole = dice.pick(valid);
          const bytes = dice.pick([
            () => Buffer.from(mutate(dice, whole)),
            () => whole.subarray(0, dice.below(whole.length + 1)),
            () => Buffer.from(randomBytes(dice, 1 + dice.below(200))),
          ])();
          try {
            await decode(bytes);
          } catch (thrown) {
            if (!isRefusal(thrown)) throw new Error(bytes.toString("hex"), { cause: thrown });
          }
        }
      });
    },
  );
});
