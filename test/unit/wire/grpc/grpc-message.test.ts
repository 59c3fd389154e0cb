import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isOneMessage,
  MessageReader,
  messageLength,
  SpareBuffers,
  sparesBytesMax,
  writeMessageHead,
} from "../../../../src/wire/grpc/grpc-message.js";
import { messageBytesMax } from "../../../../src/wire/grpc/service.js";
import { framed } from "../../../support/recorded-stream.js";
import { propertyRuns } from "../../../support/seeds.js";

function readAll(reader: MessageReader): readonly string[] {
  const found: string[] = [];
  while (reader.read() === "message") {
    found.push(Buffer.from(reader.message).toString());
  }
  return found;
}

describe("MessageReader", () => {
  it("finds the messages of a body, cut at any byte", () => {
    const body = Buffer.concat([framed("one"), framed(""), framed("three")]);
    for (let cut = 0; cut <= body.length; cut += 1) {
      const reader = new MessageReader(messageBytesMax);
      reader.feed(body.subarray(0, cut));
      const before = readAll(reader);
      reader.feed(body.subarray(cut));
      expect([...before, ...readAll(reader)]).toEqual(["one", "", "three"]);
      expect(reader.unreadBytes).toBe(0);
    }
  });

  it("finds any messages in any parts", () => {
    const parts = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 50 });
    const texts = fc.array(fc.string({ maxLength: 600 }), { maxLength: 12 });
    fc.assert(
      fc.property(texts, parts, (messages, sizes) => {
        const body = Buffer.concat(messages.map((text) => framed(text)));
        const reader = new MessageReader(messageBytesMax);
        const found: string[] = [];
        for (let at = 0, i = 0; at < body.length; i += 1) {
          const size = sizes[i % sizes.length] ?? 1;
          reader.feed(body.subarray(at, at + size));
          at += size;
          found.push(...readAll(reader));
        }
        expect(found).toEqual(messages);
      }),
      propertyRuns(100),
    );
  });

  it("keeps a copy of what it is fed", () => {
    const reader = new MessageReader(messageBytesMax);
    const bytes = framed("mine");
    reader.feed(bytes);
    bytes.fill(0x78);
    expect(readAll(reader)).toEqual(["mine"]);
  });

  it(`takes a message of ${messageBytesMax} bytes, and none above, by its head alone`, () => {
    const largest = new MessageReader(messageBytesMax);
    largest.feed(framed(Buffer.alloc(messageBytesMax)));
    expect(largest.read()).toBe("message");
    expect(largest.message).toHaveLength(messageBytesMax);
    const larger = new MessageReader(messageBytesMax);
    larger.feed(framed(Buffer.alloc(messageBytesMax + 1)).subarray(0, 5));
    expect(larger.read()).toBe("tooLarge");
    const largestHead = new MessageReader(messageBytesMax);
    largestHead.feed(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]));
    expect(largestHead.read()).toBe("tooLarge");
  });

  it("finds no message that is compressed, by its head alone, after those before it", () => {
    const reader = new MessageReader(messageBytesMax);
    reader.feed(Buffer.concat([framed("one"), Buffer.from([1, 0xff, 0xff, 0xff, 0xff])]));
    expect(readAll(reader)).toEqual(["one"]);
    expect(reader.read()).toBe("compressed");
  });

  it("knows no message that begins with neither 0 nor 1", () => {
    const reader = new MessageReader(messageBytesMax);
    reader.feed(Buffer.from([2, 0, 0, 0, 0]));
    expect(reader.read()).toBe("malformed");
  });
});

describe("SpareBuffers", () => {
  const text = "a".repeat(60_000);

  function readOne(spares: SpareBuffers): { readonly memory: unknown; readonly close: () => void } {
    const reader = new MessageReader(messageBytesMax, spares);
    const bytes = framed(text);
    for (let at = 0; at < bytes.length; at += 16_384) reader.feed(bytes.subarray(at, at + 16_384));
    expect(readAll(reader)).toEqual([text]);
    return { memory: reader.message.buffer, close: () => reader.close() };
  }

  it("serves one message after the other, and never two at a time", () => {
    const spares = new SpareBuffers();
    const first = readOne(spares);
    const second = readOne(spares);
    expect(second.memory).not.toBe(first.memory);
    first.close();
    expect(readOne(spares).memory).toBe(first.memory);
    second.close();
    second.close();
    expect(readOne(spares).memory).toBe(second.memory);
    expect(readOne(spares).memory).not.toBe(second.memory);
  });

  it("keeps so many bytes at most, those in use among them", () => {
    const spares = new SpareBuffers();
    const countMax = sparesBytesMax / 65_536;
    const open = Array.from({ length: countMax + 10 }, () => readOne(spares));
    for (const { close } of open) close();
    // Who holds what there is, with a byte of a message each, gets nothing more.
    const held = Array.from({ length: countMax }, () => spares.take(1));
    expect(held).not.toContain(undefined);
    expect(spares.take(1)).toBeUndefined();
    spares.giveBack(new Uint8Array(65_536));
    expect(spares.take(1)).toBeUndefined();
  });
});

describe("isOneMessage()", () => {
  it.each([
    { body: framed("a"), is: true },
    { body: framed(""), is: true },
    { body: framed("a", 1), is: false },
    { body: framed("ab").subarray(0, 6), is: false },
    { body: Buffer.concat([framed("a"), framed("")]), is: false },
    { body: Buffer.alloc(4), is: false },
    { body: framed(Buffer.alloc(messageBytesMax)), is: true },
    { body: framed(Buffer.alloc(messageBytesMax + 1)), is: false },
  ])("is $is", ({ body, is }) => {
    expect(isOneMessage(body, messageBytesMax)).toBe(is);
  });
});

describe("writeMessageHead()", () => {
  it.each([0, 1, 255, 256, 65_536, messageBytesMax, 2 ** 32 - 1])("writes a length of %d", (n) => {
    const head = new Uint8Array(5).fill(0xff);
    writeMessageHead(head, n);
    expect(head[0]).toBe(0);
    expect(messageLength(head, 0)).toBe(n);
  });
});
