import {
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** The files of some services and all that they import, by what is in them. */
export class ReflectionIndex {
  readonly serviceNames: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  /** By the extended type's name, then by number. */
  readonly #extensions = new Map<string, Map<number, DescFile>>();
  readonly #encoded = new Map<string, Uint8Array>();

  constructor(services: readonly DescService[]) {
    this.serviceNames = services.map(({ typeName }) => typeName);
    for (const { file } of services) this.#addFile(file);
  }

  /** A file and all that it imports, serialized; undefined where nobody has it. */
  byFileName(name: string): readonly Uint8Array[] | undefined {
    return this.#withImports(this.#files.get(name));
  }

  /**
   * The file that defines a name, with all that it imports. A name is a full one, of anything that
   * has one: a service, method, message, field, oneof, enum, enum value or extension.
   */
  bySymbol(name: string): readonly Uint8Array[] | undefined {
    return this.#withImports(this.#symbols.get(name));
  }

  /** The file that defines an extension of a message, with all that it imports. */
  byExtension(typeName: string, number: number): readonly Uint8Array[] | undefined {
    return this.#withImports(this.#extensions.get(typeName)?.get(number));
  }

  /** The numbers of a message's extensions, ascending; undefined for no message of ours. */
  extensionNumbers(typeName: string): readonly number[] | undefined {
    const numbers = this.#extensions.get(typeName)?.keys() ?? [];
    const sorted = [...numbers].sort((a, b) => a - b);
    return sorted.length > 0 || this.#symbols.has(typeName) ? sorted : undefined;
  }

  #withImports(file: DescFile | undefined): readonly Uint8Array[] | undefined {
    if (file === undefined) return undefined;
    const needed = new Set<DescFile>();
    collect(file, needed);
    return [...needed].map((one) => this.#encode(one));
  }

  #encode(file: DescFile): Uint8Array {
    const known = this.#encoded.get(file.proto.name);
    if (known !== undefined) return known;
    const bytes = toBinary(FileDescriptorProtoSchema, file.proto);
    this.#encoded.set(file.proto.name, bytes);
    return bytes;
  }

  #addFile(file: DescFile): void {
    // A descriptor's own name is without `.proto`.
    if (this.#files.has(file.proto.name)) return;
    this.#files.set(file.proto.name, file);
    for (const dependency of file.dependencies) this.#addFile(dependency);
    for (const service of file.services) {
      this.#symbols.set(service.typeName, file);
      for (const { name } of service.methods)
        this.#symbols.set(`${service.typeName}.${name}`, file);
    }
    for (const message of file.messages) this.#addMessage(message, file);
    for (const one of file.enums) this.#addEnum(one, file);
    for (const extension of file.extensions) this.#addExtension(extension, file);
  }

  #addMessage(message: DescMessage, file: DescFile): void {
    const { typeName } = message;
    this.#symbols.set(typeName, file);
    for (const { name } of [...message.fields, ...message.oneofs]) {
      this.#symbols.set(`${typeName}.${name}`, file);
    }
    for (const nested of message.nestedMessages) this.#addMessage(nested, file);
    for (const nested of message.nestedEnums) this.#addEnum(nested, file);
    for (const nested of message.nestedExtensions) this.#addExtension(nested, file);
  }

  #addEnum(one: DescEnum, file: DescFile): void {
    this.#symbols.set(one.typeName, file);
    // Values stand beside their enum, not in it, as in C++. Source: protoc's scoping rules.
    const scope = one.typeName.slice(0, one.typeName.lastIndexOf(".") + 1);
    for (const { name } of one.values) this.#symbols.set(scope + name, file);
  }

  #addExtension({ typeName, extendee, number }: DescExtension, file: DescFile): void {
    this.#symbols.set(typeName, file);
    const numbers = this.#extensions.get(extendee.typeName) ?? new Map<number, DescFile>();
    this.#extensions.set(extendee.typeName, numbers.set(number, file));
  }
}

function collect(file: DescFile, into: Set<DescFile>): void {
  if (into.has(file)) return;
  into.add(file);
  for (const dependency of file.dependencies) collect(dependency, into);
}
