import { describe, expect, it } from "vitest";
import type { SentField } from "../../../../src/wire/base/http2.js";
import { OutputBuffer } from "../../../../src/wire/base/output-buffer.js";
import {
  HpackDecoder,
  headerFieldsMax,
  headerListBytesMax,
} from "../../../../src/wire/hpack/hpack-decoder.js";
import {
  encoderTableBytesMax,
  HpackEncoder,
  rememberedBlocksMax,
} from "../../../../src/wire/hpack/hpack-encoder.js";

const head: readonly SentField[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];
const end: readonly SentField[] = [["grpc-status", "0"]];

/** Both ends of a connection. */
class Pair {
  readonly encoder = new HpackEncoder();
  readonly decoder: HpackDecoder;
  readonly #output = new OutputBuffer();

  constructor(tableBytesMax: number = encoderTableBytesMax) {
    this.decoder = new HpackDecoder({
      tableBytesMax,
      listBytesMax: headerListBytesMax,
      fieldCountMax: headerFieldsMax,
    });
  }

  /** The block of some fields in hexadecimal, once the decoder has read the same from it. */
  send(fields: readonly SentField[]): string {
    this.encoder.encode(fields, this.#output);
    const block = this.#output.take();
    const read = this.decoder.decode(block, 0, block.length);
    const pairs = Array.from({ length: read?.count ?? 0 }, (_, i) => [
      read?.name(i),
      read?.value(i),
    ]);
    expect(pairs).toEqual(fields);
    expect(this.decoder.tableBytes).toBe(this.encoder.tableBytes);
    return block.toString("hex");
  }
}

describe("HpackEncoder", () => {
  it("sends the head and the end of a second answer in three bytes", () => {
    const pair = new Pair();
    expect(pair.send(head).length).toBeGreaterThan(6);
    expect(pair.send(end).length).toBeGreaterThan(2);
    expect(pair.send(head)).toBe("88bf");
    expect(pair.send(end)).toBe("be");
    // The table stays as it is, and so do the bytes.
    expect(pair.send(head)).toBe("88bf");
    expect(pair.send([...head])).toBe("88bf");
  });

  it("puts no other field into the table", () => {
    const { encoder, ...pair } = new Pair();
    const fields: readonly SentField[] = [
      [":status", "415"],
      ["grpc-message", "no such limit"],
      ["set-cookie", "secret"],
      ["x", ""],
      ["content-type", `text/${"x".repeat(60)}`],
    ];
    encoder.encode(fields, new OutputBuffer());
    expect(encoder.tableBytes).toBe(0);
    expect(pair.decoder.tableBytes).toBe(0);
  });

  it("writes a text by the Huffman code only where that is shorter", () => {
    const pair = new Pair();
    expect(pair.send([["via", "www.example.com"]])).toBe("0f2d8cf1e3c2e5f23a6ba0ab90f4ff");
    expect(pair.send([["via", "\u00ff\u00ff"]])).toBe("0f2d02ffff");
    expect(pair.send([["via", "b"]])).toBe("0f2d0162");
  });

  it("sends long fields", () => {
    const pair = new Pair();
    pair.send([["grpc-message", "%20".repeat(3_000)]]);
    pair.send([["x".repeat(300), "\u00e9".repeat(5_000)]]);
  });

  it("keeps what it remembers by the array apart from the table's changes", () => {
    const pair = new Pair();
    pair.send(head);
    expect(pair.send(head)).toBe("88be");
    pair.send(end);
    expect(pair.send(head)).toBe("88bf");
  });

  it("remembers so many arrays, and encodes any number", () => {
    const pair = new Pair();
    const blocks = Array.from({ length: rememberedBlocksMax * 3 }, (_, i): SentField[] => [
      [":status", i % 2 === 0 ? "200" : "404"],
    ]);
    for (let round = 0; round < 2; round += 1) {
      for (const [i, fields] of blocks.entries()) {
        expect(pair.send(fields)).toBe(i % 2 === 0 ? "88" : "8d");
      }
    }
  });

  it.each([
    ["an empty name", "", "x"],
    ["a name with a capital", "Via", "x"],
    ["a name with a space", "a b", "x"],
    ["a name with a colon inside", "a:b", "x"],
    ["a value with a line's end", "x", "a\r\nb"],
    ["a value with a zero", "x", "a\0"],
    ["a value above Latin-1, which would lose bits", "x", "\u010a"],
  ])("refuses %s before it writes a byte", (_, name, value) => {
    const pair = new Pair();
    const output = new OutputBuffer();
    expect(() => pair.encoder.encode([...end, [name, value]], output)).toThrow("assertion failed");
    expect(output.length).toBe(0);
    // The table has not moved either: what follows is read right.
    pair.send(end);
  });
});

describe("HpackEncoder.setPeerTableBytes()", () => {
  it("says nothing for a table larger than ours", () => {
    const pair = new Pair(65_536);
    pair.encoder.setPeerTableBytes(65_536);
    expect(pair.send([[":status", "200"]])).toBe("88");
  });

  it("says a smaller one with the next block, once, and keeps to it", () => {
    const pair = new Pair();
    pair.send(head);
    pair.send(end);
    // Room for one of the two fields.
    pair.encoder.setPeerTableBytes(64);
    expect(pair.send([[":status", "200"]])).toBe("3f2188");
    expect(pair.send([[":status", "200"]])).toBe("88");
    expect(pair.encoder.tableBytes).toBe(44);
    for (let i = 0; i < 3; i += 1) {
      pair.send(head);
      pair.send(end);
    }
    expect(pair.encoder.tableBytes).toBe(44);
  });

  it("keeps nothing for a peer without a table", () => {
    const pair = new Pair();
    pair.send(head);
    pair.encoder.setPeerTableBytes(0);
    expect(pair.send(head).startsWith("2088")).toBe(true);
    expect(pair.send(head)).toBe(pair.send(head));
    expect(pair.encoder.tableBytes).toBe(0);
  });

  it("says the least and the last of several changes between two blocks", () => {
    const pair = new Pair();
    pair.send(head);
    for (const bytes of [100, 0, 50, 4_096]) pair.encoder.setPeerTableBytes(bytes);
    const block = pair.send(head);
    expect(block.startsWith("203fe11f88")).toBe(true);
    expect(pair.send(head)).toBe("88be");
  });

  it("says the least alone when it is the last", () => {
    const pair = new Pair();
    for (const bytes of [100, 30]) pair.encoder.setPeerTableBytes(bytes);
    expect(pair.send([[":status", "200"]])).toBe("3e88");
  });

  it("says nothing when nothing has changed", () => {
    const pair = new Pair();
    pair.encoder.setPeerTableBytes(4_096);
    expect(pair.send([[":status", "200"]])).toBe("88");
  });
});
