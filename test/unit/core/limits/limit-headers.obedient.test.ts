import { describe, expect, it } from "vitest";
import type { Bucket, Charge } from "../../../../src/core/limits/bucket.js";
import { decideRequest } from "../../../../src/core/limits/gcra.js";
import type { Limit, LimitKey } from "../../../../src/core/limits/limit.js";
import { limitResponse } from "../../../../src/core/limits/limit-headers.js";
import { descriptorVerdict } from "../../../../src/core/limits/verdict.js";
import { WindowSource } from "../../../../src/decide/rate-limit/window-source.js";
import { epochUsOf } from "../../../support/calendar-time.js";
import { testCharge } from "../../../support/charges.js";
import { testLimit } from "../../../support/policies.js";

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
  readonly #windows = new WindowSource();
  nowUs: number;
  admitted = 0;
  refused = 0;

  constructor(limit: Limit, beginsUs = 1_700_000_000_000_000) {
    this.#limit = limit;
    this.nowUs = beginsUs;
    const { hits, periodUs, burst } = limit;
    this.#charge = testCharge({ hits, periodUs, burst });
  }

  ask(): { readonly r: number; readonly t: number; readonly q: number; readonly w: number } {
    const charge = { ...this.#charge, windows: this.#windows.windowsOf(this.#limit, this.nowUs) };
    const { isDenied, results } = decideRequest([charge], this.#buckets, this.nowUs);
    if (isDenied) this.refused += 1;
    else this.admitted += 1;
    const decided = results.map((result) => ({ limit: this.#limit, charge, result }));
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
   * where both come back all rounds in between do: they are counted, and not asked again. In
   * windows it depends on the time since they began too, and of a calendar nothing comes back.
   */
  repeat(round: () => void, untilUs: number): void {
    const known = new Map<string, Pick<Service, "nowUs" | "admitted" | "refused">>();
    while (this.nowUs < untilUs) {
      const { nowUs, admitted, refused } = this;
      const buckets = [...this.#buckets.values()];
      const ages = buckets.map(({ level, tUs }) => `${level} ${nowUs - tUs}`);
      const state = [this.#phaseUs(), ...ages].join();
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

  #phaseUs(): number {
    const { algorithm, periodUs } = this.#limit;
    if (algorithm?.kind !== "fixed_window") return 0;
    return algorithm.timeZone === undefined ? this.nowUs % periodUs : this.nowUs;
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

const inWindows = { algorithm: { kind: "fixed_window" } } as const;
const inBerlin = { algorithm: { kind: "fixed_window", timeZone: "Europe/Berlin" } } as const;
const day = { unit: "day", periodUs: 24 * hourUs } as const;
const month = { unit: "month", periodUs: 30 * 24 * hourUs } as const;

/** What is asked in windows, from when on and for how long. */
const windowed = {
  "100 a minute, 20 s before its edge": [testLimit(100, inWindows), "2026-03-01T00:00:40Z", 1],
  "100 a minute, at its edge": [testLimit(100, inWindows), "2026-03-01T00:00:00Z", 1],
  "100 a minute, 1 s before its edge": [testLimit(100, inWindows), "2026-03-01T00:00:59Z", 1],
  "114 a minute": [testLimit(114, inWindows), "2026-03-01T00:00:13Z", 1],
  "10 a minute": [testLimit(10, inWindows), "2026-03-01T00:00:31Z", 1],
  "1 a minute": [testLimit(1, inWindows), "2026-03-01T00:00:31Z", 1],
  "20 a second": [
    testLimit(20, { ...inWindows, unit: "second", periodUs: second }),
    "2026-03-01T00:00:00.7Z",
    // As many windows as those of a minute have in six hours.
    0.1,
  ],
  "500 an hour": [
    testLimit(500, { ...inWindows, unit: "hour", periodUs: hourUs }),
    "2026-03-01T00:50:00Z",
    24,
  ],
  "100 a day of Berlin, over clocks that are put forward": [
    testLimit(100, { ...inBerlin, ...day }),
    "2026-03-22T20:00:00Z",
    14 * 24,
  ],
  "100 a day of Berlin, over clocks that are put back": [
    testLimit(100, { ...inBerlin, ...day }),
    "2026-10-18T20:00:00Z",
    14 * 24,
  ],
  "100 a month of Berlin": [
    testLimit(100, { ...inBerlin, ...month }),
    "2025-12-31T12:00:00Z",
    2 * 365 * 24,
  ],
} as const satisfies Readonly<Record<string, readonly [Limit, string, number]>>;

describe("a client that obeys the fields of the IETF where a limit counts in windows", () => {
  const cases = Object.keys(windowed).flatMap((row) =>
    Object.keys(clients).map((client) => ({ row: row as keyof typeof windowed, client })),
  );

  it.each(cases)("is never refused and uses 90 %: $client, $row", ({ row, client }) => {
    const [limit, begins, hours] = windowed[row];
    const service = new Service(limit, epochUsOf(begins));
    clients[client]?.(service, service.nowUs + hours * hourUs);
    expect(service.refused).toBe(0);
    // Parts of a second cannot be said: who spreads the rest of one over a second waits too long.
    const isUnsaid = limit.unit === "second" && client === "spreads what is left";
    const leastHits = (isUnsaid ? 0.6 : 0.9) * perSecond(limit) * 3_600 * hours;
    expect(service.admitted).toBeGreaterThanOrEqual(leastHits);
  });
});
