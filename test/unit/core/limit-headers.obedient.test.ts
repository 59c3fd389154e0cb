import { describe, expect, it } from "vitest";
import type { Bucket, Charge } from "../../../src/core/bucket.js";
import { decideRequest } from "../../../src/core/gcra.js";
import type { Limit, LimitKey } from "../../../src/core/limit.js";
import { limitResponse } from "../../../src/core/limit-headers.js";
import { descriptorVerdict } from "../../../src/core/verdict.js";
import { testCharge } from "../../support/charges.js";
import { testLimit } from "../../support/policies.js";

const hourUs = 3_600_000_000;
const second = 1_000_000;

const rates: Readonly<Record<string, Limit>> = {
  "100 a minute": testLimit(100),
  "7 a minute": testLimit(7),
  "1 a minute": testLimit(1),
  "114 a minute": testLimit(114),
  "7 a second": testLimit(7, { unit: "second", periodUs: second }),
  "20 a second": testLimit(20, { unit: "second", periodUs: second }),
  "500 an hour": testLimit(500, { unit: "hour", periodUs: hourUs }),
};

const bursts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 300];

/** A limit, asked one hit at a time, and what its headers allow after each. */
class Service {
  readonly #limit: Limit;
  readonly #charge: Charge;
  readonly #buckets = new Map<LimitKey, Bucket>();
  nowUs = 1_700_000_000_000_000;
  admitted = 0;
  refused = 0;

  constructor(limit: Limit) {
    this.#limit = limit;
    const { hits, periodUs, burst } = limit;
    this.#charge = testCharge({ hits, periodUs, burst });
  }

  ask(): { readonly r: number; readonly t: number; readonly q: number; readonly w: number } {
    const { isDenied, results } = decideRequest([this.#charge], this.#buckets, this.nowUs);
    if (isDenied) this.refused += 1;
    else this.admitted += 1;
    const decided = results.map((result) => ({ limit: this.#limit, charge: this.#charge, result }));
    const status = descriptorVerdict(decided, this.nowUs);
    const one = { status, label: "limit", headers: "ietf" } as const;
    const text = limitResponse([one], { isDenied })
      .headers.map(({ value }) => value)
      .join(";");
    const [, q, w, r, t] = /;q=(\d+);w=(\d+);.*;r=(\d+);t=(\d+)$/.exec(text)?.map(Number) ?? [];
    if (q === undefined || w === undefined || r === undefined || t === undefined)
      throw new Error(`no fields: ${text}`);
    return { r, t, q, w };
  }

  /**
   * Lets a client go its rounds until then. A round depends on the bucket and its age alone, so
   * where both come back all rounds in between do: they are counted, and not asked again.
   */
  repeat(round: () => void, untilUs: number): void {
    const known = new Map<string, Pick<Service, "nowUs" | "admitted" | "refused">>();
    while (this.nowUs < untilUs) {
      const { nowUs, admitted, refused } = this;
      const buckets = [...this.#buckets.values()];
      const state = buckets.map(({ level, tUs }) => `${level} ${nowUs - tUs}`).join();
      const before = known.get(state);
      if (before !== undefined) {
        const periodUs = nowUs - before.nowUs;
        const count = Math.ceil((untilUs - nowUs) / periodUs) - 1;
        this.nowUs += count * periodUs;
        this.admitted += count * (admitted - before.admitted);
        this.refused += count * (refused - before.refused);
        for (const [key, { level, tUs }] of this.#buckets) {
          this.#buckets.set(key, { level, tUs: tUs + count * periodUs });
        }
        known.clear();
      } else known.set(state, { nowUs, admitted, refused });
      round();
    }
  }
}

type Client = (service: Service, untilUs: number) => void;

const clients: Readonly<Record<string, Client>> = {
  /** Uses at once whatever the last answer leaves, and waits for the rest of its time. */
  "uses all at once": (service, untilUs) => {
    service.repeat(() => {
      const { r, t } = service.ask();
      if (r === 0) service.nowUs += t * second;
    }, untilUs);
  },
  /** Spreads what the last answer leaves over its time. */
  "spreads what is left": (service, untilUs) => {
    service.repeat(() => {
      const { r, t } = service.ask();
      service.nowUs += Math.ceil((t * second) / Math.max(1, r));
    }, untilUs);
  },
  /** Reads one answer alone: `r` at the very end of its time, then `q` as each window ends. */
  "believes the first answer": (service, untilUs) => {
    const { r, t, q, w } = service.ask();
    service.nowUs += t * second;
    for (let count = 0; count < r; count += 1) service.ask();
    service.nowUs += w * second;
    // An hour of windows, after what the first answer gave.
    service.repeat(
      () => {
        for (let count = 0; count < q; count += 1) service.ask();
        service.nowUs += w * second;
      },
      untilUs + (t + w) * second,
    );
  },
  /** Reads one answer that leaves something, and uses that again and again. */
  "repeats what was left": (service, untilUs) => {
    let { r, t } = service.ask();
    while (r === 0 && service.nowUs < untilUs) {
      service.nowUs += t * second;
      ({ r, t } = service.ask());
    }
    service.repeat(() => {
      for (let count = 0; count < r; count += 1) service.ask();
      service.nowUs += t * second;
    }, untilUs);
  },
};

function perSecond({ hits, periodUs }: Limit): number {
  return (hits * second) / periodUs;
}

/** The largest part of the rate that up to so many hits in whole seconds can say, and not more. */
function saidRatioMax(limit: Limit, mostHits: number): number {
  const ratios = Array.from({ length: mostHits }, (_, i) => {
    const hits = i + 1;
    return hits / (Math.ceil(hits / perSecond(limit)) * perSecond(limit));
  });
  return Math.max(...ratios);
}

/** What comes of asking at every whole second for all that fits: no waits in seconds give more. */
function polledRatioMax(limit: Limit): number {
  let free = limit.burst;
  let admitted = 0;
  for (let seconds = 0; seconds < 3_600; seconds += 1) {
    const used = Math.floor(free + 1e-9);
    admitted += used;
    free = Math.min(limit.burst, free - used + perSecond(limit));
  }
  return admitted / (3_600 * perSecond(limit));
}

/** The most that a client can use who goes by whole numbers alone, as it does. */
const usedRatioMax: Readonly<Record<string, (limit: Limit) => number>> = {
  "uses all at once": polledRatioMax,
  // An answer says what is left after the hit that it answers: one less than the burst.
  "spreads what is left": (limit) => saidRatioMax(limit, Math.max(1, limit.burst - 1)),
  "believes the first answer": (limit) => saidRatioMax(limit, limit.burst),
  "repeats what was left": (limit) => saidRatioMax(limit, Math.max(1, limit.burst - 1)),
};

describe("a client that obeys the fields of the IETF for an hour", () => {
  const cases = Object.keys(clients).flatMap((client) =>
    Object.keys(rates).flatMap((rate) => [undefined, ...bursts].map((b) => ({ client, rate, b }))),
  );

  it.each(cases)("is never refused and uses 90 %: $client, $rate, burst $b", (one) => {
    const rate = rates[one.rate];
    const ratioMax = usedRatioMax[one.client];
    if (rate === undefined || ratioMax === undefined) throw new Error("a row of the tables");
    const limit = { ...rate, burst: one.b ?? rate.burst };
    const service = new Service(limit);
    clients[one.client]?.(service, service.nowUs + hourUs);
    expect(service.refused).toBe(0);
    // Where whole numbers cannot say 90 % of the rate, it is the most that they can.
    const drainedHits = perSecond(limit) * 3_600;
    const leastHits = Math.floor(Math.min(0.9, ratioMax(limit)) * drainedHits);
    expect(service.admitted).toBeGreaterThanOrEqual(leastHits);
  });

  it.each([
    ["100 a minute", 1, 0.6],
    ["100 a minute", 2, 0.6],
    ["100 a minute", 3, 0.6],
    ["100 a minute", 4, 0.9],
    ["7 a second", 1, 1 / 7],
    ["7 a second", 5, 4 / 7],
    ["7 a second", 8, 1],
    ["7 a minute", 1, 0.952],
  ])("can say no more of %s, burst %i, to who spreads it than %f", (name, burst, ratio) => {
    const rate = rates[name];
    if (rate === undefined) throw new Error("a row of the table");
    expect(saidRatioMax({ ...rate, burst }, Math.max(1, burst - 1))).toBeCloseTo(ratio, 3);
  });
});
