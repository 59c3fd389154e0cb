import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import { descriptorCountMax, entryCountMax } from "../../../../src/decide/rate-limit/query.js";
import { RateLimitRequestSchema } from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { type SentRequest, sentRequestOf } from "../../../../src/rpc/rls/rls-request.js";
import { decodeRequest } from "../../../../src/rpc/rls/rls-request-decoder.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { rawRequest } from "../../../support/raw-field.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

type Shape = MessageInitShape<typeof RateLimitRequestSchema>;

const text = fc.oneof(
  fc.string({ unit: "binary-ascii", maxLength: 12 }),
  fc.string({ unit: anyCodePoint, maxLength: 300 }),
);
const whole = (bits: number) => fc.bigInt(0n, 2n ** BigInt(bits) - 1n);
const limit = fc.record(
  {
    requestsPerUnit: whole(32).map(Number),
    unit: fc.nat(9),
    unitMultiplier: whole(32).map(Number),
  },
  { requiredKeys: ["requestsPerUnit", "unit"] },
);
const descriptors = fc.array(
  fc.record(
    {
      entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
      hitsAddend: whole(53),
      isNegativeHits: fc.boolean(),
      limit,
    },
    { requiredKeys: ["entries"] },
  ),
  { maxLength: 4 },
);
const requests = fc.record({ domain: text, descriptors, hitsAddend: whole(32).map(Number) });

function bytesOf(shape: Shape): Buffer {
  return Buffer.from(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape)));
}

function long(bytes: Uint8Array): SentRequest {
  return sentRequestOf(fromBinary(RateLimitRequestSchema, bytes));
}

/** What came of bytes; `code` where they are refused. */
function outcome(decode: () => SentRequest): SentRequest | { readonly code: string } {
  try {
    return decode();
  } catch (thrown) {
    return { code: isServiceError(thrown) ? thrown.code : "a bug" };
  }
}

describe("decodeRequest()", () => {
  it("reads what encoders write as the general decoder does", () => {
    fc.assert(
      fc.property(requests, (shape) => {
        const bytes = bytesOf(shape);
        expect(decodeRequest(bytes)).toEqual(long(bytes));
      }),
      propertyRuns(200),
    );
  });

  it("reads fields in any order and more than once, and passes over those it does not know", () => {
    const unknown = [Buffer.of(0x78, 0x96, 0x01), Buffer.of(0x7a, 2, 0xff, 0xfe)];
    const parts = fc.array(fc.oneof(requests.map(bytesOf), fc.constantFrom(...unknown)), {
      minLength: 2,
      maxLength: 5,
    });
    fc.assert(
      fc.property(parts, (pieces) => {
        const bytes = Buffer.concat(pieces);
        expect(decodeRequest(bytes)).toEqual(long(bytes));
      }),
      propertyRuns(100),
    );
  });

  it("answers for any bytes, or refuses them", () => {
    const edits = fc.array(fc.record({ at: fc.nat(200), value: fc.nat(255) }), { maxLength: 4 });
    const counts = { answered: 0, refused: 0 };
    fc.assert(
      fc.property(requests, edits, fc.nat(300), (shape, changes, length) => {
        const bytes = Buffer.from(bytesOf(shape).subarray(0, Math.max(1, length)));
        for (const { at, value } of changes) if (at < bytes.length) bytes[at] = value;
        const read = outcome(() => decodeRequest(bytes));
        if ("code" in read) expect(read.code).toBe("REQUEST_INVALID");
        counts["code" in read ? "refused" : "answered"] += 1;
      }),
      propertyRuns(1_000),
    );
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(metCount(50));
  });

  it("takes values of any bytes and of any length, each for what it is", () => {
    const value = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(value, value, (one, other) => {
        const [first, second] = [one, other].map((bytes) => {
          return decodeRequest(rawRequest("d", "k", bytes)).descriptors[0]?.entries[0]?.value;
        });
        expect(first === second).toBe(one.equals(other));
      }),
      propertyRuns(500),
    );
    const long = Buffer.alloc(200_000, "é");
    expect(decodeRequest(rawRequest("d", "k", long)).descriptors[0]?.entries[0]?.value).toBe(
      long.toString("utf8"),
    );
  });

  it("looks at no more descriptors than are decided", () => {
    const empty = Buffer.concat([
      bytesOf({ domain: "d" }),
      Buffer.alloc(2 * descriptorCountMax, Buffer.of(0x12, 0)),
    ]);
    expect(decodeRequest(empty).descriptors).toHaveLength(descriptorCountMax);
    const more = Buffer.concat([empty, Buffer.of(0x12, 0x7f)]);
    expect(outcome(() => decodeRequest(more))).toEqual({ code: "REQUEST_TOO_LARGE" });
  });

  it("keeps one entry more than the path of a rule may have", () => {
    const entries = Array.from({ length: entryCountMax + 9 }, (_, i) => ({ key: `k${i}` }));
    const bytes = bytesOf({ domain: "d", descriptors: [{ entries }] });
    expect(decodeRequest(bytes).descriptors[0]?.entries).toHaveLength(entryCountMax + 1);
    expect(decodeRequest(bytes)).toEqual(long(bytes));
  });

  it.each([
    ["a length beyond the end", Buffer.of(0x12, 0x7f)],
    ["a part beyond the part around it", Buffer.of(0x12, 2, 0x0a, 5, 0x0a, 1, 0x6b, 0x0a, 1)],
    ["a number without an end", Buffer.of(0x18, ...Array.from({ length: 11 }, () => 0xff))],
    ["field number 0", Buffer.of(0x02, 0)],
    ["a group", Buffer.of(0x7b, 0x7c)],
  ])("refuses %s", (_, bytes) => {
    expect(outcome(() => decodeRequest(bytes))).toEqual({ code: "REQUEST_INVALID" });
  });
});
