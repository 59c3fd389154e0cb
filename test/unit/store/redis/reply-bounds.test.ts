import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ReplyBounds,
  replyBytesMax,
  replyPartsMax,
} from "../../../../src/store/redis/reply-bounds.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

/** What is asked of the library's own decoder, which it does not export. */
interface DecoderModule {
  readonly Decoder: new (parts: {
    readonly onReply: (reply: unknown) => void;
    readonly onErrorReply: (error: unknown) => void;
    readonly onPush: (push: unknown) => void;
    readonly getTypeMapping: () => object;
  }) => { write(bytes: Buffer): void };
}

const library: DecoderModule = createRequire(import.meta.url)("ioredis/built/resp/decoder.js");

/** In pieces of that many bytes. */
function takes(bounds: ReplyBounds, text: string, pieceBytes: number): boolean {
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (!bounds.take(bytes.subarray(at, at + pieceBytes))) return false;
  }
  return true;
}

const usual =
  "+OK\r\n:12\r\n-ERR no 999999999999\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n" +
  "*2\r\n*1\r\n$4\r\n*999\r\n:-1\r\n";

describe("ReplyBounds", () => {
  it("takes whatever is within bounds, wherever it is cut, for as long as it comes", () => {
    for (const pieceBytes of [1, 2, 3, 7, usual.length]) {
      const bounds = new ReplyBounds();
      for (let i = 0; i < 100; i += 1) expect(takes(bounds, usual, pieceBytes)).toBe(true);
    }
    const bounds = new ReplyBounds();
    const large = `$${replyBytesMax - 20}\r\n${"x".repeat(replyBytesMax - 20)}\r\n`;
    const wide = `*${replyPartsMax}\r\n${":1\r\n".repeat(replyPartsMax)}`;
    for (const reply of [large, wide, large, wide]) {
      expect(takes(bounds, reply, 65_536)).toBe(true);
    }
  });

  it.each([
    `$${replyBytesMax + 1}\r\n`,
    "$99999999999999999999999\r\n",
    `*${replyPartsMax + 1}\r\n`,
    `*2\r\n*${replyPartsMax}\r\n`,
    "*33554000\r\n*33554000\r\n",
    "*1\r\n".repeat(17),
    `*2\r\n$${replyBytesMax - 30}\r\n${"x".repeat(replyBytesMax - 30)}\r\n$30\r\n`,
  ])("refuses a reply that claims more than it may: %#", (reply) => {
    for (const pieceBytes of reply.length > 1_000 ? [65_536] : [1, reply.length]) {
      expect(takes(new ReplyBounds(), `${usual}${reply}`, pieceBytes)).toBe(false);
    }
  });

  // The library reads `*` and six bytes 0xFF as a list of 23 million, `_` as two bytes, whatever
  // they are, and anything before CR as digits.
  it.each([
    "*\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\r\n",
    "_xx*33554000\r\n",
    "#xxx*33554000\r\n",
    ",nxx*33554000\r\n",
    "+\rX*33554000\r\n",
    ":1\rX*33554000\r\n",
    "$-1xx*33554000\r\n",
    "$-2\r\n",
    "$--1\r\n",
    "$1-1\r\n",
    "$+1\r\n",
    "$\r\n",
    "*-\r\n",
    "*1\n:1\r\n",
    "*1\rX:1\r\n",
    "%1\r\n+a\r\n+b\r\n",
    "~1\r\n+a\r\n",
    ">1\r\n+a\r\n",
    "=7\r\ntxt:abc\r\n",
    "!1\r\na\r\n",
    "(1\r\n",
    "x\r\n",
  ])("refuses what the library reads otherwise than it is meant, or does not know: %j", (reply) => {
    for (const pieceBytes of [1, 3, reply.length]) {
      expect(takes(new ReplyBounds(), reply, pieceBytes)).toBe(false);
    }
  });

  it("refuses a line without an end", () => {
    expect(takes(new ReplyBounds(), `+${"x".repeat(replyBytesMax)}`, 65_536)).toBe(false);
  });
  it("takes nothing that the library reads with other lines and lengths", () => {
    const piece = fc.constantFrom(...pieces);
    let takenCount = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 1, max: 9 }), (all, at) => {
        const text = all.join("");
        if (!takes(new ReplyBounds(), text, at)) return;
        takenCount += 1;
        const replies = readPlainly(text);
        const read = readByLibrary(text, at);
        expect(read.slice(0, replies.length)).toEqual(replies);
        // It hands over the last one before the end of its line has come.
        expect(read.length - replies.length).toBeLessThanOrEqual(1);
      }),
      propertyRuns(20_000),
    );
    expect(takenCount).toBeGreaterThan(metCount(4_000));
  });
});

const numberKind = ":".charCodeAt(0);

/** Whole lines, so that many are taken, and what breaks them. */
const pieces = [
  ...["+OK\r\n", "-ERR a\r\n", ":12\r\n", ":-3\r\n", "$3\r\nabc\r\n", "$-1\r\n", "$0\r\n\r\n"],
  ...["*-1\r\n", "*0\r\n", "*1\r\n", "*2\r\n", "$9\r\n", "*3\r\n", "+a\nb\r\n", "+*2\r\n"],
  ...["\r\n", "\r", "\n", "*", "$", "+", "-", ":", "_", "#", ",", "(", "=", "~", "%", ">", "!"],
  ...["0", "1", "-1", "x", "i", "n", "\u00ff", "\u00ff\u00ff\u00ff\u00ff"],
];

/** The replies, in pieces of that many bytes. */
function readByLibrary(text: string, pieceBytes: number): readonly unknown[] {
  const replies: unknown[] = [];
  const take = (reply: unknown): void => void replies.push(withoutErrors(reply));
  const numbersAsText = { [numberKind]: String };
  const decoder = new library.Decoder({
    onReply: take,
    onErrorReply: take,
    onPush: take,
    getTypeMapping: () => numbersAsText,
  });
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    decoder.write(bytes.subarray(at, at + pieceBytes));
  }
  return replies;
}

function withoutErrors(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(withoutErrors);
  return reply instanceof Error ? reply.message : reply;
}

/** As the protocol says, of whole lines and without any state. */
function readPlainly(text: string): readonly unknown[] {
  const replies: unknown[] = [];
  for (let rest = text; ; ) {
    const read = readReply(rest);
    if (read === undefined) return replies;
    replies.push(read.reply);
    rest = read.rest;
  }
}

interface Read {
  readonly reply: unknown;
  readonly rest: string;
}

/** Undefined: it is not whole. */
function readReply(text: string): Read | undefined {
  const end = text.indexOf("\r\n");
  if (end < 0) return undefined;
  const [kind, line, rest] = [text.slice(0, 1), text.slice(1, end), text.slice(end + 2)];
  if (["+", "-", ":"].includes(kind)) return { reply: asLibrary(line), rest };
  if (!["$", "*"].includes(kind)) throw new Error(`no kind: ${kind}`);
  if (line === "-1") return { reply: null, rest };
  if (!/^[0-9]+$/.test(line)) throw new Error(`no length: ${line}`);
  return kind === "$" ? readText(rest, Number(line)) : readList(rest, Number(line));
}

function readText(text: string, length: number): Read | undefined {
  if (text.length < length + 2) return undefined;
  return { reply: asLibrary(text.slice(0, length)), rest: text.slice(length + 2) };
}

/** It reads UTF-8. */
function asLibrary(text: string): string {
  return Buffer.from(text, "latin1").toString();
}

function readList(text: string, length: number): Read | undefined {
  const list: unknown[] = [];
  let rest = text;
  while (list.length < length) {
    const read = readReply(rest);
    if (read === undefined) return undefined;
    list.push(read.reply);
    rest = read.rest;
  }
  return { reply: list, rest };
}
