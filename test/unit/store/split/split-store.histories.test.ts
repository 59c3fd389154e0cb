import { describe, expect, it } from "vitest";
import { type Charge, levelAt, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { isRepeatable } from "../../../../src/core/limits/gcra.js";
import type { Role } from "../../../../src/core/limits/limit.js";
import type { StoreRequest } from "../../../../src/store/limit-store.js";
import { SplitStore } from "../../../../src/store/split/split-store.js";
import { farDeadlineMs, testCharge, testKey } from "../../../support/charges.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { LawPart, type PartFate } from "../../../support/law-part.js";
import { metCount, seedsFrom } from "../../../support/seeds.js";

const seeds = seedsFrom(1, 60);
const requestCount = 30;
const partCount = 3;
const keyCount = 5;

interface Weather {
  /** The longest step of the clock between two calls of parts. */
  readonly stepMsMax: number;
  /** How many calls in a hundred are refused, or lose their reply. */
  readonly faultPercent: number;
}

interface Admitted {
  readonly key: string;
  readonly hits: number;
  readonly nowUs: number;
}

/** A charge that its copies can be known by. */
type MarkedCharge = Charge & { readonly mark: number };

describe("several split stores over the same parts", () => {
  it.each<[string, Weather]>([
    ["in good weather", { stepMsMax: 40, faultPercent: 0 }],
    ["with calls refused and replies lost", { stepMsMax: 40, faultPercent: 15 }],
  ])("never admit more than the promise, however their calls mix, %s", async (_name, weather) => {
    let admittedCount = 0;
    let givenBackCount = 0;
    for (const seed of seeds) {
      const history = new History(seed, weather);
      await history.run();
      for (const limit of history.limits) expectPromise(limit, history.admitted, seed);
      admittedCount += history.admitted.length;
      givenBackCount += history.parts.reduce((sum, part) => sum + part.givenBack.length, 0);
    }
    expect(admittedCount).toBeGreaterThan(metCount(60));
    expect(givenBackCount).toBeGreaterThan(metCount(30));
  });

  it("leave exactly what they admitted, where time stands still and nothing is lost", async () => {
    for (const seed of seeds) {
      const history = new History(seed, { stepMsMax: 0, faultPercent: 0 });
      await history.run();
      for (const { key } of history.limits) {
        const hits = history.admitted.reduce(
          (sum, one) => sum + (one.key === key ? one.hits : 0),
          0,
        );
        expect(await history.usedHits(key), `seed ${seed}, ${key}`).toBe(hits);
      }
    }
  });
});

/** In every interval, no more than the burst and what drains in it. */
function expectPromise(limit: Charge, admitted: readonly Admitted[], seed: number): void {
  const own = admitted.filter(({ key }) => key === limit.key).sort((a, b) => a.nowUs - b.nowUs);
  own.forEach((first, i) => {
    let hits = 0;
    for (const last of own.slice(i)) {
      hits += last.hits;
      const drained = Math.floor(((last.nowUs - first.nowUs) * limit.hits) / limit.periodUs);
      expect(hits, `seed ${seed}, ${limit.key}`).toBeLessThanOrEqual(limit.burst + drained);
    }
  });
}

/** Requests of several stores whose calls to the parts run in a random order. */
class History {
  readonly #random: FakeRandom;
  readonly #weather: Weather;
  readonly #clock = new FakeClock();
  readonly #waiting: ((fate: PartFate) => void)[] = [];
  readonly parts: readonly LawPart[];
  readonly limits: readonly Charge[];
  readonly admitted: Admitted[] = [];

  constructor(seed: number, weather: Weather) {
    this.#random = new FakeRandom(seed);
    this.#weather = weather;
    this.parts = Array.from({ length: partCount }, () => {
      const part = new LawPart(this.#clock, this.#below(10_000_000));
      part.meet = () => new Promise((resolve) => this.#waiting.push(resolve));
      return part;
    });
    this.limits = Array.from({ length: keyCount }, (_, i) =>
      testCharge({
        key: `${i}`,
        hits: 1 + this.#below(20),
        periodUs: 1_000_000,
        burst: 1 + this.#below(8),
      }),
    );
  }

  async run(): Promise<void> {
    const stores = [1, 2, 3].map(() => this.#openStore());
    const asks: Promise<void>[] = [];
    for (let mark = 0; mark < requestCount; mark += 1) {
      const store = stores[this.#below(stores.length)];
      if (store !== undefined) asks.push(this.#ask(store, mark));
      while (this.#waiting.length > this.#below(8)) await this.#runOne();
    }
    for (await settlePromises(); this.#waiting.length > 0; ) await this.#runOne();
    await Promise.all(asks);
  }

  async usedHits(key: string): Promise<number> {
    const limit = this.limits[Number(key)];
    const peeked = await this.parts[partOf(key)]?.peek(testKey(key));
    if (limit === undefined || peeked === undefined) return 0;
    return levelAt(limit, peeked.bucket, peeked.nowUs) / unitsPerHit;
  }

  #openStore(): SplitStore {
    return new SplitStore({
      parts: this.parts,
      partOf: ({ key }) => partOf(key),
      partsOfKey: (key) => [partOf(key)],
      clock: this.#clock,
    });
  }

  async #ask(store: SplitStore, mark: number): Promise<void> {
    const request = this.#request(mark);
    const [outcome] = await store.take([request], farDeadlineMs).catch(() => []);
    if (outcome?.kind !== "decided" || outcome.result.grantedCount === 0) return;
    for (const part of this.parts) {
      for (const { charge, nowUs } of part.charged) {
        if (!("mark" in charge) || charge.mark !== mark) continue;
        const hits = charge.cost * outcome.result.grantedCount;
        this.admitted.push({ key: charge.key, hits, nowUs });
      }
    }
  }

  #request(mark: number): StoreRequest {
    const roles: readonly Role[] = ["enforce", "enforce", "enforce", "quota", "shadow"];
    const charges = Array.from({ length: 1 + this.#below(4) }, (): MarkedCharge => {
      const limit = this.limits[this.#below(keyCount)] ?? testCharge();
      const role = roles[this.#below(roles.length)] ?? "enforce";
      return { ...limit, role, cost: 1 + this.#below(3), mark };
    });
    const multiplicity = isRepeatable(charges) ? 1 + this.#below(4) : 1;
    return { charges, multiplicity };
  }

  /** Lets one call run that waits, whichever, after some time. */
  async #runOne(): Promise<void> {
    const { stepMsMax, faultPercent } = this.#weather;
    if (stepMsMax > 0) this.#clock.advance(this.#below(stepMsMax));
    const [run] = this.#waiting.splice(this.#below(this.#waiting.length), 1);
    const roll = this.#below(200);
    run?.(roll < faultPercent ? "refused" : roll < 2 * faultPercent ? "lost" : "answered");
    await settlePromises();
  }

  /** A whole number from 0, below `limit`. */
  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit);
  }
}

function partOf(key: string): number {
  return Number(key) % partCount;
}
