import { describe, expect, it } from "vitest";
import { frameFlags, frameTypes, settingIds } from "../../../../src/wire/base/frames.js";
import { OutputBuffer } from "../../../../src/wire/base/output-buffer.js";
import { FrameWriter } from "../../../../src/wire/http2/frame-writer.js";

function written(write: (writer: FrameWriter) => void): string {
  const writer = new FrameWriter(new OutputBuffer());
  write(writer);
  return writer.output.take().toString("hex");
}

describe("FrameWriter", () => {
  it.each([
    [
      "SETTINGS",
      (to: FrameWriter) => to.settings([[settingIds.maxFrameSize, 0x4000]]),
      "000006040000000000000500004000",
    ],
    ["empty SETTINGS", (to: FrameWriter) => to.settings([]), "000000040000000000"],
    ["an answer to SETTINGS", (to: FrameWriter) => to.settingsAck(), "000000040100000000"],
    [
      "PING",
      (to: FrameWriter) => to.ping(0x01020304, 0xffffffff),
      "00000806000000000001020304ffffffff",
    ],
    [
      "an answer to PING",
      (to: FrameWriter) => to.pingAck(Buffer.from("ff0102030405060708ff", "hex"), 1),
      "0000080601000000000102030405060708",
    ],
    [
      "GOAWAY",
      (to: FrameWriter) => to.goaway(0x7fffffff, 0xb),
      "0000080700000000007fffffff0000000b",
    ],
    ["RST_STREAM", (to: FrameWriter) => to.rstStream(3, 8), "00000403000000000300000008"],
    [
      "WINDOW_UPDATE",
      (to: FrameWriter) => to.windowUpdate(0, 0x10000),
      "00000408000000000000010000",
    ],
  ])("writes %s", (_, write, expected) => {
    expect(written(write)).toBe(expected);
  });

  it("puts in the length of a frame that is written piece by piece", () => {
    const frame = written((writer) => {
      writer.begin(frameTypes.data, frameFlags.endStream, 0x01020304);
      writer.output.byte(0);
      writer.output.bytes(Buffer.alloc(5_000));
      writer.end();
      writer.begin(frameTypes.data, 0, 5);
      writer.end();
    });
    expect(frame.slice(0, 18)).toBe("001389000101020304");
    expect(frame.slice(-18)).toBe("000000000000000005");
  });

  it.each([
    ["in one frame", 10, ["00000a0105"]],
    ["in one frame, when it just fits", 20, ["0000140105"]],
    ["in two, when it does not", 21, ["0000140101", "0000010904"]],
    ["in as many as it takes", 60, ["0000140101", "0000140900", "0000140904"]],
  ])("ends a header block %s", (_, blockBytes, heads) => {
    const block = Buffer.from(Array.from({ length: blockBytes }, (_byte, i) => i));
    const bytes = Buffer.from(
      written((writer) => {
        writer.begin(frameTypes.headers, frameFlags.endStream, 7);
        writer.output.bytes(block);
        writer.endHeaders(7, 20);
      }),
      "hex",
    );
    const seenHeads: string[] = [];
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = at + 9 + bytes.readUIntBE(at, 3);
      seenHeads.push(bytes.toString("hex", at, at + 5));
      expect(bytes.readUInt32BE(at + 5)).toBe(7);
      parts.push(bytes.subarray(at + 9, end));
      at = end;
    }
    expect(seenHeads).toEqual(heads);
    expect(Buffer.concat(parts).equals(block)).toBe(true);
  });

  it("refuses a frame within another, and an end without a begin", () => {
    const writer = new FrameWriter(new OutputBuffer());
    expect(() => writer.end()).toThrow("assertion failed");
    writer.begin(frameTypes.data, 0, 1);
    expect(() => writer.begin(frameTypes.data, 0, 1)).toThrow("assertion failed");
  });
});
