import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBase64, encodeBase64 } from "../../../../src/core/base/base64.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("encodeBase64()", () => {
  it("agrees with Node's, but for the padding", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const padded = Buffer.from(bytes).toString("base64");
        expect(encodeBase64(bytes)).toBe(padded.replaceAll("=", ""));
      }),
      propertyRuns(100),
    );
  });
});

describe("decodeBase64()", () => {
  it("reads what Node writes, padded or not", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const padded = Buffer.from(bytes).toString("base64");
        expect(decodeBase64(padded)).toEqual(bytes);
        expect(decodeBase64(padded.replaceAll("=", ""))).toEqual(bytes);
      }),
      propertyRuns(100),
    );
  });

  it.each(["A", "AAAAA", "AA=", "A===", "AA==AA", "=", "AA-_", "AA AA", "AAA==", "ÄÄÄÄ"])(
    "knows no bytes in %j",
    (text) => {
      expect(decodeBase64(text)).toBeUndefined();
    },
  );
});
