import { describe, expect, it } from "vitest";
import {
  decodeReflectionRequest,
  reflectionRequestBytesMax,
} from "../../../src/rpc/reflection-messages.js";

describe("decodeReflectionRequest()", () => {
  it("refuses a longer one", () => {
    const bytes = Buffer.alloc(reflectionRequestBytesMax + 2, Buffer.of(0x3a, 0));
    expect(() => decodeReflectionRequest(bytes)).toThrow("too long");
    expect(decodeReflectionRequest(bytes.subarray(2)).question).toEqual({ kind: "services" });
  });
});
