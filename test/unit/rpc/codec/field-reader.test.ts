import { WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { FieldReader, LastPart } from "../../../../src/rpc/codec/field-reader.js";

/** The numbers and types of all fields, unread. */
function fieldsOf(...bytes: readonly number[]): readonly (readonly [number, WireType])[] {
  const found: (readonly [number, WireType])[] = [];
  const reader = new FieldReader(Uint8Array.from(bytes));
  while (reader.next()) {
    found.push([Math.floor(reader.tag / 8), reader.tag & 7]);
    reader.skip();
  }
  return found;
}

describe("FieldReader", () => {
  it("passes over fields of every type", () => {
    expect(
      fieldsOf(0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, 9, 9, 0x25, 1, 2, 3, 4),
    ).toEqual([
      [1, WireType.Varint],
      [2, WireType.Bit64],
      [3, WireType.LengthDelimited],
      [4, WireType.Bit32],
    ]);
  });

  it("reads whole numbers up to the largest of 64 bits", () => {
    const wholeOf = (...bytes: readonly number[]): number => {
      let value = -1;
      const reader = new FieldReader(Uint8Array.from([0x08, ...bytes]));
      while (reader.next()) value = reader.whole();
      return value;
    };
    expect(wholeOf(0x00)).toBe(0);
    expect(wholeOf(0x96, 0x01)).toBe(150);
    expect(wholeOf(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)).toBe(2 ** 64);
    expect(() => wholeOf(...new Array(10).fill(0x80), 0x01)).toThrow();
  });

  it("passes over whole numbers of as many bytes as it reads, and no more", () => {
    const long = (byteCount: number) => [0x08, ...new Array(byteCount - 1).fill(0xff), 0x01];
    expect(fieldsOf(...long(2), ...long(9), ...long(10))).toHaveLength(3);
    expect(() => fieldsOf(...long(11))).toThrow("are not a message");
  });

  it.each([
    ["a field without a number", [0x00, 0x00]],
    ["a tag that is cut", [0x88]],
    ["a number that is cut", [0x08, 0x96]],
    ["eight bytes that are cut", [0x11, 1, 2, 3]],
    ["four bytes that are cut", [0x25, 1, 2, 3]],
    ["a part that is cut", [0x1a, 3, 9, 9]],
    ["a group", [0x0b, 0x0c]],
    ["a type that there is not", [0x0e]],
  ])("throws at %s", (_, bytes) => {
    expect(() => fieldsOf(...bytes)).toThrow("are not a message");
  });

  it("does not read past the end of a part", () => {
    const reader = new FieldReader(Uint8Array.from([0x0a, 1, 0x08, 0x05]));
    expect(reader.next()).toBe(true);
    reader.enter();
    expect(reader.next()).toBe(true);
    expect(() => reader.whole()).toThrow("are not a message");
  });

  it("makes the last one of a field that comes again", () => {
    const reader = new FieldReader(Uint8Array.from([0x0a, 2, 0x61, 0x62, 0x0a, 1, 0x63]));
    const part = new LastPart();
    expect([part.text(reader), part.bytes(reader)]).toEqual(["", Buffer.alloc(0)]);
    const found: string[] = [];
    while (reader.next()) {
      part.pass(reader);
      found.push(part.text(reader), part.text(reader, 1));
    }
    expect(found).toEqual(["ab", "a", "c", "c"]);
    expect([...part.bytes(reader)]).toEqual([0x63]);
  });

  it("reads bytes of a part in place", () => {
    const bytes = Uint8Array.from([0x0a, 2, 7, 8]);
    const reader = new FieldReader(bytes);
    let part = new Uint8Array();
    while (reader.next()) part = Uint8Array.from(reader.part());
    expect([...part]).toEqual([7, 8]);
  });
});
