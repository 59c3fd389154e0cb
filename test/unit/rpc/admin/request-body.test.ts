import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { descriptorCountMax, entryCountMax } from "../../../../src/decide/rate-limit/query.js";
import { ExplainRequestSchema } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import {
  checkBinary,
  checkJson,
  jsonBytesMax,
  messageFieldsMax,
} from "../../../../src/rpc/admin/request-body.js";
import { explainedFilesMax } from "../../../../src/rpc/admin/request-reader.js";

const byteCount = 262_144;

/** As many descriptors and texts as an explanation may have. */
const largest = create(ExplainRequestSchema, {
  request: {
    case: "descriptors",
    value: {
      domain: "shop",
      descriptors: Array.from({ length: descriptorCountMax }, () => ({
        hits: 2n,
        entries: Array.from({ length: entryCountMax }, () => ({ key: "user", value: "a" })),
      })),
    },
  },
  candidate: Array.from({ length: explainedFilesMax }, (_, i) => ({
    file: `${i}`,
    text: "a: [,]",
  })),
});

describe("checkBinary()", () => {
  it("takes the largest explanation that there may be", () => {
    checkBinary(toBinary(ExplainRequestSchema, largest), ExplainRequestSchema);
  });

  it("refuses what it cannot count", () => {
    const group = Buffer.concat([Buffer.of(0x7b), Buffer.alloc(byteCount, Buffer.of(0x1a, 0))]);
    for (const bytes of [group, Buffer.of(0x1a, 5), Buffer.of(0xff)]) {
      expect(() => checkBinary(bytes, ExplainRequestSchema)).toThrow(
        "not a message of this method",
      );
    }
  });
});

describe("checkJson()", () => {
  it("takes the largest explanation that there may be", () => {
    checkJson(Buffer.from(toJsonString(ExplainRequestSchema, largest)));
  });

  it.each(["{},", "[],", '"",', "1,", "[", "{", '{"a":', '"\\"",', '"\\\\",'])(
    "refuses a text of too many %s",
    (unit) => {
      // So far from each other that the text is not refused for too many of its bytes.
      const spaced = `${unit}${" ".repeat(8)}`;
      const text = (count: number) => Buffer.from(`{"candidate":[${spaced.repeat(count)}`);
      expect(() => checkJson(text(messageFieldsMax))).toThrow("more than 16384 fields");
      expect(() => checkJson(text(messageFieldsMax / 2 - 2))).not.toThrow();
    },
  );

  // 32 KB of them took half a megabyte, twenty times as much.
  it("refuses as many lists as no text of its length has", () => {
    const nested = (count: number) => Buffer.from("[".repeat(count) + "]".repeat(count));
    expect(() => checkJson(nested(80))).not.toThrow();
    expect(() => checkJson(nested(messageFieldsMax / 2))).toThrow("too many for its bytes");
  });

  it("refuses what is longer than is parsed in one turn, whatever it holds", () => {
    const text = (length: number) => Buffer.from(`{"a":"${"x".repeat(length - 8)}"}`);
    expect(() => checkJson(text(jsonBytesMax))).not.toThrow();
    expect(() => checkJson(text(jsonBytesMax + 1))).toThrow(
      "in JSON it has more than 524288 bytes",
    );
  });

  it("counts nothing inside of texts", () => {
    const text = JSON.stringify({ file: `${'[{,"\\'.repeat(messageFieldsMax)}` });
    expect(() => checkJson(Buffer.from(text))).not.toThrow();
    expect(() => checkJson(Buffer.from('{"a":"[[['))).not.toThrow();
    expect(() => checkJson(Buffer.from(text + ",".repeat(messageFieldsMax)))).toThrow();
  });
});
