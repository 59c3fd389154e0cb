import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescOneof,
  type FileRegistry,
  fromBinary,
  getOption,
  hasOption,
  type JsonObject,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { FieldRulesSchema, required, rules } from "../../gen/validate/validate_pb.js";

/** Rules of one field as JSON, such as `{uint32: {lte: 100}}`. Source: validate.FieldRules. */
export type FieldRules = JsonObject;

/** Envoy's API: its messages by name, and the rules that their fields have. */
export class EnvoyApi {
  readonly registry: FileRegistry;
  readonly #rules = new Map<DescField, FieldRules | undefined>();
  readonly #required = new Map<DescOneof, boolean>();

  /** @param image Envoy's API as a `google.protobuf.FileDescriptorSet` */
  constructor(image: Uint8Array) {
    this.registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
  }

  /** A message by its full name, such as `envoy.config.cluster.v3.Cluster`. */
  message(name: string): DescMessage | undefined {
    return this.registry.getMessage(name);
  }

  /** The rules of a field, or undefined where it has none. */
  rulesOf(field: DescField): FieldRules | undefined {
    const known = this.#rules.get(field);
    if (known !== undefined || this.#rules.has(field)) return known;
    const found = hasOption(field, rules) ? rulesAsJson(field) : undefined;
    this.#rules.set(field, found);
    return found;
  }

  /** Whether one member of it has to be there. */
  isRequired(oneof: DescOneof): boolean {
    const known = this.#required.get(oneof);
    if (known !== undefined) return known;
    const found = hasOption(oneof, required) && getOption(oneof, required);
    this.#required.set(oneof, found);
    return found;
  }
}

function rulesAsJson(field: DescField): FieldRules {
  const json = toJson(FieldRulesSchema, getOption(field, rules));
  return typeof json === "object" && json !== null && !Array.isArray(json) ? json : {};
}
