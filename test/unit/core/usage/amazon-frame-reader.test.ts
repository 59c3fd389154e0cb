import { describe, expect, it } from "vitest";
import {
  AmazonFrameReader,
  amazonFrameBytesMax,
  amazonHeaderBytesMax,
} from "../../../../src/core/usage/amazon-frame-reader.js";
import {
  amazonEvent,
  encodeAmazonFrames,
  encodeAmazonPrelude,
} from "../../../support/amazon-frames.js";

interface Read {
  readonly payloads: readonly string[];
  readonly isBroken: boolean;
}

/** Payloads of bytes that come in pieces of this size; the last may be cut off. */
function read(bytes: Buffer, size = bytes.length): Read {
  const payloads: string[] = [];
  let payload = "";
  const reader = new AmazonFrameReader({
    data(data, from, to) {
      payload += Buffer.from(data.subarray(from, to)).toString("latin1");
    },
    eventEnd() {
      payloads.push(payload);
      payload = "";
    },
  });
  for (let i = 0; i < bytes.length; i += size) reader.push(bytes.subarray(i, i + size));
  return {
    payloads: payload === "" ? payloads : [...payloads, payload],
    isBroken: reader.isBroken,
  };
}

const messages = [
  amazonEvent("messageStart", { role: "assistant" }),
  { headers: {}, payload: "" },
  { headers: { ":message-type": "exception" }, payload: '{"message":"no"}' },
];

const payloads = messages.map(({ payload }) => payload);

describe("AmazonFrameReader", () => {
  it("reads payloads, in pieces of any size", () => {
    const bytes = encodeAmazonFrames(messages);
    for (let size = 1; size <= bytes.length; size += 1) {
      expect(read(bytes, size)).toEqual({ payloads, isBroken: false });
    }
  });

  it("keeps what came of a message that is cut off", () => {
    const bytes = encodeAmazonFrames(messages.slice(0, 1));
    expect(read(bytes.subarray(0, -10)).payloads).toEqual([payloads[0]?.slice(0, -6)]);
  });

  it("stops where a prelude is none", () => {
    const bytes = encodeAmazonFrames(messages);
    for (let at = 0; at < 12; at += 1) {
      const broken = Buffer.from(bytes);
      broken[at] = (broken[at] ?? 0) ^ 1;
      expect(read(broken)).toEqual({ payloads: [], isBroken: true });
    }
  });

  it.each([
    [amazonFrameBytesMax, amazonHeaderBytesMax, false],
    [amazonFrameBytesMax + 1, 0, true],
    [amazonFrameBytesMax, amazonHeaderBytesMax + 1, true],
    [16, 0, false],
    [15, 0, true],
    [20, 5, true],
    [0, 0xffffffff, true],
  ])("of a message of %i bytes, %i of them headers: is broken %s", (length, headers, isBroken) => {
    expect(read(encodeAmazonPrelude(length, headers)).isBroken).toBe(isBroken);
  });
});
