import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { peerDecoders as decoders } from "../../support/decoders.js";
import { sizeOf } from "../../support/size-of.js";
import { worstMessages } from "../../support/worst-messages.js";

/** Small enough that a thousand of them take seconds; what is bounded is a part of the bytes. */
const byteCount = 262_144;

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
