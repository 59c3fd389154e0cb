import type {
  BodyModes,
  ExchangeMessage,
  ExchangePart,
  PlainValue,
} from "../core/exchange-messages.js";
import { decodeHeaderValue, joinHeader } from "./ext-proc-headers.js";
import type { WantedNames } from "./ext-proc-names.js";
import { MessageScanner } from "./ext-proc-scanner.js";
import {
  bodyModeOf,
  bodyShape,
  headerMapShape,
  headerShape,
  headersShape,
  partsByField,
  protocolShape,
  requestShape,
  structShape,
  trailersShape,
  valueShape,
} from "./ext-proc-shapes.js";

/** What a decision wants to see of an exchange. */
export interface WantedParts {
  /** Of request headers and trailers. */
  readonly requestHeaders: WantedNames;
  /** Of response headers and trailers. */
  readonly responseHeaders: WantedNames;
  readonly attributes: WantedNames;
  /** The one entry of attributes that is Envoy's own. */
  readonly attributesKey: WantedNames;
}

/**
 * A ProcessingRequest as Envoy writes it, from its bytes to what a decision needs: it is what every
 * request through ext_proc costs, and the general decoder makes objects of all that nobody reads.
 *
 * Undefined for all else (see `MessageScanner`; also a second part, and map entries other than a
 * key and then a value): that takes the long way, which also says what is malformed. Held equal to
 * it by property tests.
 *
 * Source: envoy/service/ext_proc/v3/external_processor.proto.
 */
export function decodePlainExchange(
  bytes: Buffer,
  wanted: WantedParts,
): ExchangeMessage | undefined {
  return new PlainExchange(bytes, wanted).read();
}

/** Bodies have no headers, and most messages no attributes. */
const nothing: ReadonlyMap<string, never> = new Map<string, never>();

/** Field numbers with their wire types. Source: the .proto files, see `ext-proc-shapes.ts`. */
const tags = {
  attributes: 0x4a,
  observabilityMode: 0x50,
  protocolConfig: 0x5a,
  headers: 0x0a,
  headersEndOfStream: 0x18,
  bodyEndOfStream: 0x10,
  bodyEndOfStreamWithoutMessage: 0x18,
  trailers: 0x0a,
  header: 0x0a,
  headerKey: 0x0a,
  headerValue: 0x12,
  headerRawValue: 0x1a,
  requestBodyMode: 0x08,
  responseBodyMode: 0x10,
  mapKey: 0x0a,
  mapValue: 0x12,
  structFields: 0x0a,
  numberValue: 0x11,
  stringValue: 0x1a,
  boolValue: 0x20,
} as const;

/** One message, as it is read. */
class PlainExchange {
  readonly #scan: MessageScanner;
  readonly #wanted: WantedParts;
  #part: ExchangePart | undefined;
  #headers: Map<string, string> | undefined;
  #attributes: Map<string, PlainValue> | undefined;
  #isEndOfStream = false;
  #isObserved = false;
  #hasProtocol = false;
  #requestBodyMode = 0;
  #responseBodyMode = 0;

  constructor(bytes: Buffer, wanted: WantedParts) {
    this.#scan = new MessageScanner(bytes);
    this.#wanted = wanted;
  }

  read(): ExchangeMessage | undefined {
    const scan = this.#scan;
    const end = scan.bytes.length;
    while (scan.hasMore(end)) this.#requestField(scan.tag(end), end);
    if (scan.isLost) return undefined;
    if (this.#part === undefined) return { kind: "unknown" };
    return {
      kind: "part",
      part: this.#part,
      headers: this.#headers ?? nothing,
      attributes: this.#attributes ?? nothing,
      isEndOfStream: this.#isEndOfStream,
      isObserved: this.#isObserved,
      bodyModes: this.#hasProtocol ? this.#bodyModes() : undefined,
    };
  }

  #requestField(tag: number, end: number): void {
    const scan = this.#scan;
    const part = (tag & 7) === 2 ? partsByField[tag >>> 3] : undefined;
    if (part !== undefined) this.#onPart(part, scan.enter(end));
    else if (tag === tags.attributes) this.#attributesEntry(scan.enter(end));
    else if (tag === tags.observabilityMode) this.#isObserved = scan.bool(end);
    else if (tag === tags.protocolConfig) this.#protocol(scan.enter(end));
    else scan.skipField(tag, requestShape, end);
  }

  #onPart(part: ExchangePart, end: number): void {
    // The last one counts, and the same one twice is merged: that is for the general decoder.
    if (this.#part !== undefined) this.#scan.isLost = true;
    this.#part = part;
    if (part === "requestHeaders") this.#headersPart(this.#wanted.requestHeaders, end);
    else if (part === "responseHeaders") this.#headersPart(this.#wanted.responseHeaders, end);
    else if (part === "requestTrailers") this.#trailers(this.#wanted.requestHeaders, end);
    else if (part === "responseTrailers") this.#trailers(this.#wanted.responseHeaders, end);
    else this.#body(end);
  }

  #headersPart(names: WantedNames, end: number): void {
    const scan = this.#scan;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.headers) this.#headerMap(names, scan.enter(end));
      else if (tag === tags.headersEndOfStream) this.#isEndOfStream = scan.bool(end);
      else scan.skipField(tag, headersShape, end);
    }
  }

  #trailers(names: WantedNames, end: number): void {
    const scan = this.#scan;
    this.#isEndOfStream = true;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.trailers) this.#headerMap(names, scan.enter(end));
      else scan.skipField(tag, trailersShape, end);
    }
  }

  #body(end: number): void {
    const scan = this.#scan;
    let isEnd = false;
    let isEndWithoutMessage = false;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.bodyEndOfStream) isEnd = scan.bool(end);
      else if (tag === tags.bodyEndOfStreamWithoutMessage) isEndWithoutMessage = scan.bool(end);
      else scan.skipField(tag, bodyShape, end);
    }
    this.#isEndOfStream = isEnd || isEndWithoutMessage;
  }

  #headerMap(names: WantedNames, end: number): void {
    const scan = this.#scan;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.header) this.#header(names, scan.enter(end));
      else scan.skipField(tag, headerMapShape, end);
    }
  }

  #header(names: WantedNames, end: number): void {
    const scan = this.#scan;
    // Where the texts are: most of them are never made. A field that comes again counts.
    let keyStart = scan.at;
    let keyEnd = scan.at;
    let valueStart = scan.at;
    let valueEnd = scan.at;
    let rawStart = scan.at;
    let rawEnd = scan.at;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.headerKey) {
        keyEnd = scan.enter(end);
        keyStart = scan.at;
        scan.passText(keyEnd);
      } else if (tag === tags.headerRawValue) {
        rawEnd = scan.enter(end);
        rawStart = scan.at;
        scan.at = rawEnd;
      } else if (tag === tags.headerValue) {
        valueEnd = scan.enter(end);
        valueStart = scan.at;
        scan.passText(valueEnd);
      } else scan.skipField(tag, headerShape, end);
    }
    if (scan.isLost) return;
    const name = names.find(scan.bytes, keyStart, keyEnd);
    if (name === undefined) return;
    const value =
      rawEnd > rawStart
        ? decodeHeaderValue(scan.bytes, rawStart, rawEnd)
        : decodeHeaderValue(scan.bytes, valueStart, valueEnd);
    this.#headers ??= new Map();
    joinHeader(this.#headers, name, value);
  }

  #attributesEntry(end: number): void {
    const scan = this.#scan;
    const key = this.#mapKey(this.#wanted.attributesKey, end);
    const structEnd = this.#mapValue(end);
    if (key === undefined) {
      scan.skim(structShape, structEnd);
      return;
    }
    // The same key again: the last one counts, whole.
    this.#attributes = undefined;
    while (scan.hasMore(structEnd)) {
      const tag = scan.tag(structEnd);
      if (tag === tags.structFields) this.#attribute(scan.enter(structEnd));
      else scan.skipField(tag, structShape, structEnd);
    }
  }

  #attribute(end: number): void {
    const scan = this.#scan;
    const name = this.#mapKey(this.#wanted.attributes, end);
    const valueEnd = this.#mapValue(end);
    if (name === undefined) {
      scan.skim(valueShape, valueEnd);
      return;
    }
    const value = this.#plainValue(valueEnd);
    if (value === undefined) this.#attributes?.delete(name);
    else {
      this.#attributes ??= new Map();
      this.#attributes.set(name, value);
    }
  }

  /** Undefined for null, lists and what else is not plain. */
  #plainValue(end: number): PlainValue | undefined {
    const scan = this.#scan;
    let value: PlainValue | undefined;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.stringValue) value = scan.text(end);
      else if (tag === tags.numberValue) value = scan.double(end);
      else if (tag === tags.boolValue) value = scan.bool(end);
      else {
        if (valueShape(tag >>> 3) !== undefined) value = undefined;
        scan.skipField(tag, valueShape, end);
      }
    }
    return value;
  }

  /** A map entry's key, which comes first; the wanted one that it is. */
  #mapKey(names: WantedNames, end: number): string | undefined {
    const scan = this.#scan;
    if (!scan.hasMore(end) || scan.tag(end) !== tags.mapKey) scan.isLost = true;
    const keyEnd = scan.enter(end);
    const keyStart = scan.at;
    scan.passText(keyEnd);
    return scan.isLost ? undefined : names.find(scan.bytes, keyStart, keyEnd);
  }

  /** Steps into a map entry's value, with which the entry ends, and answers where that is. */
  #mapValue(end: number): number {
    const scan = this.#scan;
    if (!scan.hasMore(end) || scan.tag(end) !== tags.mapValue) scan.isLost = true;
    const valueEnd = scan.enter(end);
    if (valueEnd !== end) scan.isLost = true;
    return valueEnd;
  }

  #protocol(end: number): void {
    const scan = this.#scan;
    this.#hasProtocol = true;
    while (scan.hasMore(end)) {
      const tag = scan.tag(end);
      if (tag === tags.requestBodyMode) this.#requestBodyMode = scan.small(end);
      else if (tag === tags.responseBodyMode) this.#responseBodyMode = scan.small(end);
      else scan.skipField(tag, protocolShape, end);
    }
  }

  #bodyModes(): BodyModes {
    return {
      request: bodyModeOf(this.#requestBodyMode),
      response: bodyModeOf(this.#responseBodyMode),
    };
  }
}
