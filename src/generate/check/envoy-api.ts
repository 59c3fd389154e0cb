import {
  createFileRegistry,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescOneof,
  fromBinary,
  getOption,
  hasOption,
  type JsonObject,
  toJson,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { FieldRulesSchema, required, rules } from "../../gen/validate/validate_pb.js";

/** Rules of one field as JSON, such as `{uint32: {lte: 100}}`. Source: validate.FieldRules. */
export type FieldRules = JsonObject;

/** A field with its rules. Undefined if it has none. */
export interface RuledField {
  readonly field: DescField;
  readonly rules: FieldRules | undefined;
}

/**
 * Envoy's API: its messages by name, and the rules of their fields. Each of its 726 files is read
 * when one of its messages is first requested, because reading all takes longer than most checks.
 */
export class EnvoyApi {
  readonly #images = new Map<string, Uint8Array>();
  /** File names by package. */
  readonly #packages = new Map<string, string[]>();
  readonly #files = new Map<string, DescFile>();
  readonly #messages = new Map<string, DescMessage>();
  readonly #fields = new Map<DescMessage, Map<string, DescField>>();
  readonly #ruled = new Map<DescMessage, readonly RuledField[]>();
  readonly #required = new Map<DescOneof, boolean>();

  /** @param image Envoy's API as a `google.protobuf.FileDescriptorSet` */
  constructor(image: Uint8Array) {
    const reader = new BinaryReader(image);
    while (reader.pos < reader.len) {
      reader.tag();
      const file = reader.bytes();
      const { name, packageName } = nameOf(file);
      this.#images.set(name, file);
      const names = this.#packages.get(packageName) ?? [];
      this.#packages.set(packageName, [...names, name]);
    }
  }

  /** Returns a message by its full name, such as `envoy.config.cluster.v3.Cluster`. */
  message(name: string): DescMessage | undefined {
    // Nested messages have more than one name after the package.
    for (let end = name.length; end > 0 && !this.#messages.has(name); ) {
      end = name.lastIndexOf(".", end - 1);
      for (const file of this.#packages.get(name.slice(0, end)) ?? []) this.#file(file);
    }
    return this.#messages.get(name);
  }

  /** Returns a field of a message by either form of its name. */
  field(desc: DescMessage, name: string): DescField | undefined {
    let fields = this.#fields.get(desc);
    if (fields === undefined) {
      fields = new Map();
      for (const one of desc.fields) fields.set(one.name, one).set(one.jsonName, one);
      this.#fields.set(desc, fields);
    }
    return fields.get(name);
  }

  /** Returns the fields of a message with their rules. */
  ruledFields(desc: DescMessage): readonly RuledField[] {
    const known = this.#ruled.get(desc);
    if (known !== undefined) return known;
    const found = desc.fields.map((field) => {
      return { field, rules: hasOption(field, rules) ? rulesAsJson(field) : undefined };
    });
    this.#ruled.set(desc, found);
    return found;
  }

  /** Reports whether one member of a oneof must be set. */
  isRequired(oneof: DescOneof): boolean {
    const known = this.#required.get(oneof);
    if (known !== undefined) return known;
    const found = hasOption(oneof, required) && getOption(oneof, required);
    this.#required.set(oneof, found);
    return found;
  }

  /** Reads a file, and first those that it imports. */
  #file(name: string): DescFile | undefined {
    const known = this.#files.get(name);
    const image = this.#images.get(name);
    if (known !== undefined || image === undefined) return known;
    const proto = fromBinary(FileDescriptorProtoSchema, image);
    // The library follows imports along all paths, of which there are many, so these are removed.
    const registry = createFileRegistry(proto, (path) => {
      const imported = this.#file(path);
      return imported && { ...imported, dependencies: [] };
    });
    const file = registry.getFile(name);
    if (file === undefined) return undefined;
    this.#files.set(name, file);
    for (const type of nestedTypes(file)) {
      if (type.kind === "message") this.#messages.set(type.typeName, type);
    }
    return file;
  }
}

/** Reads the name and the package of a `FileDescriptorProto`, its first two fields. */
function nameOf(file: Uint8Array): { readonly name: string; readonly packageName: string } {
  const reader = new BinaryReader(file);
  reader.tag();
  const name = reader.string();
  reader.tag();
  return { name, packageName: reader.string() };
}

function rulesAsJson(field: DescField): FieldRules {
  const json = toJson(FieldRulesSchema, getOption(field, rules));
  return typeof json === "object" && json !== null && !Array.isArray(json) ? json : {};
}
