import { fromBinary, toJson } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { assert, dictionary, jsonValue, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject, JsonValue } from "../../../../src/core/base/json.js";
import { encodeStruct } from "../../../../src/rpc/codec/struct-encoder.js";

const decode = (bytes: Uint8Array): unknown =>
  toJson(StructSchema, fromBinary(StructSchema, bytes));

describe("encodeStruct()", () => {
  it("keeps every kind of value, within each other", () => {
    const value = {
      a: null,
      b: true,
      c: false,
      d: 0,
      e: -1.5,
      f: "",
      g: ["x", [1], {}],
      h: { i: [] },
    };
    expect(decode(encodeStruct(value))).toEqual(value);
  });

  it("writes what the library reads", () => {
    const fields = dictionary(string({ unit: "binary" }), jsonValue({ stringUnit: "binary" }));
    assert(
      property(fields, (value) => {
        const bytes = encodeStruct(value as JsonObject);
        // JSON knows no -0.
        const expected: JsonValue = JSON.parse(JSON.stringify(value));
        expect(JSON.parse(JSON.stringify(decode(bytes)))).toEqual(expected);
      }),
    );
  });
});
