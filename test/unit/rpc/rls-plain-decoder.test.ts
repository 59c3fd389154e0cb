import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  descriptorCountMax,
  entryCountMax,
  type RateLimitQuery,
} from "../../../src/decide/query.js";
import { RateLimitRequestSchema } from "../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { decodeRateLimitRequest } from "../../../src/rpc/rls-codec.js";
import { decodePlainRequest } from "../../../src/rpc/rls-plain-decoder.js";
import { propertyRuns } from "../../support/seeds.js";

const ascii = fc.string({ unit: "binary-ascii", maxLength: 12 });
const entries = fc.array(fc.record({ key: ascii.map((text) => `k${text}`), value: ascii }), {
  minLength: 1,
  maxLength: 4,
});
const descriptors = fc.array(
  fc.record(
    { entries, hitsAddend: fc.bigInt(0n, 2n ** 28n - 1n), isNegativeHits: fc.boolean() },
    { requiredKeys: ["entries"] },
  ),
  { minLength: 1, maxLength: 4 },
);
const requests = fc
  .record({ domain: ascii.map((text) => `d${text}`), descriptors, hitsAddend: fc.nat(2 ** 28 - 1) })
  .map((shape) =>
    Buffer.from(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape))),
  );

function longWay(bytes: Buffer): RateLimitQuery | undefined {
  try {
    return decodeRateLimitRequest(bytes);
  } catch {
    return undefined;
  }
}

describe("decodePlainRequest()", () => {
  it("decodes what Envoy sends every day as the long way does", () => {
    fc.assert(
      fc.property(requests, (bytes) => {
        expect(decodePlainRequest(bytes)).toEqual(decodeRateLimitRequest(bytes));
      }),
      propertyRuns(100),
    );
  });

  it("never says anything that the long way does not say, whatever the bytes", () => {
    const edits = fc.array(fc.record({ at: fc.nat(80), value: fc.nat(255) }), { maxLength: 4 });
    fc.assert(
      fc.property(requests, edits, fc.nat(90), (bytes, changes, length) => {
        const edited = Buffer.from(bytes.subarray(0, Math.max(1, length)));
        for (const { at, value } of changes) if (at < edited.length) edited[at] = value;
        const plain = decodePlainRequest(edited);
        if (plain !== undefined) expect(plain).toEqual(longWay(edited));
      }),
      propertyRuns(1_000),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const plain = decodePlainRequest(Buffer.from(bytes));
        if (plain !== undefined) expect(plain).toEqual(longWay(Buffer.from(bytes)));
      }),
      propertyRuns(1_000),
    );
  });

  it.each([
    {
      story: "a text beyond ASCII",
      shape: { domain: "d", descriptors: [{ entries: [{ key: "k", value: "é" }] }] },
    },
    { story: "an empty domain", shape: { descriptors: [{ entries: [{ key: "k" }] }] } },
    { story: "no descriptors", shape: { domain: "d" } },
    { story: "an empty key", shape: { domain: "d", descriptors: [{ entries: [{ value: "v" }] }] } },
    {
      story: "a limit of its own",
      shape: {
        domain: "d",
        descriptors: [{ entries: [{ key: "k" }], limit: { requestsPerUnit: 1, unit: 1 } }],
      },
    },
    {
      story: "too many descriptors",
      shape: {
        domain: "d",
        descriptors: Array.from({ length: descriptorCountMax + 1 }, () => ({
          entries: [{ key: "k" }],
        })),
      },
    },
    {
      story: "too many entries",
      shape: {
        domain: "d",
        descriptors: [{ entries: Array.from({ length: entryCountMax + 1 }, () => ({ key: "k" })) }],
      },
    },
    {
      story: "more hits than usual",
      shape: { domain: "d", hitsAddend: 2 ** 28, descriptors: [{ entries: [{ key: "k" }] }] },
    },
  ])("leaves $story to the long way", ({ shape }) => {
    const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape));
    expect(decodePlainRequest(Buffer.from(bytes))).toBeUndefined();
  });
});
