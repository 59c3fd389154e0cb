import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LimitUnit } from "../../../../src/core/limits/limit.js";
import type {
  CurrentLimit,
  DescriptorVerdict,
  Verdict,
} from "../../../../src/core/limits/verdict.js";
import { HeaderValueSchema } from "../../../../src/gen/envoy/config/core/v3/base_pb.js";
import { RateLimitResponseSchema } from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitResponseEncoder } from "../../../../src/rpc/rls/rls-encoder.js";
import { toResponse } from "../../../../src/rpc/rls/rls-response.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

const units: readonly LimitUnit[] = ["second", "minute", "hour", "day", "week", "month", "year"];
const uint32 = fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 0xffffffff }), fc.constant(127));

const limits = fc
  .record({
    hits: uint32,
    burst: uint32,
    unit: fc.constantFrom(...units),
    unitMultiplier: fc.integer({ min: 1, max: 400_000_000 }),
    name: fc.option(fc.string({ unit: anyCodePoint, maxLength: 200 }), { nil: undefined }),
  })
  .map(({ name, ...rest }): CurrentLimit => (name === undefined ? rest : { ...rest, name }));

const statuses: fc.Arbitrary<DescriptorVerdict> = fc.oneof(
  fc.record({ isOver: fc.option(fc.boolean(), { nil: undefined }) }),
  fc.record({ isOver: fc.boolean(), limitRemaining: uint32 }),
  fc.record({
    isOver: fc.boolean(),
    currentLimit: limits,
    limitRemaining: uint32,
    durationUntilResetUs: fc.oneof(fc.nat(2_000_000), fc.maxSafeNat()),
  }),
);

const verdicts: fc.Arbitrary<Verdict> = fc.record({
  isDenied: fc.boolean(),
  statuses: fc.array(statuses, { maxLength: 40 }),
});

describe("RateLimitResponseEncoder", () => {
  it("writes what protobuf-es writes, one answer after the other", () => {
    const encoder = new RateLimitResponseEncoder();
    fc.assert(
      fc.property(verdicts, (verdict) => {
        const wanted = Buffer.from(toBinary(RateLimitResponseSchema, toResponse(verdict)));
        expect(Buffer.from(encoder.encode(verdict)).toString("hex")).toBe(wanted.toString("hex"));
        // The second time a limit's bytes are the remembered ones.
        expect(Buffer.from(encoder.encode(verdict)).equals(wanted)).toBe(true);
      }),
      propertyRuns(300),
    );
  });

  it("puts more fields behind its own, as protobuf-es would write them", () => {
    const encoder = new RateLimitResponseEncoder();
    const namings = fc.record({
      header: fc.string({ unit: anyCodePoint, maxLength: 200 }),
      rule: fc.string({ unit: anyCodePoint, maxLength: 200 }),
    });
    fc.assert(
      fc.property(verdicts, namings, (verdict, { header, rule }) => {
        const fields = {
          responseHeadersToAdd: [create(HeaderValueSchema, { key: "x-rule", value: header })],
          dynamicMetadata: { rule },
        };
        const tail = toBinary(RateLimitResponseSchema, create(RateLimitResponseSchema, fields));
        const whole = Object.assign(toResponse(verdict), fields);
        const wanted = Buffer.from(toBinary(RateLimitResponseSchema, whole)).toString("hex");
        expect(Buffer.from(encoder.encode(verdict, tail)).toString("hex")).toBe(wanted);
        expect(Buffer.from(encoder.encode(verdict, tail)).toString("hex")).toBe(wanted);
        const plain = Buffer.from(toBinary(RateLimitResponseSchema, toResponse(verdict)));
        expect(Buffer.from(encoder.encode(verdict)).equals(plain)).toBe(true);
      }),
      propertyRuns(200),
    );
  });

  it("answers a refusal that repeats with the same bytes, and any other with its own", () => {
    const encoder = new RateLimitResponseEncoder();
    const currentLimit: CurrentLimit = { hits: 10, burst: 10, unit: "minute", unitMultiplier: 1 };
    const over = { isOver: true, currentLimit, limitRemaining: 0 };
    const refused = (status: Partial<DescriptorVerdict>, isDenied = true): Verdict => ({
      isDenied,
      statuses: [{ ...over, durationUntilResetUs: 5_900_000, ...status }],
    });
    const first = encoder.encode(refused({}));
    expect(encoder.encode(refused({ durationUntilResetUs: 5_100_000 }))).toBe(first);
    const others = [
      refused({ durationUntilResetUs: 4_900_000 }),
      refused({ limitRemaining: 1 }),
      refused({ currentLimit: { ...currentLimit, hits: 11 } }),
      refused({ isOver: false }),
      refused({}, false),
    ];
    for (const other of others) {
      encoder.encode(refused({}));
      const bytes = toBinary(RateLimitResponseSchema, toResponse(other));
      expect(Buffer.from(encoder.encode(other))).toEqual(Buffer.from(bytes));
    }
  });

  it("gives bytes that later answers do not change", () => {
    const encoder = new RateLimitResponseEncoder();
    const first = encoder.encode({ isDenied: false, statuses: [{ isOver: false }] });
    const copy = Buffer.from(first);
    encoder.encode({ isDenied: true, statuses: [{ isOver: true }] });
    expect(Buffer.from(first).equals(copy)).toBe(true);
  });
});
