import { describe, expect, it } from "vitest";
import { OutputBuffer, OutputSlabs } from "../../../../src/wire/base/output-buffer.js";

function hexOf(output: OutputBuffer): string {
  return output.take().toString("hex");
}

describe("OutputBuffer", () => {
  it("appends numbers, bytes and text", () => {
    const output = new OutputBuffer();
    output.byte(0xab);
    output.uint16(0x0102);
    output.uint32(0xfffefdfc);
    output.bytes(Uint8Array.of(1, 2, 3));
    output.slice(Uint8Array.of(1, 2, 3, 4), 1, 3);
    output.latin1("a\u00ff");
    expect(output.length).toBe(14);
    expect(hexOf(output)).toBe("ab0102fffefdfc010203020361ff");
  });

  it("hands out what is new since it did last, and nothing twice", () => {
    const output = new OutputBuffer();
    expect(output.take().length).toBe(0);
    output.byte(1);
    const first = output.take();
    output.byte(2);
    expect(output.length).toBe(1);
    expect(hexOf(output)).toBe("02");
    expect(first.toString("hex")).toBe("01");
  });

  it("never changes what it has handed out, over many slabs", () => {
    const output = new OutputBuffer();
    const taken: { readonly bytes: Buffer; readonly copy: string }[] = [];
    for (let i = 0; i < 400; i += 1) {
      output.bytes(Buffer.alloc((i * 37) % 1_500, i));
      output.uint32(i);
      if (i % 3 !== 0) continue;
      const bytes = output.take();
      taken.push({ bytes, copy: bytes.toString("hex") });
    }
    for (const { bytes, copy } of taken) expect(bytes.toString("hex")).toBe(copy);
  });

  it("grows within what is not taken yet, at every place of a slab", () => {
    for (const count of [4_087, 4_088, 4_092, 4_095, 4_096, 65_530, 200_000]) {
      const output = new OutputBuffer();
      const large = Buffer.alloc(count, 7);
      output.bytes(large);
      output.frameHead(0x010203, 0x0405, 0x7fffffff);
      output.latin1("xyz");
      const expected = Buffer.concat([large, Buffer.from("01020304057fffffff78797a", "hex")]);
      expect(output.take().equals(expected)).toBe(true);
    }
  });

  it("patches and cuts by places that stay right when the memory moves", () => {
    const output = new OutputBuffer();
    output.bytes(Buffer.alloc(100));
    output.take();
    output.uint32(0);
    const place = output.length;
    output.uint32(0x00000001);
    output.bytes(Buffer.alloc(10_000));
    output.patch24(place, 0xa1b2c3);
    output.patchBits(place + 3, 4);
    output.truncate(place + 4);
    expect(output.copyFrom(place).toString("hex")).toBe("a1b2c305");
    expect(hexOf(output)).toBe("00000000a1b2c305");
  });

  it("refuses to patch or cut where nothing was written", () => {
    const output = new OutputBuffer();
    output.uint32(1);
    expect(() => output.patch24(2, 1)).toThrow("assertion failed");
    expect(() => output.patchBits(4, 1)).toThrow("assertion failed");
    expect(() => output.truncate(5)).toThrow("assertion failed");
    expect(() => output.truncate(-1)).toThrow("assertion failed");
  });

  it("writes into memory that other connections share, and never where they have written", () => {
    const slabs = new OutputSlabs();
    const outputs = Array.from({ length: 40 }, () => new OutputBuffer(slabs));
    const taken: { readonly bytes: Buffer; readonly copy: string }[] = [];
    for (let i = 0; i < 4_000; i += 1) {
      const output = outputs[i % outputs.length] ?? new OutputBuffer(slabs);
      output.bytes(Buffer.alloc((i * 37) % 900, i));
      output.uint32(i);
      // Some of them write for several turns before their bytes are taken.
      if (i % 7 === 0) continue;
      const bytes = output.take();
      taken.push({ bytes, copy: bytes.toString("hex") });
    }
    for (const { bytes, copy } of taken) expect(bytes.toString("hex")).toBe(copy);
    const byteCount = taken.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const memory = new Set(taken.map(({ bytes }) => bytes.buffer));
    const memoryBytes = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(memoryBytes).toBeLessThan(2 * byteCount);
  });

  it("keeps no memory of connections that have nothing to write", () => {
    const slabs = new OutputSlabs();
    const used = Array.from({ length: 1_000 }, (_, i) => {
      const output = new OutputBuffer(slabs);
      output.uint32(i);
      return output.take().buffer;
    });
    expect(new Set(used).size).toBeLessThan(10);
  });
});
