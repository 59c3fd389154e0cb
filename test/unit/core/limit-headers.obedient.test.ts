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

const limits: Readonly<Record<string, Limit>> = {
  "100 a minute": testLimit(100),
  "1 a minute": testLimit(1),
  "100 a minute, burst 10": testLimit(100, { burst: 10 }),
  "7 a minute, burst 5": testLimit(7, { burst: 5 }),
  "100 a minute, burst 300": testLimit(100, { burst: 300 }),
  "20 a second": testLimit(20, { unit: "second", periodUs: second }),
  "500 an hour": testLimit(500, { unit: "hour", periodUs: hourUs }),
};

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
    const table = {
      get: (key: LimitKey) => this.#buckets.get(key),
      set: (key: LimitKey, bucket: Bucket) => void this.#buckets.set(key, bucket),
      delete: (key: LimitKey) => void this.#buckets.delete(key),
    };
    const { isDenied, results } = decideRequest([this.#charge], table, this.nowUs);
    if (isDenied) this.refused += 1;
    else this.admitted += 1;
    const decided = results.map((result) => ({ limit: this.#limit, charge: this.#charge, result }));
    const status = descriptorVerdict(decided, this.nowUs);
    const one = { status, label: "limit", headers: "ietf" } as const;
    const text = limitResponse([one], { isDenied })
      .headers.map(({ value }) => value)
      .join(";");
    const field = (name: string): number => Number(new RegExp(`;${name}=(\\d+)`).exec(text)?.[1]);
    return { r: field("r"), t: field("t"), q: field("q"), w: field("w") };
  }
}

type Client = (service: Service, untilUs: number) => void;

const clients: Readonly<Record<string, Client>> = {
  /** Uses at once whatever the last answer leaves, and waits for the rest of its time. */
  "uses all at once": (service, untilUs) => {
    while (service.nowUs < untilUs) {
      const { r, t } = service.ask();
      if (r === 0) service.nowUs += t * second;
    }
  },
  /** Spreads what the last answer leaves over its time. */
  "spreads what is left": (service, untilUs) => {
    while (service.nowUs < untilUs) {
      const { r, t } = service.ask();
      service.nowUs += Math.ceil((t * second) / Math.max(1, r));
    }
  },
  /** Reads one answer alone: `r` at the very end of its time, then `q` as each window begins. */
  "believes the first answer": (service, untilUs) => {
    const { r, t, q, w } = service.ask();
    service.nowUs += t * second;
    for (let count = 0; count < r; count += 1) service.ask();
    service.nowUs += w * second;
    while (service.nowUs < untilUs) {
      for (let count = 0; count < q; count += 1) service.ask();
      service.nowUs += w * second;
    }
  },
};

describe("a client that obeys the fields of the IETF for an hour", () => {
  const cases = Object.keys(clients).flatMap((client) =>
    Object.keys(limits).map((limit) => ({ client, limit })),
  );

  it.each(cases)("is never refused and uses 90 %: $client, $limit", ({ client, limit: name }) => {
    const limit = limits[name];
    if (limit === undefined) throw new Error("a limit of the table");
    const service = new Service(limit);
    const startUs = service.nowUs;
    clients[client]?.(service, startUs + hourUs);
    expect(service.refused).toBe(0);
    const drainedHits = (limit.hits * hourUs) / limit.periodUs;
    // Who spreads what is left has used one of it: of a burst of 5 that is a fifth.
    const usedRatio = client === "spreads what is left" && limit.burst < 10 ? 0.75 : 0.9;
    expect(service.admitted).toBeGreaterThanOrEqual(usedRatio * drainedHits);
  });
});
