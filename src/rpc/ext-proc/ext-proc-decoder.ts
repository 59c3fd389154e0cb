import { WireType } from "@bufbuild/protobuf/wire";
import type {
  BodyMode,
  BodyModes,
  ExchangeMessage,
  ExchangePart,
  ScalarValue,
} from "../../core/admission/exchange-messages.js";
import { asBuffer, FieldReader, fieldTag } from "../codec/field-reader.js";
import type { WantedNames } from "./ext-proc-names.js";

/** The parts of an exchange that decisions need. */
export interface WantedParts {
  /** Names of request headers and trailers. */
  readonly requestHeaders: WantedNames;
  /** Names of response headers and trailers. */
  readonly responseHeaders: WantedNames;
  readonly attributes: WantedNames;
  /** The key of the entry that contains Envoy's own attributes. */
  readonly attributesKey: WantedNames;
  /** Namespaces of dynamic metadata. */
  readonly metadataKeys: WantedNames;
  /** The wanted paths of each namespace. */
  readonly metadata: ReadonlyMap<string, WantedPaths>;
}

/** Names to read in a Struct, and the paths to read inside their values. */
export interface WantedPaths {
  readonly names: WantedNames;
  /** By name: its path if its own value is wanted, and the wanted paths inside its value. */
  readonly inner: ReadonlyMap<
    string,
    { readonly path: string | undefined; readonly paths: WantedPaths | undefined }
  >;
}

/**
 * Decodes the parts of a ProcessingRequest that decisions need. Every request through ext_proc has
 * this cost, and the general decoder creates objects for everything, read or not. Unread parts are
 * skipped unchecked: they contain callers' bytes, which must not make a message malformed.
 *
 * If a message has two parts, the last one counts. Apart from that, property tests compare the
 * result with the general decoder.
 *
 * Source: envoy/service/ext_proc/v3/external_processor.proto.
 *
 * @throws Error for bytes that are not a message
 */
export function decodeExchange(bytes: Uint8Array, wanted: WantedParts): ExchangeMessage {
  return new ExchangeDecoder(bytes, wanted).read();
}

const { Varint, Bit64, LengthDelimited } = WireType;

/** Source: ProcessingRequest. */
const requestTags = {
  metadataContext: fieldTag(8, LengthDelimited),
  attributes: fieldTag(9, LengthDelimited),
  observabilityMode: fieldTag(10, Varint),
  protocolConfig: fieldTag(11, LengthDelimited),
} as const;

/** The parts of an exchange by their field number in a ProcessingRequest. */
const partsByField: readonly (ExchangePart | undefined)[] = [
  undefined,
  undefined,
  "requestHeaders",
  "responseHeaders",
  "requestBody",
  "responseBody",
  "requestTrailers",
  "responseTrailers",
];

/** Source: HttpHeaders, HttpTrailers, HeaderMap: each has its headers as its first field. */
const headersTag = fieldTag(1, LengthDelimited);

const endOfStreamTag = fieldTag(3, Varint);

/** Source: HttpBody. */
const bodyTags = {
  body: fieldTag(1, LengthDelimited),
  endOfStream: fieldTag(2, Varint),
  endOfStreamWithoutMessage: fieldTag(3, Varint),
} as const;

/** Source: HeaderValue. */
const headerTags = {
  key: fieldTag(1, LengthDelimited),
  value: fieldTag(2, LengthDelimited),
  rawValue: fieldTag(3, LengthDelimited),
} as const;

/** Source: ProtocolConfiguration. */
const protocolTags = {
  requestBodyMode: fieldTag(1, Varint),
  responseBodyMode: fieldTag(2, Varint),
};

/** Source: protobuf.dev/programming-guides/encoding, "Maps". */
const mapTags = { key: fieldTag(1, LengthDelimited), value: fieldTag(2, LengthDelimited) } as const;

/** Source: envoy.config.core.v3.Metadata. */
const filterMetadataTag = fieldTag(1, LengthDelimited);

/** Maximum number of bytes that are read of a text in dynamic metadata. */
const metadataTextBytesMax = 16_384;

/** Source: google.protobuf.Struct. */
const structFieldsTag = fieldTag(1, LengthDelimited);

/** Source: google.protobuf.Value. */
const valueTags = {
  null: fieldTag(1, Varint),
  number: fieldTag(2, Bit64),
  string: fieldTag(3, LengthDelimited),
  bool: fieldTag(4, Varint),
  struct: fieldTag(5, LengthDelimited),
  list: fieldTag(6, LengthDelimited),
} as const;

/** Returns the mode of a ProcessingMode.BodySendMode number. "unknown" for a later Envoy's. */
export function bodyModeOf(modeNumber: number): BodyMode {
  return bodyModesByNumber[modeNumber] ?? "unknown";
}

const bodyModesByNumber: readonly BodyMode[] = [
  "none",
  "streamed",
  "buffered",
  "bufferedPartial",
  "fullDuplexStreamed",
  "grpc",
];

/** Bodies have no headers, and most messages no attributes. */
const nothing: ReadonlyMap<string, never> = new Map<string, never>();

/** Decodes one message. */
class ExchangeDecoder {
  readonly #bytes: Buffer;
  readonly #reader: FieldReader;
  readonly #wanted: WantedParts;
  #part: ExchangePart | undefined;
  #headers: Map<string, string> | undefined;
  #attributes: Map<string, ScalarValue> | undefined;
  #body: Uint8Array | undefined;
  #metadata: Map<string, Map<string, ScalarValue>> | undefined;
  #isEndOfStream = false;
  #isObserved = false;
  #bodyModes: BodyModes | undefined;

  constructor(bytes: Uint8Array, wanted: WantedParts) {
    this.#bytes = asBuffer(bytes);
    this.#reader = new FieldReader(bytes);
    this.#wanted = wanted;
  }

  read(): ExchangeMessage {
    const reader = this.#reader;
    while (reader.next()) {
      const part =
        (reader.tag & 7) === LengthDelimited ? partsByField[reader.tag >>> 3] : undefined;
      if (part !== undefined) this.#onPart(part);
      else if (reader.tag === requestTags.attributes) this.#attributesEntry();
      else if (reader.tag === requestTags.metadataContext) this.#metadataContext();
      else if (reader.tag === requestTags.observabilityMode) {
        this.#isObserved = reader.whole() !== 0;
      } else if (reader.tag === requestTags.protocolConfig) this.#protocol();
      else reader.skip();
    }
    if (this.#part === undefined) return { kind: "unknown" };
    return {
      kind: "part",
      part: this.#part,
      headers: this.#headers ?? nothing,
      attributes: this.#attributes ?? nothing,
      body: this.#body,
      metadata: this.#metadata,
      isEndOfStream: this.#isEndOfStream,
      isObserved: this.#isObserved,
      bodyModes: this.#bodyModes,
    };
  }

  #onPart(part: ExchangePart): void {
    this.#part = part;
    this.#headers = undefined;
    this.#body = undefined;
    this.#isEndOfStream = false;
    const outerEnd = this.#reader.enter();
    if (part === "requestHeaders") this.#headersPart(this.#wanted.requestHeaders);
    else if (part === "responseHeaders") this.#headersPart(this.#wanted.responseHeaders);
    else if (part === "requestTrailers") this.#trailers(this.#wanted.requestHeaders);
    else if (part === "responseTrailers") this.#trailers(this.#wanted.responseHeaders);
    else this.#bodyPart();
    this.#reader.leave(outerEnd);
  }

  #headersPart(names: WantedNames): void {
    const reader = this.#reader;
    while (reader.next()) {
      if (reader.tag === headersTag) this.#headerMap(names);
      else if (reader.tag === endOfStreamTag) this.#isEndOfStream = reader.whole() !== 0;
      else reader.skip();
    }
  }

  #trailers(names: WantedNames): void {
    const reader = this.#reader;
    this.#isEndOfStream = true;
    while (reader.next()) {
      if (reader.tag === headersTag) this.#headerMap(names);
      else reader.skip();
    }
  }

  #bodyPart(): void {
    const reader = this.#reader;
    this.#body = this.#bytes.subarray(0, 0);
    let isEnd = false;
    let isEndWithoutMessage = false;
    while (reader.next()) {
      if (reader.tag === bodyTags.body) this.#body = reader.part();
      else if (reader.tag === bodyTags.endOfStream) isEnd = reader.whole() !== 0;
      else if (reader.tag === bodyTags.endOfStreamWithoutMessage) {
        isEndWithoutMessage = reader.whole() !== 0;
      } else reader.skip();
    }
    this.#isEndOfStream = isEnd || isEndWithoutMessage;
  }

  #headerMap(names: WantedNames): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    while (reader.next()) {
      if (reader.tag === headersTag) this.#header(names);
      else reader.skip();
    }
    reader.leave(outerEnd);
  }

  #header(names: WantedNames): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    // Offsets, because most texts are never created. Of a repeated field, the last one counts.
    let name: string | undefined;
    let valueStart = 0;
    let valueEnd = 0;
    let rawStart = 0;
    let rawEnd = 0;
    while (reader.next()) {
      if (reader.tag === headerTags.key) {
        reader.pass();
        name = names.find(this.#bytes, reader.partStart, reader.at);
      } else if (reader.tag === headerTags.rawValue) {
        reader.pass();
        rawStart = reader.partStart;
        rawEnd = reader.at;
      } else if (reader.tag === headerTags.value) {
        reader.pass();
        valueStart = reader.partStart;
        valueEnd = reader.at;
      } else reader.skip();
    }
    reader.leave(outerEnd);
    if (name === undefined) return;
    const isRaw = rawEnd > rawStart;
    const value = reader.textAt(isRaw ? rawStart : valueStart, isRaw ? rawEnd : valueEnd);
    this.#headers ??= new Map();
    joinHeader(this.#headers, name, value);
  }

  #attributesEntry(): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    const entryEnd = this.#mapValue(this.#wanted.attributesKey);
    if (entryEnd !== undefined) {
      // If the key is repeated, the last entry replaces the others.
      this.#attributes = undefined;
      while (reader.next()) {
        if (reader.tag === structFieldsTag) this.#attribute();
        else reader.skip();
      }
      reader.leave(entryEnd);
    }
    reader.leave(outerEnd);
  }

  #attribute(): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    const entryEnd = this.#mapValue(this.#wanted.attributes);
    if (entryEnd !== undefined) {
      const value = this.#plainValue();
      if (value === undefined) this.#attributes?.delete(this.#mapName);
      else {
        this.#attributes ??= new Map();
        this.#attributes.set(this.#mapName, value);
      }
      reader.leave(entryEnd);
    }
    reader.leave(outerEnd);
  }

  #metadataContext(): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    while (reader.next()) {
      if (reader.tag === filterMetadataTag) this.#metadataEntry();
      else reader.skip();
    }
    reader.leave(outerEnd);
  }

  #metadataEntry(): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    const entryEnd = this.#mapValue(this.#wanted.metadataKeys);
    if (entryEnd !== undefined) {
      const namespace = this.#mapName;
      // If the namespace is repeated, the last entry replaces the others.
      const wanted = this.#wanted.metadata.get(namespace);
      const values = new Map<string, ScalarValue>();
      if (wanted !== undefined) this.#wantedStruct(wanted, values);
      this.#metadata ??= new Map();
      this.#metadata.set(namespace, values);
      reader.leave(entryEnd);
    }
    reader.leave(outerEnd);
  }

  /** Reads the wanted fields of a Struct, and of the Structs inside it. */
  #wantedStruct(wanted: WantedPaths, values: Map<string, ScalarValue>): void {
    const reader = this.#reader;
    while (reader.next()) {
      if (reader.tag !== structFieldsTag) {
        reader.skip();
        continue;
      }
      const outerEnd = reader.enter();
      const entryEnd = this.#mapValue(wanted.names);
      const inner = entryEnd === undefined ? undefined : wanted.inner.get(this.#mapName);
      if (inner !== undefined) this.#wantedValue(inner, values);
      if (entryEnd !== undefined) reader.leave(entryEnd);
      reader.leave(outerEnd);
    }
  }

  #wantedValue(
    { path, paths }: { readonly path: string | undefined; readonly paths: WantedPaths | undefined },
    values: Map<string, ScalarValue>,
  ): void {
    const reader = this.#reader;
    while (reader.next()) {
      if (reader.tag === valueTags.struct && paths !== undefined) {
        const outerEnd = reader.enter();
        this.#wantedStruct(paths, values);
        reader.leave(outerEnd);
      } else if (path === undefined) reader.skip();
      else if (reader.tag === valueTags.string) values.set(path, reader.text(metadataTextBytesMax));
      else if (reader.tag === valueTags.number) values.set(path, reader.double());
      else if (reader.tag === valueTags.bool) values.set(path, reader.whole() !== 0);
      else reader.skip();
    }
  }

  /** The key of the map's entry whose value was entered last. */
  #mapName = "";

  /**
   * Reads a map's entry, and enters its value if its key is wanted.
   *
   * @returns the argument for `leave`; undefined if the key is not wanted
   */
  #mapValue(names: WantedNames): number | undefined {
    const reader = this.#reader;
    // A missing key or value is empty.
    let keyStart = reader.at;
    let keyEnd = keyStart;
    let valueStart = keyStart;
    let valueEnd = keyStart;
    while (reader.next()) {
      if (reader.tag === mapTags.key) {
        reader.pass();
        keyStart = reader.partStart;
        keyEnd = reader.at;
      } else if (reader.tag === mapTags.value) {
        reader.pass();
        valueStart = reader.partStart;
        valueEnd = reader.at;
      } else reader.skip();
    }
    const name = names.find(this.#bytes, keyStart, keyEnd);
    if (name === undefined) return undefined;
    this.#mapName = name;
    return reader.revisit(valueStart, valueEnd);
  }

  /** Reads a scalar. Returns undefined for null, lists and structs. */
  #plainValue(): ScalarValue | undefined {
    const reader = this.#reader;
    let value: ScalarValue | undefined;
    while (reader.next()) {
      if (reader.tag === valueTags.string) value = reader.text(Number.POSITIVE_INFINITY);
      else if (reader.tag === valueTags.number) value = reader.double();
      else if (reader.tag === valueTags.bool) value = reader.whole() !== 0;
      else {
        if (isOtherValue(reader.tag)) value = undefined;
        reader.skip();
      }
    }
    return value;
  }

  #protocol(): void {
    const reader = this.#reader;
    const outerEnd = reader.enter();
    let request = this.#bodyModes?.request ?? bodyModeOf(0);
    let response = this.#bodyModes?.response ?? bodyModeOf(0);
    while (reader.next()) {
      if (reader.tag === protocolTags.requestBodyMode) request = bodyModeOf(reader.whole());
      else if (reader.tag === protocolTags.responseBodyMode) response = bodyModeOf(reader.whole());
      else reader.skip();
    }
    reader.leave(outerEnd);
    this.#bodyModes = { request, response };
  }
}

function isOtherValue(tag: number): boolean {
  return tag === valueTags.null || tag === valueTags.struct || tag === valueTags.list;
}

/** Adds a header. Joins the values of a repeated one, as Envoy does. */
function joinHeader(headers: Map<string, string>, name: string, value: string): void {
  const before = headers.get(name);
  const separator = name === "cookie" ? "; " : ",";
  headers.set(name, before === undefined ? value : `${before}${separator}${value}`);
}
