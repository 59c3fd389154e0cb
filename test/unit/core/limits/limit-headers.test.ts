import { describe, expect, it } from "vitest";
import { limitResponse, type StyledStatus } from "../../../../src/core/limits/limit-headers.js";
import type { DescriptorVerdict } from "../../../../src/core/limits/verdict.js";
import { testLimit } from "../../../support/policies.js";

const names = {
  limit: "RateLimit-Limit",
  remaining: "RateLimit-Remaining",
  reset: "RateLimit-Reset",
};

function status(fields: Partial<DescriptorVerdict> = {}): DescriptorVerdict {
  const currentLimit = testLimit(10, { name: "pace" });
  const base = { isOver: false, currentLimit, limitRemaining: 7, durationUntilResetUs: 1_500_000 };
  return { ...base, ...fields };
}

function styled(fields: Partial<StyledStatus> = {}): StyledStatus {
  return { status: status(), label: "user", ...fields };
}

function headersOf(...statuses: readonly StyledStatus[]) {
  const { headers } = limitResponse(statuses, { isDenied: false, names });
  return headers.map(({ name, value }) => `${name}: ${value}`);
}

describe("limitResponse()", () => {
  it("says the tightest limit in the process's headers", () => {
    const tight = status({ limitRemaining: 2, currentLimit: testLimit(5) });
    expect(headersOf(styled(), styled({ status: tight }), styled())).toEqual([
      "RateLimit-Limit: 5",
      "RateLimit-Remaining: 2",
      "RateLimit-Reset: 2",
    ]);
  });

  it("says what is over before what is tight", () => {
    const over = status({ isOver: true, limitRemaining: 0, durationUntilResetUs: 9_000_000 });
    const tight = status({ limitRemaining: 0 });
    expect(headersOf(styled({ status: tight }), styled({ status: over }))[2]).toBe(
      "RateLimit-Reset: 9",
    );
  });

  it("has no header where nothing is limited, or where nobody asked for any", () => {
    const unlimited = styled({ status: { isOver: false, limitRemaining: 4_294_967_295 } });
    expect(headersOf(unlimited, styled({ status: { isOver: false } }))).toEqual([]);
    expect(limitResponse([styled()], { isDenied: false })).toEqual({
      headers: [],
      requestHeaders: [],
    });
  });

  it("follows the rule of the tightest limit", () => {
    expect(headersOf(styled({ headers: "none" }))).toEqual([]);
    expect(headersOf(styled({ headers: "x-ratelimit" }))).toEqual([
      "x-ratelimit-limit: 10",
      "x-ratelimit-remaining: 7",
      "x-ratelimit-reset: 2",
    ]);
  });

  it("lists every limit that wants the fields of the IETF", () => {
    const daily = status({ currentLimit: testLimit(100, { unit: "day" }), limitRemaining: 90 });
    const statuses = [
      styled({ headers: "ietf" }),
      styled({ headers: "ietf", status: daily, label: 'a"\\\u00e9' }),
      styled({ headers: "none" }),
    ];
    expect(headersOf(...statuses)).toEqual([
      'ratelimit-policy: "pace";q=10;w=60, "a\\"\\\\?";q=100;w=86400',
      'ratelimit: "pace";r=7;t=42, "a\\"\\\\?";r=90;t=77760',
    ]);
  });

  it.each([
    [
      "the burst, and the time in which it drains",
      { burst: 3 },
      { limitRemaining: 2 },
      "q=3;w=18",
      "r=2;t=12",
    ],
    ["of a larger burst only what drains in a period", { burst: 30 }, {}, "q=10;w=60", "r=7;t=42"],
    [
      "fewer hits where whole seconds say more of the rate so",
      { hits: 100, burst: 7 },
      { limitRemaining: 5 },
      "q=6;w=4",
      "r=5;t=3",
    ],
    [
      "the wait for a hit where none is left",
      { burst: 5 },
      { limitRemaining: 0, durationUntilResetUs: 28_500_000 },
      "q=5;w=30",
      "r=0;t=5",
    ],
    [
      "of a window all that is left in its period, not in the time that it has yet",
      { algorithm: { kind: "fixed_window" } },
      { limitRemaining: 9 },
      "q=10;w=60",
      "r=9;t=60",
    ],
    [
      "parts of a window where those say more of the rate",
      { hits: 100, algorithm: { kind: "fixed_window" } },
      { limitRemaining: 80, durationUntilResetUs: 48_000_000 },
      "q=100;w=60",
      "r=20;t=12",
    ],
    [
      "the end of a window that has nothing left",
      { algorithm: { kind: "fixed_window" } },
      { limitRemaining: 0 },
      "q=10;w=60",
      "r=0;t=2",
    ],
    [
      "the longest month of a calendar",
      { hits: 100, unit: "month", algorithm: { kind: "fixed_window", timeZone: "Europe/Berlin" } },
      { limitRemaining: 99, durationUntilResetUs: 86_400_000_000 },
      "q=100;w=2682000",
      "r=99;t=2682000",
    ],
    [
      "a whole window where none has begun",
      { algorithm: { kind: "fixed_window" } },
      { limitRemaining: 10, durationUntilResetUs: 0 },
      "q=10;w=60",
      "r=10;t=60",
    ],
    [
      "the wait of who is refused",
      {},
      { isOver: true, limitRemaining: 0, durationUntilResetUs: 9_000_000 },
      "q=10;w=60",
      "r=0;t=9",
    ],
  ] as const)("says in the fields of the IETF %s", (_, limit, fields, policy, left) => {
    const currentLimit = testLimit(10, { name: "pace", ...limit });
    expect(
      headersOf(styled({ headers: "ietf", status: status({ currentLimit, ...fields }) })),
    ).toEqual([`ratelimit-policy: "pace";${policy}`, `ratelimit: "pace";${left}`]);
  });

  it("tells a refused caller the wait in retry-after, where it is told anything", () => {
    const over = status({ isOver: true, limitRemaining: 0, durationUntilResetUs: 8_200_000 });
    const waits = (fields: Partial<StyledStatus>, isDenied = true, own = true) =>
      limitResponse([styled({ status: over, ...fields })], {
        isDenied,
        ...(own && { names }),
      }).headers.flatMap(({ name, value }) => (name === "retry-after" ? [value] : []));
    expect(waits({})).toEqual(["9"]);
    expect(waits({ headers: "ietf" }, true, false)).toEqual(["9"]);
    expect(waits({ headers: "x-ratelimit" }, true, false)).toEqual(["9"]);
    expect(waits({ headers: "none" })).toEqual([]);
    expect(waits({}, true, false)).toEqual([]);
    expect(waits({}, false)).toEqual([]);
  });

  it("tells the upstream the tightest limit, unless its rule wants no headers", () => {
    const reported = (headers?: StyledStatus["headers"]) =>
      limitResponse([styled({ headers })], { isDenied: false, requestNames: names }).requestHeaders;
    expect(reported()).toEqual([
      { name: "RateLimit-Limit", value: "10" },
      { name: "RateLimit-Remaining", value: "7" },
      { name: "RateLimit-Reset", value: "2" },
    ]);
    expect(reported("ietf")).toHaveLength(3);
    expect(reported("none")).toEqual([]);
  });

  it("tells a refused caller in the body which limit it was and how long to wait", () => {
    const over = status({ isOver: true, limitRemaining: 0, durationUntilResetUs: 1_000_000 });
    const one = styled({ status: over, headers: "none", body: "problem+json" });
    const refused = limitResponse([one], { isDenied: true, names });
    expect(refused.headers).toEqual([{ name: "content-type", value: "application/problem+json" }]);
    expect(JSON.parse(refused.body ?? "")).toEqual({
      type: "about:blank",
      title: "Too Many Requests",
      status: 429,
      detail: 'The limit "pace" is reached. Try again in 1 second.',
      "retry-after": 1,
    });
    expect(limitResponse([one], { isDenied: false, names }).body).toBeUndefined();
    const other = styled({ status: over });
    expect(limitResponse([other], { isDenied: true, names }).body).toBeUndefined();
  });
});
