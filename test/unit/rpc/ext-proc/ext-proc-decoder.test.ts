import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type HttpHeadersSchema,
  ProcessingRequestSchema,
} from "../../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { ExtProcCodec } from "../../../../src/rpc/ext-proc/ext-proc-codec.js";
import { decodeExchange } from "../../../../src/rpc/ext-proc/ext-proc-decoder.js";
import { WantedNames } from "../../../../src/rpc/ext-proc/ext-proc-names.js";
import { rawField } from "../../../support/raw-field.js";

const filterName = "envoy.filters.http.ext_proc";
const names = {
  requestHeaderNames: new Set([":path", "x-a", "cookie"]),
  responseHeaderNames: new Set([":status", "grpc-status"]),
  attributeNames: new Set(["source.address", "request.size", "connection.mtls"]),
  metadataPaths: new Map<string, ReadonlySet<string>>(),
};
const compiled = {
  requestHeaders: new WantedNames(names.requestHeaderNames),
  responseHeaders: new WantedNames(names.responseHeaderNames),
  attributes: new WantedNames(names.attributeNames),
  attributesKey: new WantedNames(new Set([filterName])),
  metadataKeys: new WantedNames(new Set()),
  metadata: new Map(),
};

type Shape = MessageInitShape<typeof ProcessingRequestSchema>;
type HeadersShape = MessageInitShape<typeof HttpHeadersSchema>;

function encode(shape: Shape): Buffer {
  return Buffer.from(toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, shape)));
}

function raw(fields: Readonly<Record<string, string>>): HeadersShape["headers"] & object {
  const headers = Object.entries(fields).map(([key, value]) => ({
    key,
    rawValue: Buffer.from(value),
  }));
  return { headers };
}

function read(bytes: Buffer) {
  return decodeExchange(bytes, compiled);
}

/** A request whose one header has this name and these bytes for its value. */
function withHeader(key: string, ...values: readonly Uint8Array[]): Buffer {
  const headers = { headers: values.map((rawValue) => ({ key, rawValue })) };
  return encode({ request: { case: "requestHeaders", value: { headers } } });
}

function headerIn(bytes: Buffer, name: string): string | undefined {
  const message = read(bytes);
  return message?.kind === "part" ? message.headers.get(name) : undefined;
}

/** A body's message, with values of one attribute one after the other. */
function attributesOf(values: readonly (readonly number[])[]): Buffer {
  const field = (tag: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const name = field(0x0a, Buffer.from("source.address"));
  const fields = values.map((value) =>
    field(0x0a, Buffer.concat([name, field(0x12, Buffer.from(value))])),
  );
  const entry = Buffer.concat([
    field(0x0a, Buffer.from(filterName)),
    field(0x12, Buffer.concat(fields)),
  ]);
  return Buffer.concat([Buffer.from([0x22, 0]), field(0x4a, entry)]);
}

describe("decodeExchange()", () => {
  it("reads the first message of an exchange as Envoy sends it", () => {
    const bytes = encode({
      request: {
        case: "requestHeaders",
        value: {
          headers: raw({ ":authority": "shop", ":path": "/cart?a=1", "x-b": "b", "x-a": "1" }),
          endOfStream: true,
        },
      },
      metadataContext: {},
      attributes: {
        [filterName]: {
          "source.address": "10.0.0.7:4711",
          "request.size": 12.5,
          "connection.mtls": true,
          "xds.route_name": "r",
        },
      },
      protocolConfig: { responseBodyMode: 4 },
    });
    expect(read(bytes)).toEqual({
      kind: "part",
      part: "requestHeaders",
      headers: new Map([
        [":path", "/cart?a=1"],
        ["x-a", "1"],
      ]),
      attributes: new Map<string, unknown>([
        ["source.address", "10.0.0.7:4711"],
        ["request.size", 12.5],
        ["connection.mtls", true],
      ]),
      isEndOfStream: true,
      isObserved: false,
      bodyModes: { request: "none", response: "fullDuplexStreamed" },
    });
  });

  it.each([
    { part: "requestHeaders", value: { headers: raw({ "x-a": "1", ":status": "9" }) } },
    { part: "requestTrailers", value: { trailers: raw({ "x-a": "1", ":status": "9" }) } },
  ] as const)("looks for names of requests in $part", ({ part, value }) => {
    const message = read(encode({ request: { case: part, value } as Shape["request"] & object }));
    expect(message).toMatchObject({ part, headers: new Map([["x-a", "1"]]) });
  });

  it.each([
    { part: "responseHeaders", value: { headers: raw({ "x-a": "1", ":status": "200" }) } },
    { part: "responseTrailers", value: { trailers: raw({ "x-a": "1", ":status": "200" }) } },
  ] as const)("looks for names of responses in $part", ({ part, value }) => {
    const message = read(encode({ request: { case: part, value } as Shape["request"] & object }));
    expect(message).toMatchObject({ part, headers: new Map([[":status", "200"]]) });
  });

  it.each([
    { value: {}, isEndOfStream: false },
    { value: { body: Buffer.from("b") }, isEndOfStream: false },
    { value: { endOfStream: true }, isEndOfStream: true },
    { value: { endOfStreamWithoutMessage: true }, isEndOfStream: true },
  ])("sees in a body whether it is the last piece: $isEndOfStream", (row) => {
    const bytes = encode({ request: { case: "responseBody", value: row.value } });
    expect(read(bytes)).toMatchObject({ part: "responseBody", isEndOfStream: row.isEndOfStream });
  });

  it("says that trailers end a stream, and that Envoy only observes", () => {
    const request: Shape["request"] & object = { case: "responseTrailers", value: {} };
    expect(read(encode({ request, observabilityMode: true }))).toMatchObject({
      isEndOfStream: true,
      isObserved: true,
      bodyModes: undefined,
    });
  });

  it("says that a message without a part is unknown, whatever a later Envoy puts in", () => {
    const later = Buffer.from([0xf2, 0x01, 0x02, 0x08, 0x01]);
    expect(read(Buffer.alloc(0))).toEqual({ kind: "unknown" });
    expect(read(later)).toEqual({ kind: "unknown" });
    const request: Shape["request"] & object = { case: "requestBody", value: {} };
    expect(read(Buffer.concat([later, encode({ request })]))).toMatchObject({ kind: "part" });
  });

  it("joins a header that comes again as Envoy does", () => {
    const values = [Buffer.from("a=1"), Buffer.from("b=2"), Buffer.from("c=3")];
    expect(headerIn(withHeader("x-a", ...values), "x-a")).toBe("a=1,b=2,c=3");
    expect(headerIn(withHeader("cookie", ...values), "cookie")).toBe("a=1; b=2; c=3");
  });

  it.each([
    { story: "UTF-8 as such", bytes: [0xc3, 0xa9], text: "é" },
    { story: "what is not UTF-8 byte by byte", bytes: [0x61, 0xe9, 0xff], text: "a\udce9\udcff" },
    { story: "a U+FFFD that was sent as such", bytes: [0xef, 0xbf, 0xbd], text: "\ufffd" },
    { story: "a mark of byte order as a letter", bytes: [0xef, 0xbb, 0xbf, 0x61], text: "\ufeffa" },
    {
      story: "a half of a letter byte by byte",
      bytes: [0xed, 0xa0, 0x80],
      text: "\udced\udca0\udc80",
    },
  ])("reads $story in a header's value", ({ bytes, text }) => {
    expect(headerIn(withHeader("x-a", Uint8Array.from(bytes)), "x-a")).toBe(text);
  });

  it("takes the raw value of a header before the other one", () => {
    const of = (header: { readonly value: string; readonly rawValue?: Uint8Array }) =>
      headerIn(
        encode({
          request: {
            case: "requestHeaders",
            value: { headers: { headers: [{ key: "x-a", ...header }] } },
          },
        }),
        "x-a",
      );
    expect(of({ value: "plain" })).toBe("plain");
    expect(of({ value: "plain", rawValue: Buffer.from("raw") })).toBe("raw");
    expect(of({ value: "" })).toBe("");
  });

  it("finds names by their very bytes: what is not lower case is another name", () => {
    expect(headerIn(withHeader("X-A", Buffer.from("1")), "x-a")).toBeUndefined();
    expect(headerIn(withHeader("x-ab", Buffer.from("1")), "x-a")).toBeUndefined();
  });

  it("lets only Envoy's own entry of attributes count", () => {
    const attributes = { other: { "source.address": "1" } };
    const request: Shape["request"] & object = { case: "requestBody", value: {} };
    expect(read(encode({ request, attributes }))).toMatchObject({ attributes: new Map() });
  });

  it.each([
    {
      story: "a text, then null",
      kinds: [
        [0x1a, 1, 0x61],
        [0x08, 0],
      ],
      value: undefined,
    },
    {
      story: "null, then a text",
      kinds: [
        [0x08, 0],
        [0x1a, 1, 0x61],
      ],
      value: "a",
    },
    {
      story: "a text, then a list",
      kinds: [
        [0x1a, 1, 0x61],
        [0x32, 0],
      ],
      value: undefined,
    },
    {
      story: "a text, then a bool",
      kinds: [
        [0x1a, 1, 0x61],
        [0x20, 1],
      ],
      value: true,
    },
    {
      story: "a text, then what nobody knows",
      kinds: [
        [0x1a, 1, 0x61],
        [0x78, 1],
      ],
      value: "a",
    },
  ])("lets the last count of an attribute that is $story", ({ kinds, value }) => {
    const inOneValue = attributesOf([kinds.flat()]);
    // A field that nobody knows is a value of nothing, where it stands alone.
    const isKnown = kinds.every(([tag]) => tag !== 0x78);
    const inTwo = isKnown ? attributesOf(kinds) : inOneValue;
    const wanted = new Map(value === undefined ? [] : [["source.address", value]]);
    expect(read(inOneValue)).toMatchObject({ attributes: wanted });
    expect(read(inTwo)).toMatchObject({ attributes: wanted });
  });

  it("lets the last count of two entries of attributes, whole", () => {
    const text = attributesOf([[0x1a, 1, 0x61]]);
    expect(read(Buffer.concat([text, attributesOf([]).subarray(2)]))).toMatchObject({
      attributes: new Map(),
    });
  });

  it("keeps what it says when the bytes are used for something else", () => {
    const bytes = withHeader("x-a", Buffer.from("a value of some length, so that it is no number"));
    const message = read(bytes);
    const before = structuredClone(message);
    bytes.fill(0x7a);
    expect(message).toEqual(before);
  });
});

describe("decodeExchange(), where something is not as Envoy writes it,", () => {
  const codec = new ExtProcCodec(names);
  const requestHeaders = withHeader("x-a", Buffer.from("1"));
  const responseHeaders = encode({ request: { case: "responseHeaders", value: {} } });
  const emptyAttributes = (entry: readonly number[]) =>
    Buffer.from([0x22, 0, 0x4a, entry.length, ...entry]);

  it.each([
    {
      story: "two parts",
      bytes: Buffer.concat([requestHeaders, responseHeaders]),
      outcome: { part: "responseHeaders", headers: new Map() },
    },
    {
      story: "one part in two pieces",
      bytes: Buffer.concat([requestHeaders, requestHeaders]),
      outcome: { part: "requestHeaders", headers: new Map([["x-a", "1"]]) },
    },
    {
      story: "a group that nobody knows",
      bytes: Buffer.concat([requestHeaders, Buffer.from([0x7b, 0x08, 0x01, 0x7c])]),
      outcome: { kind: "malformed" },
    },
    {
      story: "a map's entry without a key",
      bytes: emptyAttributes([0x12, 0]),
      outcome: { part: "requestBody" },
    },
    {
      story: "a map's value before its key",
      bytes: emptyAttributes([0x12, 0, 0x0a, 0]),
      outcome: { part: "requestBody" },
    },
    {
      story: "a map's entry that goes on after its value",
      bytes: emptyAttributes([0x0a, 0, 0x12, 0, 0x0a, 0]),
      outcome: { part: "requestBody" },
    },
    {
      story: "a field that ends after its message",
      bytes: Buffer.from([0x22, 2, 0x0a, 1, 0x61]),
      outcome: { kind: "malformed" },
    },
    {
      story: "a bool in two bytes",
      bytes: Buffer.from([0x22, 3, 0x10, 0x81, 0]),
      outcome: { isEndOfStream: true },
    },
    {
      story: "a mode below 0",
      bytes: Buffer.from([0x22, 0, 0x5a, 11, 0x08, ...Array<number>(9).fill(0xff), 1]),
      outcome: { bodyModes: { request: "unknown", response: "none" } },
    },
    {
      story: "a tag in more bytes than it needs",
      bytes: Buffer.from([0xa2, 0, 0]),
      outcome: { part: "requestBody" },
    },
    {
      story: "field number 0",
      bytes: Buffer.from([0x02, 0]),
      outcome: { kind: "malformed" },
    },
    {
      story: "an end within a length",
      bytes: Buffer.from([0x12, 0x80]),
      outcome: { kind: "malformed" },
    },
    {
      story: "a name that is not UTF-8",
      bytes: Buffer.from([0x12, 7, 0x0a, 5, 0x0a, 3, 0x0a, 1, 0xff]),
      outcome: { part: "requestHeaders", headers: new Map() },
    },
  ])("answers for $story", ({ bytes, outcome }) => {
    expect(codec.decode(bytes)).toMatchObject(outcome);
  });

  it("walks over messages in each other, however deep", () => {
    let inside: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 10_000; depth += 1) inside = rawField(0x0a, inside);
    const bytes = Buffer.concat([Buffer.of(0x22, 0), rawField(0x42, inside)]);
    expect(codec.decode(bytes)).toMatchObject({ part: "requestBody" });
  });

  it("never throws, and takes the names of the moment", () => {
    let requestHeaderNames: ReadonlySet<string> = new Set(["x-a"]);
    const changing = new ExtProcCodec({
      ...names,
      get requestHeaderNames() {
        return requestHeaderNames;
      },
    });
    expect(changing.decode(requestHeaders)).toMatchObject({ headers: new Map([["x-a", "1"]]) });
    requestHeaderNames = new Set(["x-z"]);
    expect(changing.decode(requestHeaders)).toMatchObject({ headers: new Map() });
    expect(changing.decode(Buffer.from([0xff]))).toEqual({ kind: "malformed" });
  });
});
