import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { requestDeadline } from "../../../../src/core/admission/deadline.js";
import { callEndMs, deadlineHeaders, mayBegin } from "../../../../src/core/calls/call-deadline.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("callEndMs()", () => {
  it.each([
    { timeoutsMs: [], endMs: Number.POSITIVE_INFINITY },
    { timeoutsMs: [undefined, undefined], endMs: Number.POSITIVE_INFINITY },
    { timeoutsMs: [500, undefined, 300], endMs: 1_300 },
    { timeoutsMs: [Number.NaN, 500], endMs: 1_500 },
    { timeoutsMs: [500, Number.NaN], endMs: 1_500 },
    { timeoutsMs: [-10, 500], endMs: 990 },
    { timeoutsMs: [Number.POSITIVE_INFINITY], endMs: Number.POSITIVE_INFINITY },
  ])("is $endMs after $timeoutsMs from 1,000", ({ timeoutsMs, endMs }) => {
    expect(callEndMs(1_000, timeoutsMs)).toBe(endMs);
  });
});

describe("mayBegin()", () => {
  it.each([
    { remainingMs: 5, remainingMsMin: 5, isAllowed: true },
    { remainingMs: 4.9, remainingMsMin: 5, isAllowed: false },
    { remainingMs: Number.POSITIVE_INFINITY, remainingMsMin: 5, isAllowed: true },
    { remainingMs: 0.1, remainingMsMin: 0, isAllowed: true },
    { remainingMs: 0, remainingMsMin: 0, isAllowed: false },
    { remainingMs: -1, remainingMsMin: -5, isAllowed: false },
  ])("is $isAllowed with $remainingMs ms of at least $remainingMsMin", (row) => {
    expect(mayBegin(row, row.remainingMs)).toBe(row.isAllowed);
  });
});

describe("deadlineHeaders()", () => {
  const settings = { remainingMsMin: 5, marginMs: 10, header: "x-timeout-ms" };

  it("states what is left less the margin, rounded down", () => {
    const stated = { "grpc-timeout": "790m", "x-timeout-ms": "790" };
    expect(deadlineHeaders(settings, 800.7)).toEqual(stated);
    const { header: _, ...plain } = settings;
    expect(deadlineHeaders(plain, 800.7)).toEqual({ "grpc-timeout": "790m" });
  });

  it("states at least a millisecond, and nothing where the call has no end", () => {
    const stated = { "grpc-timeout": "1m", "x-timeout-ms": "1" };
    expect(deadlineHeaders(settings, 6)).toEqual(stated);
    expect(deadlineHeaders(settings, Number.POSITIVE_INFINITY)).toEqual({});
  });

  it("states nine digits at most in its header, which is all that is read", () => {
    expect(deadlineHeaders(settings, 1e10)).toMatchObject({ "x-timeout-ms": "999999999" });
  });

  it("is read by the side that is called as no more than it states", () => {
    const lengths = fc.oneof(
      fc.double({ min: 1, max: 100_000, noNaN: true }),
      fc.double({ min: 1, max: 1e12, noNaN: true }),
    );
    fc.assert(
      fc.property(lengths, fc.nat(1_000), (remainingMs, marginMs) => {
        const headers = deadlineHeaders({ ...settings, marginMs }, remainingMs);
        const read = requestDeadline(new Map(Object.entries(headers)), settings);
        expect(read?.statedIn).toEqual(["grpc-timeout", "x-timeout-ms"]);
        const leftMs = read?.remainingMs ?? Number.POSITIVE_INFINITY;
        expect(leftMs).toBeLessThanOrEqual(Math.max(1, remainingMs - marginMs));
        // Exact to a millisecond as far as eight digits reach, which is above a day.
        expect(leftMs).toBeGreaterThan(Math.min(99_999_998, remainingMs - marginMs - 1));
      }),
      propertyRuns(300),
    );
  });
});
