import { describe, expect, it } from "vitest";
import { BackwardWriter } from "../../../../src/rpc/codec/backward-writer.js";

describe("BackwardWriter", () => {
  it("writes what comes last first, with lengths before what they measure", () => {
    const writer = new BackwardWriter();
    writer.begin(20);
    const end = writer.at;
    writer.number(0x10, 300);
    writer.text(0x0a, "é!");
    writer.message(0x1a, end);
    expect([...writer.finish()]).toEqual([0x1a, 8, 0x0a, 3, 0xc3, 0xa9, 0x21, 0x10, 0xac, 0x02]);
  });

  it("writes numbers of up to 53 bits, and none for 0", () => {
    const writer = new BackwardWriter();
    writer.begin(20);
    writer.number(0x08, Number.MAX_SAFE_INTEGER);
    writer.number(0x10, 0);
    expect([...writer.finish()]).toEqual([0x08, 255, 255, 255, 255, 255, 255, 255, 15]);
  });

  it("has room for all that was reckoned, whatever is left of what it holds", () => {
    const writer = new BackwardWriter();
    const lengths = Array.from({ length: 6_000 }, (_, i) => (i % 23) + 1);
    const messages = lengths.map((length, i) => {
      writer.begin(length);
      writer.bytes(Buffer.alloc(length, i));
      return writer.finish();
    });
    for (const [i, message] of messages.entries()) {
      expect(Buffer.compare(message, Buffer.alloc(lengths[i] ?? 0, i))).toBe(0);
    }
  });

  it("fails on a message that is longer than was reckoned, where it has no room", () => {
    const writer = new BackwardWriter();
    writer.begin(20_000);
    writer.bytes(Buffer.alloc(20_000));
    expect(() => writer.byte(1) ?? writer.finish()).toThrow("reckoned");
  });
});
