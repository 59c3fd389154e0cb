import { describe, expect, it } from "vitest";
import {
  ReplyBounds,
  replyBytesMax,
  replyPartsMax,
} from "../../../../src/store/redis/reply-bounds.js";

/** In pieces of that many bytes. */
function takes(bounds: ReplyBounds, text: string, pieceBytes: number): boolean {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (!bounds.take(bytes.subarray(at, at + pieceBytes))) return false;
  }
  return true;
}

const usual =
  "+OK\r\n:12\r\n-ERR no 999999999999\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n" +
  "*2\r\n*1\r\n$4\r\n*999\r\n:1\r\n%1\r\n+a\r\n+b\r\n>1\r\n:1\r\n";

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
    `%${replyPartsMax / 2 + 1}\r\n`,
    `*2\r\n*${replyPartsMax}\r\n`,
    "*33554000\r\n*33554000\r\n",
    "*1\r\n".repeat(17),
    `*2\r\n$${replyBytesMax - 30}\r\n${"x".repeat(replyBytesMax - 30)}\r\n$30\r\n`,
  ])("refuses a reply that claims more than it may: %#", (reply) => {
    for (const pieceBytes of reply.length > 1_000 ? [65_536] : [1, reply.length]) {
      expect(takes(new ReplyBounds(), `${usual}${reply}`, pieceBytes)).toBe(false);
    }
  });

  it("refuses a line without an end", () => {
    expect(takes(new ReplyBounds(), `+${"x".repeat(replyBytesMax)}`, 65_536)).toBe(false);
  });
});
