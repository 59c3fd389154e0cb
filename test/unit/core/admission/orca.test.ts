import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  formatOrcaReport,
  type OrcaReport,
  orcaCharactersMax,
  orcaRatioMax,
  parseOrcaReport,
} from "../../../../src/core/admission/orca.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const nothing: OrcaReport = {
  cpuRatio: undefined,
  memoryRatio: undefined,
  applicationRatio: undefined,
};

/** The fields of OrcaLoadReport that are no maps, and a text as one that it does not know. */
const fields = [
  { name: "cpu_utilization", number: 1, type: Type.DOUBLE },
  { name: "mem_utilization", number: 2, type: Type.DOUBLE },
  { name: "rps", number: 3, type: Type.UINT64 },
  { name: "rps_fractional", number: 6, type: Type.DOUBLE },
  { name: "application_utilization", number: 9, type: Type.DOUBLE },
  { name: "unknown_text", number: 100, type: Type.STRING },
  { name: "unknown_number", number: 2_000, type: Type.FIXED32 },
];

/** The message as protobuf-es has it: the image of Envoy's API leaves it out. */
function orcaSchema(): DescMessage {
  const field = fields.map((one) => ({ ...one, label: Label.OPTIONAL }));
  const file = create(FileDescriptorProtoSchema, {
    name: "orca.proto",
    syntax: "proto3",
    messageType: [{ name: "OrcaLoadReport", field }],
  });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
  const schema = registry.getMessage("OrcaLoadReport");
  if (schema === undefined) throw new Error("it was just made");
  return schema;
}

describe("parseOrcaReport()", () => {
  it.each([
    {
      story: "text with equals signs",
      header: "TEXT cpu_utilization=0.7,mem_utilization=0.8,application_utilization=1.2",
      is: { cpuRatio: 0.7, memoryRatio: 0.8, applicationRatio: 1.2 },
    },
    {
      story: "text with colons and spaces",
      header: "TEXT cpu_utilization: 0.7 , named_metrics.kv:3",
      is: { ...nothing, cpuRatio: 0.7 },
    },
    {
      story: "text of older Envoys",
      header: "cpu_utilization:7e-1",
      is: { ...nothing, cpuRatio: 0.7 },
    },
    {
      story: "JSON",
      header: 'JSON {"cpu_utilization": 0.3, "mem_utilization": 0.8, "named_metrics": {"kv": 0.1}}',
      is: { ...nothing, cpuRatio: 0.3, memoryRatio: 0.8 },
    },
    {
      story: "JSON with protobuf's other names and numbers in quotes",
      header: 'JSON {"cpuUtilization": "0.3", "applicationUtilization": 2}',
      is: { ...nothing, cpuRatio: 0.3, applicationRatio: 2 },
    },
    { story: "an empty report", header: "JSON {}", is: nothing },
    { story: "an empty message", header: "BIN ", is: undefined },
    { story: "zero", header: "TEXT cpu_utilization=0", is: nothing },
    { story: "a negative ratio", header: "TEXT cpu_utilization=-0.5", is: nothing },
    {
      story: "the largest that is believed",
      header: `TEXT cpu_utilization=${orcaRatioMax}`,
      is: { ...nothing, cpuRatio: orcaRatioMax },
    },
    {
      story: "what no backend can use",
      header: `TEXT cpu_utilization=${orcaRatioMax + 1}`,
      is: nothing,
    },
    { story: "infinity in JSON", header: 'JSON {"cpu_utilization": 1e999}', is: nothing },
    { story: "no number in JSON", header: 'JSON {"cpu_utilization": [1]}', is: nothing },
  ])("reads $story", ({ header, is }) => {
    expect(parseOrcaReport(header)).toEqual(is);
  });

  it.each([
    "",
    "TEXT",
    "TEXT ",
    "TEXT cpu_utilization",
    "TEXT cpu_utilization=",
    "TEXT =0.5",
    "TEXT cpu_utilization=0x1",
    "TEXT cpu_utilization=NaN",
    "TEXT cpu_utilization=Infinity",
    "TEXT cpu_utilization=0.1,cpu_utilization=0.2",
    "TEXT cpu_utilization=0.1,,mem_utilization=0.2",
    "JSON",
    "JSON {",
    "JSON null",
    "JSON 7",
    "JSON [0.5]",
    'JSON "cpu"',
    "BIN !",
    "BIN CQ",
    "XML <cpu>1</cpu>",
    "cpu",
  ])("knows no report in %j", (header) => {
    expect(parseOrcaReport(header)).toBeUndefined();
  });

  it("does not read more than there may be", () => {
    const [head, tail] = ["TEXT cpu_utilization=0.5,named_metrics.", "=1"];
    const full = head + "x".repeat(orcaCharactersMax - head.length - tail.length) + tail;
    expect(parseOrcaReport(full)).toEqual({ ...nothing, cpuRatio: 0.5 });
    expect(parseOrcaReport(`${full} `)).toBeUndefined();
  });

  it("never throws, whatever a backend sends", () => {
    const form = fc.constantFrom("", "TEXT ", "JSON ", "BIN ");
    const base64 = fc
      .uint8Array({ maxLength: 40 })
      .map((bytes) => Buffer.from(bytes).toString("base64"));
    const rest = fc.oneof(fc.string({ unit: anyCodePoint }), fc.json(), base64);
    fc.assert(
      fc.property(form, rest, (word, text) => {
        const report = parseOrcaReport(word + text);
        for (const ratio of Object.values(report ?? {})) {
          if (ratio !== undefined) expect(ratio > 0 && ratio <= 100).toBe(true);
        }
      }),
      propertyRuns(300),
    );
  });
});

describe("parseOrcaReport(), binary", () => {
  let schema: DescMessage;

  beforeAll(() => {
    schema = orcaSchema();
  });

  const header = (bytes: Uint8Array): string => `BIN ${Buffer.from(bytes).toString("base64")}`;

  /** What protobuf-es reads of the three fields. */
  const expected = (message: Message): OrcaReport => {
    const read = (name: string): number | undefined => {
      const field = schema.fields.find((one) => one.name === name);
      const value = field && reflect(schema, message).get(field);
      return typeof value === "number" && value > 0 && value <= 100 ? value : undefined;
    };
    return {
      cpuRatio: read("cpu_utilization"),
      memoryRatio: read("mem_utilization"),
      applicationRatio: read("application_utilization"),
    };
  };

  /** Bytes of a report with any numbers in it. */
  const ratio = fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.double());
  const written = fc
    .tuple(ratio, ratio, fc.bigInt(0n, 2n ** 64n - 1n), ratio, ratio, fc.string(), fc.nat())
    .map((values) => {
      const message = create(schema);
      const writer = reflect(schema, message);
      schema.fields.forEach((field, i) => {
        const value = values[i];
        if (value !== undefined) writer.set(field, value);
      });
      return toBinary(schema, message);
    });

  it("reads what protobuf-es writes, and of two values of a field the later one", () => {
    fc.assert(
      fc.property(written, written, (first, second) => {
        const bytes = Uint8Array.from([...first, ...second]);
        expect(parseOrcaReport(header(bytes))).toEqual(expected(fromBinary(schema, bytes)));
      }),
      propertyRuns(100),
    );
  });

  it("refuses what is cut off where protobuf-es does", () => {
    let refusedCount = 0;
    fc.assert(
      fc.property(written, fc.nat(50), (whole, length) => {
        const bytes = whole.subarray(0, Math.max(1, length));
        const mine = parseOrcaReport(header(bytes));
        if (mine === undefined) {
          refusedCount += 1;
          expect(() => fromBinary(schema, bytes)).toThrow();
        } else expect(mine).toEqual(expected(fromBinary(schema, bytes)));
      }),
      propertyRuns(200),
    );
    expect(refusedCount).toBeGreaterThan(metCount(100));
  });

  it.each([
    { story: "a known field of another type", bytes: [0x08, 0x05], is: nothing },
    { story: "a group", bytes: [0x0b, 0x0c], is: undefined },
    { story: "field number 0", bytes: [0x01, 0, 0, 0, 0, 0, 0, 0, 0], is: undefined },
    { story: "a length that passes the end", bytes: [0x22, 0x7f, 0x00], is: undefined },
    { story: "a length of 2^63", bytes: [0x22, ...Array(9).fill(0xff), 0x01], is: undefined },
    { story: "a varint without end", bytes: [0x18, ...Array(11).fill(0xff)], is: undefined },
    { story: "a tag above 32 bits", bytes: [0x80, 0x80, 0x80, 0x80, 0x40, 0x00], is: undefined },
    {
      story: "a length of 2^32 + 1",
      bytes: [0x22, 0x81, 0x80, 0x80, 0x80, 0x10, 0],
      is: undefined,
    },
    { story: "a varint of 11 bytes", bytes: [0x18, ...Array(10).fill(0x80), 0], is: undefined },
    { story: "a varint of 10 bytes", bytes: [0x18, ...Array(9).fill(0x80), 0], is: nothing },
  ])("takes $story for $is", ({ bytes, is }) => {
    expect(parseOrcaReport(header(Uint8Array.from(bytes)))).toEqual(is);
  });
});

describe("formatOrcaReport()", () => {
  it("makes what is read as it was, rounded to thousandths", () => {
    const figures = { applicationRatio: 0.12345, cpuRatio: 0.5, requestsPerSecond: 12.5 };
    const report = formatOrcaReport({
      ...figures,
      memoryRatio: undefined,
      named: { in_flight: 3 },
    });
    expect(report).toBe(
      "TEXT application_utilization=0.123, cpu_utilization=0.5, rps_fractional=12.5, " +
        "named_metrics.in_flight=3",
    );
    const read = { applicationRatio: 0.123, cpuRatio: 0.5, memoryRatio: undefined };
    expect(parseOrcaReport(report)).toEqual(read);
  });

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "leaves %d out",
    (figure) => {
      const report = formatOrcaReport({
        applicationRatio: figure,
        cpuRatio: figure,
        requestsPerSecond: 1,
        named: { in_flight: figure },
      });
      expect(report).toBe("TEXT rps_fractional=1");
    },
  );
});
