import { describe, expect, it } from "vitest";
import type { HeaderFields } from "../../../../src/wire/base/http2.js";
import { areTrailersValid, checkRequest } from "../../../../src/wire/http2/request-fields.js";

type Field = readonly [name: string, value: string];

const get: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/"],
  [":authority", "Host.example:8080"],
];

function fieldsOf(...fields: readonly Field[]): HeaderFields {
  return {
    count: fields.length,
    name: (index) => fields[index]?.[0] ?? "",
    value: (index) => fields[index]?.[1] ?? "",
    get: (name) => fields.find(([other]) => other === name)?.[1],
  };
}

const malformedRows: readonly { readonly what: string; readonly fields: readonly Field[] }[] = [
  { what: "no fields", fields: [] },
  { what: "an empty name", fields: [...get, ["", "x"]] },
  ...["a b", "a\u007f", "a\u0000", "\u00e9", "A", "a:b", ":status"].map((name) => ({
    what: `the name ${JSON.stringify(name)}`,
    fields: [...get, [name, "x"] as const],
  })),
  ...["\u0000", "a\nb", "a\rb", " a", "a ", "\ta", "a\t"].map((value) => ({
    what: `the value ${JSON.stringify(value)}`,
    fields: [...get, ["x", value] as const],
  })),
  ...["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"].map(
    (name) => ({ what: name, fields: [...get, [name, "x"] as const] }),
  ),
  { what: "te: gzip", fields: [...get, ["te", "gzip"]] },
  ...["", "-1", "1.5", "0x1", "1, 1", "1234567890123456"].map((value) => ({
    what: `content-length ${JSON.stringify(value)}`,
    fields: [...get, ["content-length", value] as const],
  })),
  {
    what: "two lengths",
    fields: [...get, ["content-length", "1"], ["content-length", "2"]],
  },
  { what: "another host", fields: [...get, ["host", "other.example"]] },
  {
    what: "a path that begins with no slash",
    fields: [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", "x"],
    ],
  },
  {
    what: "the path * of another method than OPTIONS",
    fields: [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", "*"],
    ],
  },
  {
    what: "CONNECT with a path",
    fields: [
      [":method", "CONNECT"],
      [":authority", "host"],
      [":path", "/"],
    ],
  },
  { what: "CONNECT to nowhere", fields: [[":method", "CONNECT"]] },
  { what: "a pseudo-field with a line end", fields: [[":method", "GET\r\n"], ...get.slice(1)] },
];

describe("checkRequest()", () => {
  it.each(malformedRows)("refuses $what", ({ fields }) => {
    expect(checkRequest(fieldsOf(...fields))).toEqual({ kind: "malformed" });
  });

  it.each([
    { what: "a request without fields of its own", fields: get, contentLength: undefined },
    {
      what: "the same length twice",
      fields: [...get, ["content-length", "7"], ["content-length", "7"]],
      contentLength: 7,
    },
    {
      what: "te: Trailers, an empty value and bytes above 0x7f",
      fields: [...get, ["te", "Trailers"], ["x", ""], ["y", "\u00ff\tx"]],
      contentLength: undefined,
    },
    {
      what: "the host that is the authority",
      fields: [...get, ["host", "host.EXAMPLE:8080"]],
      contentLength: undefined,
    },
    {
      what: "a host without an authority",
      fields: [...get.slice(0, 3), ["host", "any"]],
      contentLength: undefined,
    },
    {
      what: "OPTIONS *",
      fields: [
        [":method", "OPTIONS"],
        [":scheme", "http"],
        [":path", "*"],
      ],
      contentLength: undefined,
    },
    {
      what: "CONNECT",
      fields: [
        [":method", "CONNECT"],
        [":authority", "host:443"],
      ],
      contentLength: undefined,
    },
  ] as { what: string; fields: Field[]; contentLength: number | undefined }[])(
    "takes $what",
    ({ fields, contentLength }) => {
      expect(checkRequest(fieldsOf(...fields))).toEqual({ kind: "valid", contentLength });
    },
  );
});

describe("areTrailersValid()", () => {
  it("takes fields, none too, and refuses pseudo-fields and fields of the connection", () => {
    expect(areTrailersValid(fieldsOf())).toBe(true);
    expect(areTrailersValid(fieldsOf(["x-checksum", "1"]))).toBe(true);
    expect(areTrailersValid(fieldsOf([":path", "/"]))).toBe(false);
    expect(areTrailersValid(fieldsOf(["upgrade", "x"]))).toBe(false);
  });
});
