import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { peerDecoders as decoders } from "../../support/decoders.js";
import { worstMessages } from "../../support/worst-messages.js";

/** Small enough that a thousand of them take seconds; what is bounded is a part of the bytes. */
const byteCount = 262_144;

/** About what an object or a list takes, in bytes. */
const objectBytes = 64;

/** About what a value takes, in bytes. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  // A part of the message where it stands, which is no copy.
  if (value instanceof Uint8Array || typeof value !== "object" || value === null) return 0;
  const inner = value instanceof Map ? [...value.entries()].flat() : Object.values(value);
  return inner.reduce<number>((sum, one) => sum + sizeOf(one), objectBytes);
}

describe("the worst messages of a type", () => {
  it.each(decoders)("are refused, or take no more than ten times their bytes: $name", (row) => {
    const worst = worstMessages(row.schema, byteCount);
    expect(worst.length).toBeGreaterThan(20);
    for (const { what, bytes } of worst) {
      let size = 0;
      try {
        size = sizeOf(row.decode(bytes));
      } catch {
        // It is refused, before anything is made of the rest.
      }
      expect([what, size <= 10 * byteCount]).toEqual([what, true]);
    }
  });

  it.each(decoders)("do not keep the least one from being read: $name", ({ schema, decode }) => {
    expect(() => decode(Buffer.from(toBinary(schema, create(schema))))).not.toThrow();
  });
});
