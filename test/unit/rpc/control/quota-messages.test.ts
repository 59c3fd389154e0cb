import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { QuotaAssignment } from "../../../../src/core/quota/quota.js";
import {
  BucketIdSchema,
  RateLimitQuotaResponseSchema,
} from "../../../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import {
  bucketIdBytesMax,
  bucketIdEntriesMax,
  decodeUsage,
  encodeActions,
  readBucketId,
  wireRate,
} from "../../../../src/rpc/control/quota-messages.js";
import { readActions, usageMessage } from "../../../support/quota-client.js";

/** Each byte as one character. */
function idOf(bucket: Readonly<Record<string, string>>): string {
  const bytes = toBinary(BucketIdSchema, create(BucketIdSchema, { bucket: { ...bucket } }));
  return Buffer.from(bytes).toString("latin1");
}

describe("decodeUsage()", () => {
  it("reads what Envoy says of its buckets", () => {
    const id = { quota: "pace", tenant: "a" };
    const bytes = usageMessage("edge", [
      { id, allowed: 7, denied: 2 ** 40, elapsedSeconds: 5 },
      { id: {}, allowed: 0 },
    ]);
    const { domain, usages } = decodeUsage(bytes, 2);
    expect(domain).toBe("edge");
    expect(usages).toEqual([
      { id: idOf(id), allowedHits: 7, deniedHits: 2 ** 40, elapsedMs: 5_000 },
      { id: "", allowedHits: 0, deniedHits: 0, elapsedMs: 0 },
    ]);
  });

  it("reads no more usages than it is told to, and passes over the others", () => {
    const usages = [1, 2, 3, 4].map((allowed) => ({ id: {}, allowed }));
    const read = decodeUsage(usageMessage("edge", usages), 3);
    expect(read.usages.map(({ allowedHits }) => allowedHits)).toEqual([1, 2, 3]);
    expect(read.domain).toBe("edge");
  });

  // Two thousand of them took fifty times the bytes of their message.
  it("refuses more usages of nothing than so many bytes have", () => {
    const empty = (count: number) => Buffer.alloc(2 * count, Buffer.of(0x12, 0));
    expect(decodeUsage(empty(580), 2_001).usages).toHaveLength(580);
    expect(() => decodeUsage(empty(2_000), 2_001)).toThrow("too many fields");
  });

  it("tells a time below none, and one of ages, as they are", () => {
    const [less, more] = [-5, 1e9].map((elapsedSeconds) => {
      return decodeUsage(usageMessage("", [{ id: {}, elapsedSeconds }]), 1).usages[0]?.elapsedMs;
    });
    expect([less, more]).toEqual([-1, 1e12]);
  });

  it.each([[[0x0a, 5, 1]], [[0x12, 0x80]], [[0x12, 3, 0x12, 1, 0x08]], [[0x07]], [[0]]])(
    "throws for bytes that are not a message: %j",
    (bytes) => {
      expect(() => decodeUsage(Uint8Array.from(bytes), 9)).toThrow("are not a message");
    },
  );
});

describe("readBucketId()", () => {
  it("has one key for the same entries in any order, and another for others", () => {
    const keyOf = (bucket: Readonly<Record<string, string>>): string => {
      const read = readBucketId(idOf(bucket));
      if (read.kind !== "id") throw new Error(read.fault);
      expect(read.entries()).toEqual(bucket);
      return read.key;
    };
    expect(keyOf({ a: "1", b: "2" })).toBe(keyOf({ b: "2", a: "1" }));
    const others = [
      { a: "1", b: "2" },
      { a: "1b", "": "2" },
      { a: "12" },
      { a1: "2" },
      {},
      { é: "x" },
    ];
    expect(new Set(others.map(keyOf)).size).toBe(others.length);
  });

  it("refuses one that is too long, of too many entries, or none at all", () => {
    const wide = (count: number) =>
      readBucketId(
        idOf(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, ""]))),
      );
    expect(wide(bucketIdEntriesMax).kind).toBe("id");
    expect(wide(bucketIdEntriesMax + 1)).toMatchObject({ fault: "id_too_many_entries" });
    const long = (length: number) => readBucketId(idOf({ a: "x".repeat(length) }));
    expect(long(bucketIdBytesMax - 9).kind).toBe("id");
    expect(long(bucketIdBytesMax)).toMatchObject({ fault: "id_too_long" });
    expect(readBucketId("\n\t")).toMatchObject({ fault: "id_unreadable" });
  });
});

describe("encodeActions()", () => {
  const id = idOf({ quota: "pace" });
  const reported = (assignment: QuotaAssignment) =>
    readActions(encodeActions([{ id, reported: { kind: "assign", assignment } }]))[0];

  it("writes only what Envoy enforces", () => {
    expect(reported({ kind: "blanket", rule: "allow", ttlMs: 60_000 })).toMatchObject({
      reported: "allow",
      ttlSeconds: 60,
    });
    expect(reported({ kind: "blanket", rule: "deny", ttlMs: 2_000 })).toMatchObject({
      reported: "deny",
    });
    const bucket = { kind: "bucket", rateMicroHz: 2_500_000, tokensMax: 3, ttlMs: 10_900 } as const;
    expect(reported(bucket)).toEqual({
      id: { quota: "pace" },
      reported: "3 tokens",
      ttlSeconds: 10,
      hz: 2.5,
    });
    const abandoned = encodeActions([{ id, reported: { kind: "abandon" } }]);
    const [action] = fromBinary(RateLimitQuotaResponseSchema, abandoned).bucketAction;
    expect(action?.bucketAction.case).toBe("abandonAction");
  });
});

describe("wireRate()", () => {
  it.each([
    { microHz: 1, tokens: 1, seconds: 1_000_000 },
    { microHz: 1_500_000, tokens: 1_500_000, seconds: 1_000_000 },
    { microHz: 4_294_967_295, tokens: 4_294_967_295, seconds: 1_000_000 },
    { microHz: 4_294_967_296, tokens: 4_294_967, seconds: 1_000 },
    { microHz: 4_294_967_295_000, tokens: 4_294_967_295, seconds: 1_000 },
    { microHz: 4_294_967_296_000, tokens: 4_294_967, seconds: 1 },
    { microHz: Number.MAX_SAFE_INTEGER, tokens: 4_294_967_295, seconds: 1 },
  ])("says $microHz uHz as $tokens in $seconds s, never more, in whole seconds", (row) => {
    const { tokensPerFill, fillSeconds } = wireRate(row.microHz);
    expect({ tokensPerFill, fillSeconds }).toEqual({
      tokensPerFill: row.tokens,
      fillSeconds: row.seconds,
    });
  });
});
