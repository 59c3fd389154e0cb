import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  ExchangeMessage,
  ScalarValue,
} from "../../../../src/core/admission/exchange-messages.js";
import type { HeaderMap } from "../../../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
} from "../../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { textOfBytes } from "../../../../src/rpc/codec/byte-text.js";
import { ExtProcCodec } from "../../../../src/rpc/ext-proc/ext-proc-codec.js";
import { bodyModeOf } from "../../../../src/rpc/ext-proc/ext-proc-decoder.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { rawField } from "../../../support/raw-field.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const filterName = "envoy.filters.http.ext_proc";
const wanted = {
  requestHeaderNames: new Set([":path", ":method", "x-a", "x-b", "cookie"]),
  responseHeaderNames: new Set([":status", "x-a", "grpc-status"]),
  attributeNames: new Set(["source.address", "request.id", "a", "b"]),
  metadataPaths: new Map([
    ["a", new Set(["a", "b.a", "b.b.a", "source.address"])],
    ["b", new Set(["a"])],
  ]),
};
const codec = new ExtProcCodec(wanted);

function encode(shape: MessageInitShape<typeof ProcessingRequestSchema>): Buffer {
  return Buffer.from(toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, shape)));
}

/** What bytes say, by the general decoder and nothing of ours. */
function expected(bytes: Uint8Array): ExchangeMessage {
  let request: ProcessingRequest;
  try {
    request = fromBinary(ProcessingRequestSchema, bytes);
  } catch {
    return { kind: "malformed" };
  }
  const { request: part, protocolConfig: protocol, observabilityMode } = request;
  if (part.case === undefined) return { kind: "unknown" };
  const isRequest = part.case.startsWith("request");
  const names = isRequest ? wanted.requestHeaderNames : wanted.responseHeaderNames;
  const map = "headers" in part.value ? part.value.headers : undefined;
  const trailers = "trailers" in part.value ? part.value.trailers : undefined;
  const withoutMessage =
    "endOfStreamWithoutMessage" in part.value && part.value.endOfStreamWithoutMessage;
  const endOfStream = "endOfStream" in part.value ? part.value.endOfStream : true;
  const metadata = expectedMetadata(request);
  return {
    kind: "part",
    part: part.case,
    headers: expectedHeaders(map ?? trailers, names),
    attributes: expectedAttributes(request),
    ...("body" in part.value ? { body: Buffer.from(part.value.body) } : {}),
    ...(metadata.size === 0 ? {} : { metadata }),
    isEndOfStream: endOfStream || withoutMessage,
    isObserved: observabilityMode,
    bodyModes: protocol && {
      request: bodyModeOf(protocol.requestBodyMode),
      response: bodyModeOf(protocol.responseBodyMode),
    },
  };
}

function expectedHeaders(map: HeaderMap | undefined, names: ReadonlySet<string>) {
  const values = new Map<string, string[]>();
  for (const { key, value, rawValue } of map?.headers ?? []) {
    const text =
      rawValue.length > 0 ? textOfBytes(Buffer.from(rawValue), 0, rawValue.length) : value;
    if (names.has(key)) values.set(key, [...(values.get(key) ?? []), text]);
  }
  return new Map(
    [...values].map(([name, all]) => [name, all.join(name === "cookie" ? "; " : ",")]),
  );
}

function expectedMetadata({ metadataContext }: ProcessingRequest) {
  const found = new Map<string, Map<string, ScalarValue>>();
  for (const [namespace, paths] of wanted.metadataPaths) {
    const fields = metadataContext?.filterMetadata[namespace];
    if (fields === undefined) continue;
    const values = new Map<string, ScalarValue>();
    for (const path of paths) {
      let value: unknown = fields;
      for (const name of path.split(".")) {
        const isStruct = typeof value === "object" && value !== null && !Array.isArray(value);
        value = isStruct ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
      }
      if (isScalar(value)) values.set(path, value);
    }
    found.set(namespace, values);
  }
  return found;
}

function isScalar(value: unknown): value is ScalarValue {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function expectedAttributes(request: ProcessingRequest): Map<string, ScalarValue> {
  const attributes = new Map<string, ScalarValue>();
  for (const [name, value] of Object.entries(request.attributes[filterName] ?? {})) {
    if (!wanted.attributeNames.has(name)) continue;
    if (value !== null && typeof value !== "object") attributes.set(name, value);
  }
  return attributes;
}

const text = fc.string({ unit: anyCodePoint, maxLength: 8 });
const headerName = fc.oneof(
  fc.constantFrom(...wanted.requestHeaderNames, ...wanted.responseHeaderNames),
  fc.constantFrom("x-c", "x-envoy-expected-rq-timeout-ms", "", "X-A"),
  text,
);
const header = fc.oneof(
  fc.record({ key: headerName, rawValue: text.map((value) => Buffer.from(value)) }),
  fc.record({ key: headerName, rawValue: fc.uint8Array({ maxLength: 8 }) }),
  fc.record({ key: headerName, value: text }),
  fc.record({ key: headerName, value: text, rawValue: fc.uint8Array({ maxLength: 4 }) }),
);
const headerMap = fc.record({ headers: fc.array(header, { maxLength: 6 }) });
const jsonName = fc.oneof(
  fc.constantFrom(...wanted.attributeNames, "xds.route_name"),
  text.filter((name) => name !== "__proto__"),
);
const { json } = fc.letrec<{ json: NonNullable<unknown> | null }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(jsonName, tie("json"), { maxKeys: 3 }),
  ),
}));
const struct = fc.dictionary(jsonName, json, { maxKeys: 4 });
const attributeKey = fc.constantFrom(filterName, "envoy.filters.http.other", "");
const metadataKey = fc.oneof(fc.constantFrom("a", "b"), jsonName);
const structs = fc.dictionary(attributeKey, struct, { maxKeys: 2 });
const body = fc.record({
  body: fc.uint8Array({ maxLength: 10 }),
  endOfStream: fc.boolean(),
  endOfStreamWithoutMessage: fc.boolean(),
  grpcMessageCompressed: fc.boolean(),
  drainComplete: fc.boolean(),
});
const part = fc.oneof(
  fc.record({
    case: fc.constantFrom("requestHeaders", "responseHeaders"),
    value: fc.record(
      { headers: headerMap, attributes: structs, endOfStream: fc.boolean() },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ case: fc.constantFrom("requestBody", "responseBody"), value: body }),
  fc.record({
    case: fc.constantFrom("requestTrailers", "responseTrailers"),
    value: fc.record({ trailers: headerMap }, { requiredKeys: [] }),
  }),
);
const any = fc.record({ typeUrl: text, value: fc.uint8Array({ maxLength: 6 }) });
const shapes = fc.record(
  {
    request: part,
    attributes: structs,
    metadataContext: fc.record(
      {
        filterMetadata: fc.dictionary(metadataKey, struct, { maxKeys: 2 }),
        typedFilterMetadata: fc.dictionary(jsonName, any, { maxKeys: 2 }),
      },
      { requiredKeys: [] },
    ),
    observabilityMode: fc.boolean(),
    protocolConfig: fc.record({
      requestBodyMode: fc.nat(7),
      responseBodyMode: fc.nat(200),
      sendBodyWithoutWaitingForHeaderResponse: fc.boolean(),
    }),
    flowControlInit: fc.record({
      initialWindowDownstreamToSidestream: fc.bigInt(0n, 2n ** 63n - 1n),
    }),
    clientWindowUpdate: fc.record({
      windowIncrementSidestreamToUpstream: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    }),
  },
  { requiredKeys: [] },
);
const requests = shapes.map((shape) => encode(shape as never));

interface Edit {
  readonly kind: string;
  readonly at: number;
  readonly value: number;
}

function changed(bytes: Buffer, edits: readonly Edit[]): Buffer {
  let result = bytes;
  for (const { kind, at: place, value } of edits) {
    const at = result.length === 0 ? 0 : place % result.length;
    if (kind === "cut") result = result.subarray(0, at);
    else {
      const removed = kind === "insert" ? 0 : kind === "set" ? 1 : value;
      const added = kind === "remove" ? [] : [value];
      result = Buffer.concat([
        result.subarray(0, at),
        Buffer.from(added),
        result.subarray(at + removed),
      ]);
    }
  }
  return result;
}

function tagOf(fieldNumber: number, wireType: number): Buffer {
  const tag = fieldNumber * 8 + wireType;
  return Buffer.from(tag < 128 ? [tag] : [(tag & 127) + 128, tag >> 7]);
}

describe("ExtProcCodec.decode()", () => {
  it("decodes what Envoy may send as the general decoder does, and without it", () => {
    fc.assert(
      fc.property(requests, (bytes) => {
        expect(codec.decode(bytes)).toEqual(expected(bytes));
      }),
      propertyRuns(300),
    );
  });

  it("agrees with the general decoder on two messages in one, whose last part counts", () => {
    fc.assert(
      fc.property(requests, requests, (one, other) => {
        // The same part twice is merged by that one, and by us the last one counts.
        fc.pre(partOf(one) !== partOf(other));
        const bytes = Buffer.concat([one, other]);
        expect(codec.decode(bytes)).toEqual(expected(bytes));
      }),
      propertyRuns(200),
    );
  });

  it("answers for bytes that were changed, cut and put in", () => {
    const edit = fc.oneof(
      fc.record({ kind: fc.constant("set"), at: fc.nat(400), value: fc.nat(255) }),
      fc.record({ kind: fc.constant("insert"), at: fc.nat(400), value: fc.nat(255) }),
      fc.record({ kind: fc.constant("remove"), at: fc.nat(400), value: fc.nat(3) }),
      fc.record({ kind: fc.constant("cut"), at: fc.nat(2_000), value: fc.constant(0) }),
    );
    const counts = new Map<string, number>();
    fc.assert(
      fc.property(requests, fc.array(edit, { minLength: 1, maxLength: 3 }), (bytes, edits) => {
        const { kind } = codec.decode(changed(bytes, edits));
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
      }),
      propertyRuns(500),
    );
    // Both happen often, or this would show little.
    expect(counts.get("malformed") ?? 0).toBeGreaterThan(metCount(25));
    expect(counts.get("part") ?? 0).toBeGreaterThan(metCount(25));
  });

  it("answers for fields of any number and type, one in the other", () => {
    const { fields } = fc.letrec<{ fields: Buffer; field: Buffer }>((tie) => ({
      fields: fc.array(tie("field"), { maxLength: 4 }).map((all) => Buffer.concat(all)),
      field: fc
        .record({
          number: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 13 }) }, fc.nat(40)),
          wireType: fc.oneof({ weight: 6, arbitrary: fc.constant(2) }, fc.nat(7)),
          inner: fc.oneof(
            { maxDepth: 6, depthSize: "medium" },
            fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
            tie("fields"),
          ),
          slack: fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, fc.nat(2)),
        })
        .map(({ number, wireType, inner, slack }) => {
          const length = wireType === 2 ? [inner.length + slack] : [];
          return Buffer.concat([tagOf(number, wireType), Buffer.from(length), inner]);
        }),
    }));
    fc.assert(
      fc.property(fields, (bytes) => {
        expect(["part", "unknown", "malformed"]).toContain(codec.decode(bytes).kind);
      }),
      propertyRuns(500),
    );
  });

  it("takes a caller's bytes for what they are, wherever Envoy puts them", () => {
    const bytes = fc.uint8Array({ maxLength: 20 }).map((all) => Buffer.from(all));
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        const [first, second] = [one, other].map((value) => codec.decode(holding(value)));
        if (first?.kind !== "part" || second?.kind !== "part") throw new Error("no part");
        expect(first.headers.get(":path") === second.headers.get(":path")).toBe(one.equals(other));
        expect(first.attributes.get("request.id") === second.attributes.get("request.id")).toBe(
          one.equals(other),
        );
        expect(first.headers.get("x-a")).toBe("1");
      }),
      propertyRuns(300),
    );
  });
});

function partOf(bytes: Buffer): string | undefined {
  const message = codec.decode(bytes);
  return message.kind === "part" ? message.part : undefined;
}

/** Headers, attributes and metadata that hold these bytes, in each field where a text stands. */
function holding(value: Buffer): Buffer {
  const header = (name: string, tag: number, bytes: Buffer) =>
    rawField(0x0a, Buffer.concat([rawField(0x0a, Buffer.from(name)), rawField(tag, bytes)]));
  const headers = Buffer.concat([
    header(":path", 0x12, value),
    header("x-c", 0x12, value),
    header("x-a", 0x1a, Buffer.from("1")),
  ]);
  const attribute = mapEntry("request.id", rawField(0x1a, value));
  const struct = Buffer.concat([attribute, mapEntry("other", rawField(0x1a, value))]);
  return Buffer.concat([
    rawField(0x12, rawField(0x0a, headers)),
    rawField(0x42, mapEntry("any", struct)),
    rawField(0x4a, mapEntry(filterName, struct).subarray(2)),
  ]);
}

/** An entry of a map, as a field with number 1. */
function mapEntry(key: string, value: Buffer): Buffer {
  return rawField(0x0a, Buffer.concat([rawField(0x0a, Buffer.from(key)), rawField(0x12, value)]));
}
