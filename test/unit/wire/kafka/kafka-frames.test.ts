import { describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import { type FrameBounds, KafkaFrames } from "../../../../src/wire/kafka/kafka-frames.js";

const bounds: FrameBounds = { bytesMax: 100, keptBytesMax: 100 };

function frame(length: number, fill = 1): Buffer {
  const bytes = Buffer.alloc(4 + length, fill);
  bytes.writeInt32BE(length);
  return bytes;
}

/** The lengths of what was taken, or the code of why it ended. */
function read(chunks: readonly Buffer[], expected: FrameBounds | undefined = bounds): unknown {
  const frames = new KafkaFrames();
  const taken: number[] = [];
  try {
    for (const chunk of chunks) {
      frames.add(
        chunk,
        () => expected,
        (bytes) => taken.push(bytes.length),
      );
    }
  } catch (thrown) {
    if (isServiceError(thrown)) return thrown.code;
    throw thrown;
  }
  return taken;
}

describe("KafkaFrames", () => {
  it("reads responses that are cut anywhere, or come together", () => {
    const bytes = Buffer.concat([frame(4), frame(100), frame(5)]);
    expect(read([bytes])).toEqual([4, 100, 5]);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual([4, 100, 5]);
    }
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual([4, 100, 5]);
  });

  it.each([
    ["2 GiB", 0x7fffffff, "SIGNAL_TOO_LARGE"],
    ["one byte above the bound", 101, "SIGNAL_TOO_LARGE"],
    ["a negative length", -1, "SIGNAL_MALFORMED"],
    ["less than an identifier", 3, "SIGNAL_MALFORMED"],
  ])("refuses %s by the length alone", (_, length, code) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(length);
    expect(read([head])).toBe(code);
  });

  it("refuses what nobody has asked for", () => {
    const frames = new KafkaFrames();
    const add = (): void =>
      frames.add(
        frame(4),
        () => undefined,
        () => {},
      );
    expect(add).toThrow(/not Kafka's/);
  });

  it("keeps the start of a large response, and drops the rest as it arrives", () => {
    const few: FrameBounds = { bytesMax: 60_000_000, keptBytesMax: 10 };
    const frames = new KafkaFrames();
    const taken: string[] = [];
    const add = (chunk: Buffer): void =>
      frames.add(
        chunk,
        () => few,
        (bytes) => taken.push(bytes.toString("latin1")),
      );
    const head = Buffer.from("....0123456789");
    head.writeInt32BE(50_000_010);
    add(head);
    const chunk = Buffer.alloc(1_000_000, "x");
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 49; count += 1) add(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5_000_000);
    expect(taken).toEqual([]);
    add(Buffer.concat([chunk, frame(4, 0x2a)]));
    expect(taken).toEqual(["0123456789", "****"]);
  });
});
