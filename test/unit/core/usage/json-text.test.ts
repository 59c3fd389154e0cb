import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeJsonText } from "../../../../src/core/usage/json-text.js";
import { propertyRuns } from "../../../support/seeds.js";

const decode = (bytes: Uint8Array) => decodeJsonText(bytes, 0, bytes.length);

describe("decodeJsonText()", () => {
  it("reads what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(decode(Buffer.from(JSON.stringify(text).slice(1, -1)))).toBe(text.toWellFormed());
      }),
      propertyRuns(500),
    );
  });

  it("reads bytes that are no UTF-8 as the platform does", () => {
    const ranges = fc.oneof(
      fc.constantFrom(0x41, 0x80, 0xbf, 0xc1, 0xc3, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff),
      fc.integer({ min: 0x80, max: 0xff }),
    );
    fc.assert(
      fc.property(fc.array(ranges, { maxLength: 8 }), (bytes) => {
        // It has one U+FFFD for each part of a broken character, where the platform may have fewer.
        const squeezed = (text: string) => text.replace(/\ufffd+/g, "\ufffd");
        const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.from(bytes));
        expect(squeezed(decode(Buffer.from(bytes)))).toBe(squeezed(expected));
      }),
      propertyRuns(1_000),
    );
  });

  it("makes no character of two surrogates that are encoded one by one", () => {
    expect(decode(Buffer.from("eda0bdedb880", "hex"))).toBe("\ufffd\ufffd");
  });

  it.each([
    ["a\\", "a\ufffd"],
    ["a\\u", "a\ufffd"],
    ["a\\u12", "a\ufffd12"],
    ["\\u00zz", "\ufffd00zz"],
    ["\\ud83d\\ude00", "\u{1f600}"],
    ["\\ud83d", "\ufffd"],
    ['\\/\\b\\f\\n\\r\\t\\"\\\\\\x', '/\b\f\n\r\t"\\x'],
  ])("reads %s as %j", (written, text) => {
    expect(decode(Buffer.from(written))).toBe(text);
  });
});
