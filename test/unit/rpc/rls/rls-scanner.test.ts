import { clone, create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
} from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { scannedBytesMax, scanRateLimitRequest } from "../../../../src/rpc/rls/rls-scanner.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

const texts = fc.oneof(
  fc.constantFrom("", "a", "user"),
  fc.string({ unit: anyCodePoint, maxLength: 9 }),
);
const entries = fc.array(fc.record({ key: texts, value: texts }), { maxLength: 3 });
const hits = fc.oneof(fc.constantFrom(0n, 1n, 127n, 128n), fc.bigInt(0n, 2n ** 53n - 1n));
const descriptors = fc.record(
  {
    entries,
    hitsAddend: hits,
    isNegativeHits: fc.boolean(),
    limit: fc.record({ requestsPerUnit: fc.nat(300), unit: fc.nat(4) }),
  },
  { requiredKeys: ["entries"] },
);
const requests = fc.record({
  domain: texts,
  descriptors: fc.array(descriptors, { maxLength: 3 }),
  hitsAddend: fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 0xffffffff })),
});

function encode(request: MessageInitShape<typeof RateLimitRequestSchema>): Buffer {
  return Buffer.from(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, request)));
}

/** What is left of a request when nobody says how many hits. */
function withoutHits(request: RateLimitRequest): RateLimitRequest {
  const bare = clone(RateLimitRequestSchema, request);
  bare.hitsAddend = 0;
  for (const descriptor of bare.descriptors) descriptor.hitsAddend = undefined;
  return bare;
}

/** A request's identity as a text; undefined for one that is left to the decoder. */
function identityOf(bytes: Buffer): string | undefined {
  const identity = scanRateLimitRequest(bytes)?.identity;
  if (identity === undefined) return undefined;
  const text = Buffer.from(identity.bytes.subarray(0, identity.end)).toString("hex");
  return identity.isCut ? `cut ${text}` : text;
}

describe("scanRateLimitRequest()", () => {
  it("reads the hits that the decoder reads", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const scanned = scanRateLimitRequest(encode(request));
        expect(scanned?.hitsAddend).toBe(request.hitsAddend);
        request.descriptors.forEach((descriptor, i) => {
          const own = scanned?.ownHits?.get(i);
          expect(own === undefined ? undefined : BigInt(own)).toBe(descriptor.hitsAddend);
        });
      }),
      propertyRuns(100),
    );
  });

  it("knows a request again whatever its hits in the request are", () => {
    fc.assert(
      fc.property(requests, fc.integer({ min: 1, max: 0xffffffff }), (request, other) => {
        const hitsAddend = Math.max(1, request.hitsAddend);
        const one = identityOf(encode({ ...request, hitsAddend }));
        expect(one).toBeDefined();
        expect(identityOf(encode({ ...request, hitsAddend: other }))).toBe(one);
      }),
      propertyRuns(100),
    );
  });

  it("never takes two requests that ask differently for one", () => {
    const edits = fc.array(fc.record({ at: fc.nat(60), value: fc.nat(255) }), { maxLength: 3 });
    fc.assert(
      fc.property(requests, edits, (request, changes) => {
        const bytes = encode(request);
        const edited = Buffer.from(bytes);
        for (const { at, value } of changes) if (at < edited.length) edited[at] = value;
        const one = identityOf(bytes);
        if (one === undefined || one !== identityOf(edited)) return;
        const decoded = withoutHits(fromBinary(RateLimitRequestSchema, bytes));
        expect(withoutHits(fromBinary(RateLimitRequestSchema, edited))).toEqual(decoded);
      }),
      propertyRuns(1_000),
    );
  });

  it("tells hits of one descriptor from the same hits of another", () => {
    const entry = { key: "a", value: "b" };
    const plain = { entries: [entry] };
    const counted = { entries: [entry], hitsAddend: 5n };
    const first = encode({ domain: "d", descriptors: [counted, plain] });
    const second = encode({ domain: "d", descriptors: [plain, counted] });
    expect(identityOf(first)).toBeDefined();
    expect(identityOf(second)).not.toBe(identityOf(first));
    const other = encode({
      domain: "d",
      descriptors: [{ entries: [entry], hitsAddend: 6n }, plain],
    });
    expect(identityOf(other)).toBe(identityOf(first));
  });

  it("says where hits stood, so that no two ways to read what is left are taken for one", () => {
    const entry = [0x0a, 0x06, 0x0a, 0x01, 0x61, 0x12, 0x01, 0x62];
    const own = [0x1a, 0x02, 0x08, 0x05];
    const [before, behind] = [
      [...own, ...entry],
      [...entry, ...own],
    ].map((fields) => Buffer.from([0x0a, 0x01, 0x64, 0x12, fields.length, ...fields]));
    expect(before && identityOf(before)).toBeDefined();
    expect(before && identityOf(before)).not.toBe(behind && identityOf(behind));
  });

  it("marks what hits were taken out of", () => {
    const entries = [{ key: "a", value: "b" }];
    const isCut = (request: MessageInitShape<typeof RateLimitRequestSchema>) =>
      scanRateLimitRequest(encode(request))?.identity.isCut;
    expect(isCut({ domain: "d", hitsAddend: 3, descriptors: [{ entries }] })).toBe(false);
    expect(isCut({ domain: "d", descriptors: [{ entries, hitsAddend: 3n }] })).toBe(true);
  });

  it("does not let a value that looks like hits stand for hits", () => {
    // The entry of the second request holds, as its value, the very bytes of the first one's hits.
    const entry = { key: "a", value: "b" };
    const first = encode({ domain: "d", descriptors: [{ entries: [entry], hitsAddend: 5n }] });
    const second = Buffer.from(first);
    const cut = first.indexOf(Buffer.from([0x1a, 0x02, 0x08, 0x05]));
    second[cut] = 0x12;
    const identities = [first, second].map(identityOf);
    expect(identities[0]).toBeDefined();
    expect(identities[1]).not.toBe(identities[0]);
  });

  it.each([
    { story: "an unknown field", bytes: [0x22, 0x00] },
    { story: "a length beyond the end", bytes: [0x0a, 0x05, 0x61] },
    { story: "a number that never ends", bytes: [0x18, ...Array<number>(12).fill(0xff)] },
    { story: "hits beyond 32 bits", bytes: [0x18, 0xff, 0xff, 0xff, 0xff, 0x7f] },
    { story: "an unknown field of a descriptor", bytes: [0x12, 0x02, 0x28, 0x01] },
    { story: "an entry beyond its descriptor", bytes: [0x12, 0x02, 0x0a, 0x02, 0x61, 0x61] },
    { story: "a descriptor's hits twice", bytes: [0x12, 0x04, 0x1a, 0x00, 0x1a, 0x00] },
    { story: "hits with an unknown field", bytes: [0x12, 0x04, 0x1a, 0x02, 0x10, 0x01] },
    { story: "nothing after a tag", bytes: [0x12] },
  ])("leaves $story to the decoder", ({ bytes }) => {
    expect(scanRateLimitRequest(Buffer.from(bytes))).toBeUndefined();
  });

  it("leaves a request that is too long to the decoder", () => {
    const fitting = encode({ domain: "d".repeat(scannedBytesMax - 3) });
    expect(fitting.length).toBe(scannedBytesMax);
    expect(scanRateLimitRequest(fitting)).toBeDefined();
    const long = encode({ domain: "d".repeat(scannedBytesMax - 2) });
    expect(scanRateLimitRequest(long)).toBeUndefined();
  });

  it("survives any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        scanRateLimitRequest(Buffer.from(bytes));
      }),
      propertyRuns(1_000),
    );
  });
});
