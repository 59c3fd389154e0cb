import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
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
import {
  decodeRetryDelayMs,
  encodeRetryStatus,
  rpcStatusBytesMax,
} from "../../../../src/core/base/rpc-status.js";
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

/** A status of Google's library with such details. */
function statusOf(details: readonly { typeUrl: string; value: Uint8Array }[]): Uint8Array {
  const status = create(StatusSchema, { code: 8, message: "over quota", details: [...details] });
  return toBinary(StatusSchema, status);
}

/** The bytes of a RetryInfo, as protobuf-es writes them. */
function retryInfoOf(seconds: bigint, nanos: number): { typeUrl: string; value: Uint8Array } {
  const schema = retryInfoSchema();
  const message = reflect(schema);
  const [field] = schema.fields;
  if (field?.fieldKind !== "message") throw new Error("it was just made");
  message.set(field, reflect(DurationSchema, create(DurationSchema, { seconds, nanos })));
  return {
    typeUrl: "type.googleapis.com/google.rpc.RetryInfo",
    value: toBinary(schema, message.message),
  };
}

describe("decodeRetryDelayMs()", () => {
  it.each([
    { seconds: 2n, nanos: 500_000_000, ms: 2_500 },
    { seconds: 0n, nanos: 1, ms: 1 },
    { seconds: 0n, nanos: 0, ms: 0 },
    { seconds: 315_576_000_000n, nanos: 0, ms: 315_576_000_000_000 },
    { seconds: 315_576_000_001n, nanos: 0, ms: undefined },
    { seconds: -1n, nanos: 0, ms: undefined },
    { seconds: 1n, nanos: -1, ms: undefined },
    { seconds: 1n, nanos: 1_000_000_000, ms: undefined },
  ])("reads $seconds s and $nanos ns as $ms ms", ({ seconds, nanos, ms }) => {
    expect(decodeRetryDelayMs(statusOf([retryInfoOf(seconds, nanos)]))).toBe(ms);
  });

  it("reads what Headgate's own refusals say", () => {
    const bytes = encodeRetryStatus({ code: 8, message: "no", retrySeconds: 70_000 });
    expect(decodeRetryDelayMs(bytes)).toBe(70_000_000);
  });

  it("finds the first RetryInfo among other details", () => {
    const other = { typeUrl: "type.googleapis.com/google.rpc.ErrorInfo", value: Buffer.of(8, 1) };
    const bytes = statusOf([other, retryInfoOf(3n, 0), retryInfoOf(9n, 0)]);
    expect(decodeRetryDelayMs(bytes)).toBe(3_000);
    expect(decodeRetryDelayMs(statusOf([other]))).toBeUndefined();
    // A RetryInfo that states nothing.
    expect(decodeRetryDelayMs(statusOf([{ ...retryInfoOf(0n, 0), value: Buffer.of() }]))).toBe(
      undefined,
    );
  });

  it("passes over fields of all types that it does not know", () => {
    // Fields 9 to 12: a number, eight bytes, a text and four bytes.
    const unknown = Buffer.from("4801" + "510000000000000000" + "5a0161" + "6500000000", "hex");
    const bytes = Buffer.concat([unknown, statusOf([retryInfoOf(3n, 0)]), unknown]);
    expect(decodeRetryDelayMs(bytes)).toBe(3_000);
  });

  it("says nothing of bytes that are cut anywhere, too long, or anything", () => {
    const whole = statusOf([retryInfoOf(300n, 5)]);
    for (let end = 0; end < whole.length; end += 1) {
      expect(decodeRetryDelayMs(whole.subarray(0, end))).toBeUndefined();
    }
    const long = Buffer.concat([Buffer.alloc(rpcStatusBytesMax, Buffer.of(0x48, 1)), whole]);
    expect(decodeRetryDelayMs(long)).toBeUndefined();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const ms = decodeRetryDelayMs(bytes);
        expect(ms === undefined || ms >= 0).toBe(true);
      }),
      propertyRuns(500),
    );
  });

  it("survives a change of any byte with a time from 0, or none", () => {
    const whole = statusOf([retryInfoOf(300n, 5)]);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const ms = decodeRetryDelayMs(whole.with(at, byte));
        expect(ms === undefined || (Number.isFinite(ms) && ms >= 0)).toBe(true);
      }),
      propertyRuns(500),
    );
  });
});
