import { describe, expect, it } from "vitest";
import { metadataOf } from "../../../../src/wire/grpc/grpc-metadata.js";
import { headerFields } from "../../../support/recorded-stream.js";

describe("metadataOf()", () => {
  const fields = headerFields([
    ["x-word", "first"],
    ["x-word", "second"],
    ["padded-bin", "AP8="],
    ["bare-bin", "AP8"],
    ["several-bin", "AP8=, AQ"],
    ["empty-bin", ""],
    ["broken-bin", "%%"],
  ]);

  it.each([
    { name: "x-word", value: "first" },
    { name: "x-none", value: undefined },
    { name: "padded-bin", value: "\u0000\u00ff" },
    { name: "bare-bin", value: "\u0000\u00ff" },
    { name: "several-bin", value: "\u0000\u00ff" },
    { name: "empty-bin", value: "" },
    { name: "broken-bin", value: undefined },
    { name: "none-bin", value: undefined },
  ])("reads $name", ({ name, value }) => {
    expect(metadataOf(fields, name)).toBe(value);
  });
});
