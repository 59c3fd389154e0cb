import { describe, expect, it } from "vitest";
import type { HeaderFields } from "../../../../src/wire/base/http2.js";
import { Http2Error, http2ErrorCodes } from "../../../../src/wire/base/http2-error.js";
import {
  cachedBlockBytesMax,
  cachedBlocksMax,
} from "../../../../src/wire/hpack/hpack-block-cache.js";
import {
  HpackDecoder,
  type HpackDecoderBounds,
  headerFieldsMax,
  headerListBytesMax,
  integerContinuationsMax,
} from "../../../../src/wire/hpack/hpack-decoder.js";
import { plainInteger, plainText } from "../../../support/plain-hpack.js";

const bounds: HpackDecoderBounds = {
  tableBytesMax: 4_096,
  listBytesMax: headerListBytesMax,
  fieldCountMax: headerFieldsMax,
};

function decodeWith(decoder: HpackDecoder, block: Buffer | string): HeaderFields | undefined {
  const bytes = typeof block === "string" ? Buffer.from(block.replaceAll(" ", ""), "hex") : block;
  return decoder.decode(bytes, 0, bytes.length);
}

function linesOf(fields: HeaderFields | undefined): readonly string[] | undefined {
  if (fields === undefined) return undefined;
  return Array.from({ length: fields.count }, (_, i) => `${fields.name(i)}: ${fields.value(i)}`);
}

/** What stands in the dynamic table, read by its indices. */
function tableOf(decoder: HpackDecoder, count: number): readonly string[] | undefined {
  const indices = Array.from({ length: count }, (_, i) => plainInteger(0x80, 7, 62 + i));
  return linesOf(decodeWith(decoder, Buffer.concat(indices)));
}

function expectRefused(block: Buffer | string, decoder = new HpackDecoder(bounds)): void {
  let thrown: unknown;
  try {
    decodeWith(decoder, block);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(Http2Error);
  expect(thrown).toMatchObject({ code: http2ErrorCodes.compressionError });
}

/** Blocks of one connection, and what the dynamic table holds after each. */
interface Story {
  readonly name: string;
  readonly tableBytesMax: number;
  readonly steps: readonly {
    readonly block: string;
    readonly fields: readonly string[];
    readonly table: readonly string[];
    readonly tableBytes: number;
  }[];
}

const requestFields = [
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
  [
    ":method: GET",
    ":scheme: http",
    ":path: /",
    ":authority: www.example.com",
    "cache-control: no-cache",
  ],
  [
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
  ],
] as const;

const requestTables = [
  { table: [":authority: www.example.com"], tableBytes: 57 },
  { table: ["cache-control: no-cache", ":authority: www.example.com"], tableBytes: 110 },
  {
    table: ["custom-key: custom-value", "cache-control: no-cache", ":authority: www.example.com"],
    tableBytes: 164,
  },
] as const;

const date21 = "date: Mon, 21 Oct 2013 20:13:21 GMT";
const date22 = "date: Mon, 21 Oct 2013 20:13:22 GMT";
const place = "location: https://www.example.com";
const cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

const responseFields = [
  [":status: 302", "cache-control: private", date21, place],
  [":status: 307", "cache-control: private", date21, place],
  [":status: 200", "cache-control: private", date22, place, "content-encoding: gzip", cookie],
] as const;

const responseTables = [
  { table: [place, date21, "cache-control: private", ":status: 302"], tableBytes: 222 },
  { table: [":status: 307", place, date21, "cache-control: private"], tableBytes: 222 },
  { table: [cookie, "content-encoding: gzip", date22], tableBytes: 215 },
] as const;

function story(
  name: string,
  tableBytesMax: number,
  blocks: readonly [string, string, string],
): Story {
  const isRequest = tableBytesMax === 4_096;
  const fieldRows = isRequest ? requestFields : responseFields;
  const tables = isRequest ? requestTables : responseTables;
  return {
    name,
    tableBytesMax,
    steps: [0, 1, 2].map((i) => ({
      block: blocks[i] ?? "",
      fields: fieldRows[i] ?? [],
      table: tables[i]?.table ?? [],
      tableBytes: tables[i]?.tableBytes ?? 0,
    })),
  };
}

/** Source: RFC 7541, appendices C.3 to C.6. */
const stories: readonly Story[] = [
  story("C.3, requests without Huffman", 4_096, [
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
  ]),
  story("C.4, requests with Huffman", 4_096, [
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
  ]),
  story("C.5, responses without Huffman", 256, [
    `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e
     1768747470733a2f2f7777772e6578616d706c652e636f6d`,
    "4803333037c1c0bf",
    `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d
     4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b20766572
     73696f6e3d31`,
  ]),
  story("C.6, responses with Huffman", 256, [
    `488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b
     97c8e9ae82ae43d3`,
    "4883640effc1c0bf",
    `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd
     5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
  ]),
];

describe("HpackDecoder", () => {
  it.each([
    [
      "C.2.1, literal with indexing",
      "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
      "custom-key: custom-header",
      55,
    ],
    ["C.2.2, literal without indexing", "040c2f73616d706c652f70617468", ":path: /sample/path", 0],
    ["C.2.3, literal never indexed", "100870617373776f726406736563726574", "password: secret", 0],
    ["C.2.4, indexed", "82", ":method: GET", 0],
  ])("decodes appendix %s", (_, block, line, tableBytes) => {
    const decoder = new HpackDecoder(bounds);
    expect(linesOf(decodeWith(decoder, block))).toEqual([line]);
    expect(decoder.tableBytes).toBe(tableBytes);
  });

  it.each([
    ["C.1.1, 10 by five bits", "2a", 10],
    ["C.1.2, 1337 by five bits", "3f9a0a", 1_337],
  ])("reads numbers as appendix %s", (_, block, limit) => {
    // A limit of the table is a number of five bits: it holds for a bound equal to it, not below.
    const bound = (tableBytesMax: number) => new HpackDecoder({ ...bounds, tableBytesMax });
    expect(linesOf(decodeWith(bound(limit), block))).toEqual([]);
    expectRefused(block, bound(limit - 1));
  });

  it("reads a text of 42 bytes, a number that starts at a byte's begin (appendix C.1.3)", () => {
    const value = "x".repeat(42);
    const block = Buffer.concat([Buffer.of(0x04, 42), Buffer.from(value)]);
    expect(decodeWith(new HpackDecoder(bounds), block)?.get(":path")).toBe(value);
  });

  it.each(stories)("decodes appendix $name", ({ tableBytesMax, steps }) => {
    const decoder = new HpackDecoder({ ...bounds, tableBytesMax });
    for (const { block, fields, table, tableBytes } of steps) {
      const hex = block.replaceAll(/\s/g, "");
      expect(linesOf(decodeWith(decoder, hex))).toEqual(fields);
      expect(tableOf(decoder, table.length)).toEqual(table);
      expect(decoder.tableBytes).toBe(tableBytes);
    }
  });

  it("answers names and values by index, and the first value of a name", () => {
    const block = Buffer.concat([
      Buffer.of(0x83, 0x00),
      plainText("x", false),
      plainText("1", false),
      Buffer.of(0x00),
      plainText("x", false),
      plainText("\u00e92", true),
    ]);
    const fields = decodeWith(new HpackDecoder(bounds), block);
    expect(linesOf(fields)).toEqual([":method: POST", "x: 1", "x: \u00e92"]);
    expect(fields?.get("x")).toBe("1");
    expect(fields?.get("y")).toBeUndefined();
    expect(fields?.name(3)).toBe("");
    expect(fields?.value(3)).toBe("");
  });

  it("decodes a block within other bytes", () => {
    const decoder = new HpackDecoder(bounds);
    const fields = decoder.decode(Buffer.from("ffff8286ffff", "hex"), 2, 4);
    expect(linesOf(fields)).toEqual([":method: GET", ":scheme: http"]);
  });
});

describe("HpackDecoder, of what is wrong,", () => {
  it.each([
    ["the index 0", "80"],
    ["an index behind the static table", "be"],
    ["an index far behind", "ffffffff07"],
    ["a name's index behind the static table", "7e0161"],
    ["a change of the table's size behind a field", "8220"],
    ["a change of the table's size above ours", "3fe21f"],
    ["a block that ends within an index", "ff"],
    ["a block that ends within an index's bytes", "ff80"],
    ["a block that ends behind a literal's first byte", "00"],
    ["a block that ends before a value", "000161"],
    ["a block that ends within a value", "00016103ff61"],
    ["a text that is longer than its block", "007f80016161"],
    ["a text with the end symbol", "0084ffffffff00"],
    ["a text with a padding of eight ones", "0081ff00"],
    ["a text whose padding holds a zero", "0081fe00"],
  ])("refuses %s", (_, block) => {
    expectRefused(block);
  });

  it("refuses a number that goes on for more than its bytes, zeros too", () => {
    const zeros = (count: number): Buffer =>
      Buffer.from([0x3f, ...new Array<number>(count - 1).fill(0x80), 0x00]);
    expect(linesOf(decodeWith(new HpackDecoder(bounds), zeros(integerContinuationsMax)))).toEqual(
      [],
    );
    expectRefused(zeros(integerContinuationsMax + 1));
    expectRefused(Buffer.from([0x3f, ...new Array<number>(60_000).fill(0xff)]));
  });

  it("follows changes of the table's size, also several before the first field", () => {
    const decoder = new HpackDecoder(bounds);
    decodeWith(decoder, "40016101624001630164");
    expect(decoder.tableBytes).toBe(68);
    expect(linesOf(decodeWith(decoder, "3f033fe11fbe"))).toEqual(["c: d"]);
    expect(decoder.tableBytes).toBe(34);
    expect(linesOf(decodeWith(decoder, "20"))).toEqual([]);
    expect(decoder.tableBytes).toBe(0);
    // Nothing is kept any more, and nothing fails.
    expect(linesOf(decodeWith(decoder, "4001610162"))).toEqual(["a: b"]);
    expect(decoder.tableBytes).toBe(0);
    expectRefused("be", decoder);
  });

  it("empties the table for a field that is larger than it", () => {
    const decoder = new HpackDecoder({ ...bounds, tableBytesMax: 100 });
    decodeWith(decoder, "4001610162");
    const large = Buffer.concat([
      Buffer.of(0x7e),
      plainText("v".repeat(100), false),
      plainInteger(0x80, 7, 2),
    ]);
    expect(decodeWith(decoder, large)?.get("a")).toBe("v".repeat(100));
    expect(decoder.tableBytes).toBe(0);
    expectRefused("be", decoder);
  });
});

describe("HpackDecoder, of what is too much,", () => {
  /** A field that is added to the table, of so many bytes as they count in a list. */
  const fieldOf = (bytes: number): Buffer =>
    Buffer.concat([
      Buffer.of(0x40),
      plainText("x", false),
      plainText("v".repeat(bytes - 33), false),
    ]);

  it("takes a list of as many bytes as there may be, and refuses one more", () => {
    const half = headerListBytesMax / 2;
    const most = Buffer.concat([fieldOf(half), fieldOf(half)]);
    expect(decodeWith(new HpackDecoder(bounds), most)?.count).toBe(2);
    const more = Buffer.concat([fieldOf(half), fieldOf(half + 1)]);
    expect(decodeWith(new HpackDecoder(bounds), more)).toBeUndefined();
  });

  it("takes as many fields as there may be, and refuses one more", () => {
    const fields = (count: number): Buffer => Buffer.alloc(count, 0x82);
    expect(decodeWith(new HpackDecoder(bounds), fields(headerFieldsMax))?.count).toBe(
      headerFieldsMax,
    );
    expect(decodeWith(new HpackDecoder(bounds), fields(headerFieldsMax + 1))).toBeUndefined();
  });

  it("follows the table through a list that is too large: the next block reads right", () => {
    const decoder = new HpackDecoder({ ...bounds, listBytesMax: 100 });
    const block = Buffer.concat([fieldOf(90), fieldOf(50), Buffer.from("4001610162", "hex")]);
    expect(decodeWith(decoder, block)).toBeUndefined();
    expect(linesOf(decodeWith(decoder, "be"))).toEqual(["a: b"]);
    expect(decoder.tableBytes).toBe(90 + 50 + 34);
  });

  it("refuses each time, although it has seen the block", () => {
    const decoder = new HpackDecoder({ ...bounds, fieldCountMax: 2 });
    for (let i = 0; i < 3; i += 1) expect(decodeWith(decoder, "828282")).toBeUndefined();
  });

  it("refuses a small block that names a large field thousands of times", () => {
    const decoder = new HpackDecoder(bounds);
    decodeWith(decoder, fieldOf(4_000));
    expect(decodeWith(decoder, Buffer.alloc(60_000, 0xbe))).toBeUndefined();
  });
});

describe("HpackDecoder, of blocks that come again,", () => {
  const call = "828684be";

  function decoderWithField(): HpackDecoder {
    const decoder = new HpackDecoder(bounds);
    decodeWith(decoder, "4001610162");
    return decoder;
  }

  it("answers the same object", () => {
    const decoder = decoderWithField();
    const first = decodeWith(decoder, call);
    expect(linesOf(first)).toEqual([":method: GET", ":scheme: http", ":path: /", "a: b"]);
    expect(decodeWith(decoder, call)).toBe(first);
    expect(decodeWith(decoder, "82")).not.toBe(first);
    expect(decodeWith(decoder, call)).toBe(first);
  });

  it("answers the same object for a literal that changes no table", () => {
    const decoder = new HpackDecoder(bounds);
    const block = "83040c2f73616d706c652f70617468";
    expect(decodeWith(decoder, block)).toBe(decodeWith(decoder, block));
  });

  it("reads it anew once the table has changed: the same bytes say something else", () => {
    const decoder = decoderWithField();
    decodeWith(decoder, call);
    decodeWith(decoder, "4001630164");
    expect(linesOf(decodeWith(decoder, call))?.at(-1)).toBe("c: d");
  });

  it("reads it anew once the table has lost a field", () => {
    const decoder = decoderWithField();
    decodeWith(decoder, call);
    decodeWith(decoder, "20");
    expectRefused(call, decoder);
  });

  it("follows a block that changes the table each time that it comes", () => {
    const decoder = new HpackDecoder(bounds);
    for (let i = 1; i <= 3; i += 1) {
      decodeWith(decoder, "4001610162");
      expect(decoder.tableBytes).toBe(34 * i);
    }
    for (let i = 0; i < 2; i += 1)
      expect(linesOf(decodeWith(decoder, "3fe11fbe"))).toEqual(["a: b"]);
  });

  it("remembers so many, the oldest of them gives way", () => {
    const decoder = new HpackDecoder(bounds);
    const blockOf = (i: number): Buffer => plainInteger(0x80, 7, i + 1);
    const first = Array.from({ length: cachedBlocksMax }, (_, i) =>
      decodeWith(decoder, blockOf(i)),
    );
    for (const [i, fields] of first.entries()) expect(decodeWith(decoder, blockOf(i))).toBe(fields);
    decodeWith(decoder, blockOf(cachedBlocksMax));
    expect(decodeWith(decoder, blockOf(1))).toBe(first[1]);
    expect(decodeWith(decoder, blockOf(0))).not.toBe(first[0]);
  });

  it("remembers none above its bytes", () => {
    const decoder = new HpackDecoder(bounds);
    const blockOf = (bytes: number): Buffer =>
      Buffer.concat([Buffer.of(0x04), plainText("p".repeat(bytes - 3), false)]);
    const most = blockOf(cachedBlockBytesMax);
    const more = blockOf(cachedBlockBytesMax + 1);
    expect(most.length).toBe(cachedBlockBytesMax);
    expect(decodeWith(decoder, most)).toBe(decodeWith(decoder, most));
    expect(decodeWith(decoder, more)).not.toBe(decodeWith(decoder, more));
  });
});
