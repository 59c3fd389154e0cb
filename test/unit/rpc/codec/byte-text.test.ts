import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textOfBytes } from "../../../../src/rpc/codec/byte-text.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

function read(bytes: Uint8Array): string {
  return textOfBytes(Buffer.from(bytes), 0, bytes.length);
}

/** The bytes that a text was made of. */
function bytesOf(text: string): Buffer {
  const parts = Array.from(text, (character) => {
    const codePoint = character.codePointAt(0) ?? 0;
    const isEscape = codePoint >= 0xdc80 && codePoint <= 0xdcff;
    return isEscape ? Buffer.of(codePoint - 0xdc00) : Buffer.from(character, "utf8");
  });
  return Buffer.concat(parts);
}

/** Bytes that begin, go on with or end a character, or nearly. */
const edge = fc.constantFrom(
  ...[0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1],
  ...[0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff],
);

describe("textOfBytes()", () => {
  it("reads UTF-8 as every decoder does", () => {
    const given = fc.string({ unit: anyCodePoint, maxLength: 50 });
    fc.assert(
      fc.property(given, (text) => {
        expect(read(Buffer.from(text, "utf8"))).toBe(text);
      }),
      propertyRuns(300),
    );
  });

  it("loses nothing of any bytes, and says which are no text", () => {
    const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 12 }), fc.array(edge, { maxLength: 12 }));
    fc.assert(
      fc.property(bytes, (given) => {
        const text = read(Uint8Array.from(given));
        expect([...bytesOf(text)]).toEqual([...given]);
        let isText = true;
        try {
          strict.decode(Uint8Array.from(given));
        } catch {
          isText = false;
        }
        expect(text.isWellFormed()).toBe(isText);
      }),
      propertyRuns(2_000),
    );
  });

  it("reads a part of its bytes", () => {
    const bytes = Buffer.of(0xff, 0xc3, 0xa9, 0xc3, 0xff);
    expect(textOfBytes(bytes, 1, 3)).toBe("é");
    expect(textOfBytes(bytes, 1, 4)).toBe("é\udcc3");
    expect(textOfBytes(bytes, 2, 2)).toBe("");
  });
});
