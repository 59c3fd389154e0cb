import { describe, expect, it } from "vitest";
import { http2ErrorCodes } from "../../../../src/wire/base/http2-error.js";
import { HuffmanDecoder, huffmanBytes } from "../../../../src/wire/hpack/huffman.js";
import { huffman } from "../../../support/plain-hpack.js";

function decode(bytes: Buffer): string {
  return new HuffmanDecoder().decode(bytes, 0, bytes.length);
}

/** Texts and their codes. Source: RFC 7541, appendix C. */
const examples: readonly (readonly [text: string, code: string])[] = [
  ["www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"],
  ["no-cache", "a8eb10649cbf"],
  ["custom-key", "25a849e95ba97d7f"],
  ["custom-value", "25a849e95bb8e8b4bf"],
  ["302", "6402"],
  ["307", "640eff"],
  ["private", "aec3771a4b"],
  ["Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"],
  ["Mon, 21 Oct 2013 20:13:22 GMT", "d07abe941054d444a8200595040b8166e084a62d1bff"],
  ["https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"],
  ["gzip", "9bd9ab"],
  [
    "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
  ],
];

/** Bytes whose code is long, with it in bits. Source: RFC 7541, appendix B. */
const longCodes: readonly (readonly [byte: number, code: number, bits: number])[] = [
  [0x00, 0x1ff8, 13],
  [0x01, 0x7fffd8, 23],
  [0x09, 0xffffea, 24],
  [0x0a, 0x3ffffffc, 30],
  [0x0d, 0x3ffffffd, 30],
  [0x16, 0x3ffffffe, 30],
  [0x7f, 0xffffffc, 28],
  [0x80, 0xfffe6, 20],
  [0xf9, 0xffffffe, 28],
  [0xff, 0x3ffffee, 26],
];

describe("writeHuffman()", () => {
  it.each(examples)("encodes %s as the RFC does", (text, code) => {
    expect(huffman(text).toString("hex")).toBe(code);
    expect(huffmanBytes(text)).toBe(code.length / 2);
  });

  it.each(longCodes)("encodes the byte %i by its own code", (byte, code, bits) => {
    const text = String.fromCharCode(byte).repeat(8);
    const expected = code.toString(2).padStart(bits, "0").repeat(8);
    const encoded = [...huffman(text)].map((part) => part.toString(2).padStart(8, "0")).join("");
    expect(encoded).toBe(expected);
  });
});

describe("HuffmanDecoder", () => {
  it.each(examples)("decodes %s from what the RFC says", (text, code) => {
    expect(decode(Buffer.from(code, "hex"))).toBe(text);
  });

  it("decodes every byte, at every place within a byte", () => {
    for (let byte = 0; byte < 256; byte += 1) {
      // "0" has five bits, so each of them moves what follows by five.
      for (let shift = 0; shift < 8; shift += 1) {
        const text = `${"0".repeat(shift)}${String.fromCharCode(byte)}z`;
        expect(decode(huffman(text))).toBe(text);
      }
    }
  });

  it("decodes long texts, one after the other, with the same memory", () => {
    const decoder = new HuffmanDecoder();
    for (const length of [0, 1, 100, 2_000, 50_000, 3, 70_000, 12]) {
      const text = "a0\u00ffZ".repeat(length);
      const bytes = huffman(text);
      expect(decoder.decode(bytes, 0, bytes.length)).toBe(text);
    }
  });

  it("decodes only the bytes that it is told to", () => {
    const bytes = Buffer.concat([Buffer.of(0xff), huffman("gzip"), Buffer.of(0xff)]);
    expect(new HuffmanDecoder().decode(bytes, 1, 4)).toBe("gzip");
  });

  it("takes a padding of up to seven ones", () => {
    // Three symbols of 17 bits in all.
    expect(decode(Buffer.from("640eff", "hex"))).toBe("307");
    expect(decode(Buffer.alloc(0))).toBe("");
  });

  it.each([
    ["a padding of eight ones", "ff"],
    ["a padding of fifteen ones", "640effff"],
    ["a padding that ends with a zero", "640efe"],
    ["a padding of zeros", "640e80"],
    ["the end symbol", "ffffffff"],
    ["the end symbol within a text", "640efffffffffc9f"],
  ])("refuses %s", (_, code) => {
    expect(() => decode(Buffer.from(code, "hex"))).toThrow(
      expect.objectContaining({ code: http2ErrorCodes.compressionError }),
    );
  });
});
