import { create, toBinary } from "@bufbuild/protobuf";
import { assert, constantFrom, nat, property, uint8Array } from "fast-check";
import { describe, expect, it } from "vitest";
import { ProcessingRequestSchema } from "../../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { bytesBesidesBody } from "../../../../src/rpc/ext-proc/body-message.js";
import { propertyRuns } from "../../../support/seeds.js";

/** A body with metadata behind it, whose text has so many bytes. */
function bodyMessage(part: "requestBody" | "responseBody", size: number, text = 0): Uint8Array {
  const filterMetadata = text === 0 ? {} : { "io.usage": { text: "a".repeat(text) } };
  return toBinary(
    ProcessingRequestSchema,
    create(ProcessingRequestSchema, {
      request: { case: part, value: { body: new Uint8Array(size) } },
      metadataContext: { filterMetadata },
    }),
  );
}

describe("bytesBesidesBody()", () => {
  it("leaves out the body, and nothing else", () => {
    const parts = constantFrom("requestBody" as const, "responseBody" as const);
    assert(
      property(parts, nat(1_000), nat(1_000), (part, size, text) => {
        const bytes = bodyMessage(part, size, text);
        const besides = bytesBesidesBody(bytes);
        expect(besides).toBeGreaterThanOrEqual(text);
        expect(bytes.length - besides).toBeGreaterThanOrEqual(size);
      }),
      propertyRuns(200),
    );
  });

  it("counts all bytes of headers", () => {
    const headers = { headers: [{ key: "x-a", rawValue: new Uint8Array(1_000) }] };
    const request = { case: "requestHeaders", value: { headers } } as const;
    const bytes = toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, { request }));
    expect(bytesBesidesBody(bytes)).toBe(bytes.length);
  });

  it("counts a body that does not stand first", () => {
    const headers = Buffer.of(0x12, 0);
    const body = Buffer.from(bodyMessage("requestBody", 1_000));
    expect(bytesBesidesBody(Buffer.concat([headers, body]))).toBe(body.length + 2);
  });

  it("leaves out only the first one of two", () => {
    const body = Buffer.from(bodyMessage("requestBody", 1_000));
    expect(bytesBesidesBody(Buffer.concat([body, body]))).toBeGreaterThan(body.length);
  });

  it("counts all bytes of what is no message, and never throws", () => {
    expect(bytesBesidesBody(Buffer.of(0x22, 100, 1))).toBe(3);
    expect(bytesBesidesBody(new Uint8Array())).toBe(0);
    assert(
      property(uint8Array({ maxLength: 20 }), (bytes) => {
        const besides = bytesBesidesBody(Buffer.from([0x22, ...bytes]));
        expect(besides).toBeGreaterThan(0);
        expect(besides).toBeLessThanOrEqual(bytes.length + 1);
      }),
      propertyRuns(300),
    );
  });
});
