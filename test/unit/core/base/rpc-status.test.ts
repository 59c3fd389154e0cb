import { create, createFileRegistry, type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import {
  DurationSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_duration,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeRetryStatus } from "../../../../src/core/base/rpc-status.js";
import { StatusSchema } from "../../../../src/gen/google/rpc/status_pb.js";
import { propertyRuns } from "../../../support/seeds.js";

/** The message as protobuf-es has it: the image of Envoy's API leaves it out. */
function retryInfoSchema(): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "google/rpc/error_details.proto",
    package: "google.rpc",
    syntax: "proto3",
    dependency: ["google/protobuf/duration.proto"],
    messageType: [
      {
        name: "RetryInfo",
        field: [
          {
            name: "retry_delay",
            number: 1,
            type: Type.MESSAGE,
            typeName: ".google.protobuf.Duration",
            label: Label.OPTIONAL,
          },
        ],
      },
    ],
  });
  const set = create(FileDescriptorSetSchema, {
    file: [file_google_protobuf_duration.proto, file],
  });
  const schema = createFileRegistry(set).getMessage("google.rpc.RetryInfo");
  if (schema === undefined) throw new Error("it was just made");
  return schema;
}

describe("encodeRetryStatus()", () => {
  const schema = retryInfoSchema();

  it("is read by protobuf-es as the status and the delay that it was made of", () => {
    const text = fc.string({ unit: "grapheme-ascii", maxLength: 300 });
    // Also the first and last numbers of one, two and three bytes.
    const seconds = fc.oneof(fc.constantFrom(0, 127, 128, 16_383, 16_384), fc.nat(2 ** 31 - 1));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 16 }), text, seconds, (code, message, s) => {
        const bytes = encodeRetryStatus({ code, message, retrySeconds: s });
        const status = fromBinary(StatusSchema, bytes);
        expect([status.code, status.message, status.details.length]).toEqual([code, message, 1]);
        const [detail] = status.details;
        expect(detail?.typeUrl).toBe("type.googleapis.com/google.rpc.RetryInfo");
        const info = fromBinary(schema, detail?.value ?? new Uint8Array());
        const field = schema.fields[0];
        const delay = field && reflect(schema, info).get(field);
        expect(delay).toMatchObject({
          message: { $typeName: DurationSchema.typeName, seconds: BigInt(s), nanos: 0 },
        });
      }),
      propertyRuns(100),
    );
  });

  it("holds a number of seconds above 32 bits", () => {
    const bytes = encodeRetryStatus({ code: 8, message: "", retrySeconds: 2 ** 40 });
    expect(Buffer.from(bytes).toString("hex")).toMatch(/08808080808020$/);
  });
});
