import { describe, expect, it } from "vitest";
import {
  clientPreface,
  frameHeadBytes,
  framePayloadBytesMax,
  frameTypes,
} from "../../../../src/wire/base/frames.js";
import { http2ErrorCodes } from "../../../../src/wire/base/http2-error.js";
import { OutputBuffer } from "../../../../src/wire/base/output-buffer.js";
import { type Frame, FrameReader, heldBytesMax } from "../../../../src/wire/http2/frame-reader.js";
import { FrameWriter } from "../../../../src/wire/http2/frame-writer.js";

const preface = Buffer.from(clientPreface);

/** Frames as a sink saw them, each in a line. */
class Seen {
  readonly lines: string[] = [];
  readonly reader: FrameReader;
  /** What the sink does beside. */
  onFrame: () => void = () => {};

  constructor(side: "client" | "server" = "server") {
    const sink = {
      onFrame: ({ type, flags, streamId, bytes, start, end }: Frame): void => {
        this.lines.push(`${type} ${flags} ${streamId} ${bytes.toString("hex", start, end)}`);
        this.onFrame();
      },
    };
    this.reader = side === "client" ? FrameReader.ofClient(sink) : FrameReader.ofServer(sink);
  }
}

/** A frame's bytes. */
function frameOf(type: number, payload: Buffer, streamId = 1): Buffer {
  const writer = new FrameWriter(new OutputBuffer());
  writer.begin(type, 0xa5, streamId);
  writer.output.bytes(payload);
  writer.end();
  return writer.output.take();
}

const exchange = Buffer.concat([
  preface,
  frameOf(frameTypes.settings, Buffer.alloc(6, 1), 0),
  frameOf(frameTypes.data, Buffer.alloc(0)),
  frameOf(0xfe, Buffer.alloc(300, 3), 0x7fffffff),
  frameOf(frameTypes.ping, Buffer.alloc(8, 2), 0),
]);

describe("FrameReader", () => {
  it("hands on frames with their type, flags, stream and payload, unknown ones too", () => {
    const seen = new Seen("client");
    seen.reader.read(exchange);
    expect(seen.lines).toEqual([
      `4 165 0 ${"01".repeat(6)}`,
      "0 165 1 ",
      `254 165 2147483647 ${"03".repeat(300)}`,
      `6 165 0 ${"02".repeat(8)}`,
    ]);
    expect(seen.reader.isGreeted).toBe(true);
    expect(seen.reader.heldBytes).toBe(0);
  });

  it("reads the same, cut at every byte", () => {
    const whole = new Seen("client");
    whole.reader.read(exchange);
    for (let cut = 0; cut <= exchange.length; cut += 1) {
      const seen = new Seen("client");
      seen.reader.read(exchange.subarray(0, cut));
      seen.reader.read(exchange.subarray(cut));
      expect(seen.lines).toEqual(whole.lines);
    }
  });

  it.each([1, 2, 3, 7, 10])("reads the same in pieces of %i bytes", (size) => {
    const whole = new Seen("client");
    whole.reader.read(exchange);
    const seen = new Seen("client");
    for (let at = 0; at < exchange.length; at += size) {
      // Each piece has its own memory, and loses it at once.
      const piece = Buffer.from(exchange.subarray(at, at + size));
      seen.reader.read(piece);
      piece.fill(0xee);
    }
    expect(seen.lines).toEqual(whole.lines);
  });

  it("ignores the reserved bit of a stream's number", () => {
    const bytes = frameOf(frameTypes.ping, Buffer.alloc(8), 5);
    bytes[5] = 0x80;
    const seen = new Seen();
    seen.reader.read(bytes);
    expect(seen.lines[0]?.split(" ")[2]).toBe("5");
  });

  it("hands on a frame that lies in one chunk where it lies, without a copy", () => {
    const chunk = Buffer.concat([frameOf(0, Buffer.alloc(50)), frameOf(0, Buffer.alloc(60))]);
    const seen: Buffer[] = [];
    FrameReader.ofServer({ onFrame: ({ bytes }) => void seen.push(bytes) }).read(chunk);
    expect(seen).toHaveLength(2);
    for (const bytes of seen) expect(bytes).toBe(chunk);
  });

  it("takes the largest frame, and holds no more than it", () => {
    const frame = frameOf(frameTypes.data, Buffer.alloc(framePayloadBytesMax, 9));
    expect(frame.length).toBe(heldBytesMax);
    const seen = new Seen();
    for (let at = 0; at < frame.length; at += 1_000) {
      seen.reader.read(frame.subarray(at, at + 1_000));
      expect(seen.reader.heldBytes).toBeLessThan(heldBytesMax);
    }
    expect(seen.lines).toHaveLength(1);
    expect(seen.reader.heldBytes).toBe(0);
  });

  it.each([
    ["with its chunk", frameHeadBytes + 100],
    ["as soon as its head has come", frameHeadBytes],
    ["as soon as its head has come in pieces", 4],
  ])("refuses a larger frame, %s", (_, size) => {
    const frame = frameOf(frameTypes.data, Buffer.alloc(framePayloadBytesMax + 1));
    const { reader } = new Seen();
    const read = (): void => {
      for (let at = 0; at < frameHeadBytes; at += size) reader.read(frame.subarray(at, at + size));
    };
    expect(read).toThrow(expect.objectContaining({ code: http2ErrorCodes.frameSizeError }));
  });

  it("refuses another protocol at the first byte that differs", () => {
    const { reader } = new Seen("client");
    reader.read(Buffer.from("PRI * HTTP/"));
    expect(reader.isGreeted).toBe(false);
    expect(() => reader.read(Buffer.from("1"))).toThrow(
      expect.objectContaining({ code: http2ErrorCodes.protocolError }),
    );
    expect(() => new Seen("client").reader.read(Buffer.from("GET / HTTP/1.1\r\n"))).toThrow();
  });

  it("hands on nothing any more once it was stopped, by its sink too", () => {
    const seen = new Seen("client");
    seen.onFrame = () => {
      if (seen.lines.length === 2) seen.reader.stop();
    };
    seen.reader.read(exchange.subarray(0, -3));
    seen.reader.read(exchange);
    expect(seen.lines).toHaveLength(2);
    expect(seen.reader.heldBytes).toBe(0);
  });

  it("lets the sink's error out", () => {
    const seen = new Seen();
    seen.onFrame = () => {
      throw new Error("from the sink");
    };
    expect(() => seen.reader.read(frameOf(0, Buffer.alloc(1)))).toThrow("from the sink");
  });
});
