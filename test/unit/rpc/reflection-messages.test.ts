import { describe, expect, it } from "vitest";
import {
  decodeReflectionRequest,
  reflectionRequestBytesMax,
} from "../../../src/rpc/reflection-messages.js";
import { sizeOf } from "../../support/size-of.js";

describe("decodeReflectionRequest()", () => {
  it("makes no more of a question than ten times its bytes", () => {
    for (let field = 1; field <= 8; field += 1) {
      const tag = field * 8 + 2;
      const units = [
        [tag, 0],
        [tag, 1, 0x61],
        [tag, 2, 0x10, 1],
        [field * 8, 1],
      ];
      const whole = Buffer.alloc(reflectionRequestBytesMax - 3, 0x61);
      const one = Buffer.concat([Buffer.of(tag, 0xfd, 0x1f), whole]);
      const filled = units.map((unit) =>
        Buffer.alloc(reflectionRequestBytesMax, Buffer.of(...unit)),
      );
      for (const bytes of [one, ...filled]) {
        let size = 0;
        try {
          size = sizeOf(decodeReflectionRequest(bytes));
        } catch {
          // It is refused.
        }
        expect(size).toBeLessThanOrEqual(10 * bytes.length);
      }
    }
  });

  it("refuses a longer one", () => {
    const bytes = Buffer.alloc(reflectionRequestBytesMax + 2, Buffer.of(0x3a, 0));
    expect(() => decodeReflectionRequest(bytes)).toThrow("too long");
    expect(decodeReflectionRequest(bytes.subarray(2)).question).toEqual({ kind: "services" });
  });
});
