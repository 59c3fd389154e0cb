import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDecisionServices } from "../../src/app/ports/decision-ports.js";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { adminMethods } from "../../src/rpc/admin/methods.js";
import { FieldReader } from "../../src/rpc/codec/field-reader.js";
import { ControlPlane } from "../../src/rpc/control/control-plane.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { Health } from "../../src/rpc/grpc/health.js";
import { partsMax } from "../../src/rpc/policy-xds/rate-limit-config.js";
import { Dice } from "../simulation/dice.js";
import { createTestDecider } from "../support/decider.js";
import { freeBytesDefault, isRefusal, messageDecoders, worstInputs } from "../support/decoders.js";
import { DoorKeeper } from "../support/ext-proc.js";
import { plainExtras } from "../support/extras.js";
import { FakeClock } from "../support/fake-clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { runSeeds, seedsFrom } from "../support/seeds.js";
import { measureSize } from "../support/size-of.js";
import { answerDecoders } from "../support/store-decoders.js";
import { mutate, randomBytes } from "../support/wire-fuzz.js";

/**
 * Looks for a field and objects that a message may cost who reads it at once: of 20 ns and 75 ns,
 * they are 5 ms. `npm run bench -- --decoders` measures what they take.
 */
const looksMax = 262_200;
const objectsMax = 65_536;

const decoders = [...messageDecoders, ...answerDecoders];

describe("the decoders of this test", () => {
  it("are those of each method of each port", () => {
    const clock = new FakeClock();
    const random = new FakeRandom();
    const counters = new DecisionCounters();
    const admission = new DoorKeeper(() => {});
    const served = createDecisionServices({
      decider: createTestDecider({ policies: { current: () => undefined }, clock, counters }),
      clock,
      random,
      counters,
      extras: plainExtras,
      isShadow: false,
      admission,
      codec: new ExtProcCodec(admission),
      counts: new ExchangeCounts(),
      health: new Health(),
    });
    const quotas = { open: nobody };
    const control = new ControlPlane({ clock, random, quotas: { quotas, onIgnored: () => {} } });
    const services = [...served, ...control.services];
    const paths = services.flatMap(({ name, methods }) =>
      methods.map((one) => `/${name}/${one.name}`),
    );
    const rows = messageDecoders.flatMap(({ methods = [] }) => methods);
    expect(rows.toSorted()).toEqual([...paths, ...adminMethods.keys()].toSorted());
  });
});

describe("the worst inputs of a decoder", () => {
  let looks: ReturnType<typeof countLooks>;
  beforeAll(() => {
    looks = countLooks();
  });
  afterAll(() => looks.end());

  it.each(decoders)(
    "are refused, or take ten times their bytes and little more, and little work: $name",
    async (decoder) => {
      const { decode, held = decode, turns, isElsewhere, freeBytes = freeBytesDefault } = decoder;
      const isAtOnce = turns === undefined && isElsewhere !== true;
      const faults: string[] = [];
      for (const { what, bytes } of worstInputs(decoder)) {
        looks.begin();
        try {
          const size = measureSize(await held(bytes), bytes);
          const reported = `${what}, of ${bytes.length} bytes`;
          if (size.bytes > 10 * bytes.length + freeBytes)
            faults.push(`${reported}: ${size.bytes} bytes`);
          if (isAtOnce && size.objectCount > objectsMax) {
            faults.push(`${reported}: ${size.objectCount} objects`);
          }
        } catch (thrown) {
          // It is refused, before anything is made of the rest.
          if (!isRefusal(thrown)) faults.push(`${what}: ${String(thrown)}`);
        }
        const count = looks.count();
        if (isAtOnce && count > looksMax) faults.push(`${what}: ${count} looks for a field`);
      }
      expect(faults).toEqual([]);
    },
  );

  it("of as many parts as a policy may have take no more than ten times the largest", async () => {
    const policies = messageDecoders.find(({ isElsewhere }) => isElsewhere);
    if (policies === undefined) throw new Error("none is read elsewhere");
    // Empty ones, of two bytes each.
    const all = [...policies.worst(2 * partsMax)];
    const worst = all.find(({ what }) => what === "descriptors, empty");
    const made = await policies.decode(worst?.bytes ?? Buffer.alloc(0));
    // Its texts and the message: it is not refused.
    expect(made).toHaveLength(2);
    const { bytes } = measureSize(made, worst?.bytes);
    expect(bytes).toBeGreaterThan(5 * policies.bytesMax);
    expect(bytes).toBeLessThan(10 * policies.bytesMax);
  });
});

describe("a decoder that reads in turns", () => {
  it.each(decoders.filter(({ turns }) => turns !== undefined))(
    "lets others have theirs each 16 KiB: $name",
    ({ bytesMax, worst, turns }) => {
      const counts = Array.from(worst(bytesMax), ({ what, bytes }) => {
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
    async ({ valid, decode }) => {
      await runSeeds(seedsFrom(1, 3), async (seed) => {
        const dice = new Dice(new FakeRandom(seed));
        for (let i = 0; i < 200; i += 1) {
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

function nobody(): never {
  throw new Error("nobody has a quota");
}

/**
 * Counts how often anybody looks for the next field of a message, until it is told to end. Each
 * change of the method makes V8 forget what it has compiled, so one serves for all inputs.
 */
function countLooks() {
  const { next } = FieldReader.prototype;
  let count = 0;
  FieldReader.prototype.next = function countedNext(this: FieldReader): boolean {
    count += 1;
    return next.call(this);
  };
  return {
    begin: () => {
      count = 0;
    },
    count: () => count,
    end: () => {
      FieldReader.prototype.next = next;
    },
  };
}
