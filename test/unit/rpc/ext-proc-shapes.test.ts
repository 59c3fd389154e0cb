import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  ProcessingRequestSchema,
  ProtocolConfigurationSchema,
} from "../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import type { FieldKind, MessageShape } from "../../../src/rpc/ext-proc-scanner.js";
import { bodyModeOf, partsByField, requestShape } from "../../../src/rpc/ext-proc-shapes.js";

const fieldNumberMax = 20;

/** What a shape has at a field, and what the descriptor says, down to all that is inside. */
class Comparison {
  readonly differences: string[] = [];
  readonly messages = new Set<string>();

  message(shape: MessageShape, desc: DescMessage): void {
    if (this.messages.has(desc.typeName)) return;
    this.messages.add(desc.typeName);
    for (let number = 1; number <= fieldNumberMax; number += 1) {
      const field = desc.fields.find((one) => one.number === number);
      this.#field(`${desc.typeName} ${number}`, shape(number), field);
    }
  }

  #field(place: string, kind: FieldKind | undefined, field: DescField | undefined): void {
    if (field?.fieldKind === "map" && typeof kind === "function") {
      const value = kind(2);
      expect(field.mapKey).toBe(ScalarType.STRING);
      if (kind(1) !== "text" || kind(3) !== undefined) this.differences.push(place);
      if (typeof value === "function" && field.message) this.message(value, field.message);
      else this.differences.push(place);
    } else if (typeof kind === "function") {
      if (field?.message) this.message(kind, field.message);
      else this.differences.push(place);
    } else if (kind !== scalarKind(field)) this.differences.push(place);
  }
}

function scalarKind(field: DescField | undefined): FieldKind | undefined {
  if (field?.enum) return "varint";
  if (field?.scalar === undefined) return undefined;
  const kinds: Partial<Record<ScalarType, FieldKind>> = {
    [ScalarType.STRING]: "text",
    [ScalarType.BYTES]: "bytes",
    [ScalarType.DOUBLE]: "double",
    [ScalarType.BOOL]: "varint",
    [ScalarType.INT64]: "varint",
  };
  return kinds[field.scalar];
}

describe("requestShape()", () => {
  it("has the fields of the descriptors, in all messages that a request may hold", () => {
    const comparison = new Comparison();
    comparison.message(requestShape, ProcessingRequestSchema);
    expect(comparison.differences).toEqual([]);
    expect(comparison.messages.size).toBe(14);
  });

  it("knows every part by its number", () => {
    const members = ProcessingRequestSchema.oneofs[0]?.fields ?? [];
    expect(members.map(({ number, localName }) => [number, localName])).toEqual(
      [...partsByField.entries()].filter(([, part]) => part !== undefined),
    );
  });
});

describe("bodyModeOf()", () => {
  it("names every mode, and none of a later Envoy", () => {
    const modes = ProtocolConfigurationSchema.field.requestBodyMode.enum?.values ?? [];
    const names = modes.map(({ number, name }) => [
      name.toLowerCase().replaceAll("_", ""),
      bodyModeOf(number).toLowerCase(),
    ]);
    expect(names.length).toBe(6);
    for (const [theirs, ours] of names) expect(ours).toBe(theirs);
    expect(bodyModeOf(names.length)).toBe("unknown");
    expect(bodyModeOf(-1)).toBe("unknown");
  });
});
