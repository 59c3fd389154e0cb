import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { isLeanJson } from "../../core/base/json-count.js";
import { countParts } from "../codec/count-parts.js";
import { FieldReader, leanPartsMax, TooManyFieldsError } from "../codec/field-reader.js";
import { type AdminMethod, adminMessageBytesMax } from "./methods.js";

/**
 * Maximum number of fields of a message, including those of its parts. Values of JSON count as
 * fields. Each may turn two bytes into an object of a hundred. An explanation of 128 descriptors
 * with 32 entries, by a candidate of 1,000 files, has 15,800.
 */
export const messageFieldsMax = 16_384;

/** Size of an entry with the shortest names that are plausible, in bytes. */
const partBytes = 12;

/** Maximum size of a JSON request, in bytes: parsing takes four times as long as for protobuf. */
export const jsonBytesMax = 524_288;

/** Maximum memory for all incomplete requests without policies, in bytes. */
export const bodiesBytesMax = 16_777_216;

/**
 * Counts the contents of request bodies before the library decodes them: it would create 10 million
 * objects from 20 MB of empty parts.
 */
export class RequestBodies {
  #heldBytes = 0;

  /** Returns the same request, whose body fails if it is too large. The handler reports that. */
  counted(request: UniversalServerRequest, method: AdminMethod): UniversalServerRequest {
    const { body } = request;
    // A body that is already parsed, which none of the used adapters does.
    if (!isStream(body)) return request;
    return { ...request, body: this.#read(body, request.header, method) };
  }

  async *#read(body: AsyncIterable<Uint8Array>, header: Headers, method: AdminMethod) {
    const bytesMax = method.messageBytesMax + envelopeBytes;
    const isShort = method.messageBytesMax === adminMessageBytesMax;
    const chunks: Uint8Array[] = [];
    let length = 0;
    let held = 0;
    try {
      for await (const chunk of body) {
        length += chunk.length;
        if (length > bytesMax) throw tooMuch(`it has more than ${method.messageBytesMax} bytes`);
        chunks.push(chunk);
        if (!isShort) continue;
        held += chunk.length;
        this.#heldBytes += chunk.length;
        if (this.#heldBytes > bodiesBytesMax) throw tooMuch("too many requests are incomplete");
      }
      const bytes = Buffer.concat(chunks, length);
      checkBody(bytes, header, method.method.input);
      yield bytes;
    } finally {
      this.#heldBytes -= held;
    }
  }
}

/** Compresses responses only: the size of a compressed request is not known in advance. */
export function answersOnly(compression: Compression): Compression {
  const decompress = async (): Promise<never> => {
    throw new ConnectError("requests must be uncompressed", Code.Unimplemented);
  };
  return { ...compression, decompress };
}

/** Size of a message's flags and length, in bytes. Source: gRPC over HTTP2; Connect protocol. */
const envelopeBytes = 5;

const compressedFlag = 1;

/** Checks a body. One that is incomplete or compressed is left to the library to report. */
function checkBody(bytes: Buffer, header: Headers, schema: DescMessage): void {
  const mediaType = header.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  const isJson = /[/+]json$/.test(mediaType);
  const check = (message: Buffer): void => {
    if (isJson) checkJson(message);
    else checkBinary(message, schema);
  };
  if (!/^application\/(?:grpc|connect\+)/.test(mediaType)) {
    if ((header.get("content-encoding") ?? "identity") === "identity") check(bytes);
    return;
  }
  for (let at = 0; at + envelopeBytes <= bytes.length; ) {
    const start = at + envelopeBytes;
    const isCompressed = (bytes.readUInt8(at) & compressedFlag) !== 0;
    at = start + bytes.readUInt32BE(at + 1);
    if (!isCompressed) check(bytes.subarray(start, at));
  }
}

/**
 * Counts the fields of a message.
 *
 * @throws ConnectError for too many, and for bytes that are not a message
 */
export function checkBinary(bytes: Uint8Array, schema: DescMessage): void {
  try {
    const partCount = countParts(new FieldReader(bytes, messageFieldsMax), schema);
    if (partCount > leanPartsMax(bytes.length, partBytes)) throw new TooManyFieldsError();
  } catch (thrown) {
    if (thrown instanceof TooManyFieldsError) throw tooManyFields();
    throw new ConnectError("the bytes are not a message of this method", Code.InvalidArgument);
  }
}

/**
 * Counts the bytes and the values of a JSON text, valid or not.
 *
 * @throws ConnectError for too many
 */
export function checkJson(bytes: Buffer): void {
  if (bytes.length > jsonBytesMax) throw tooMuch(`in JSON it has more than ${jsonBytesMax} bytes`);
  // Outside of strings, JSON is ASCII. In strings, this makes each byte one character.
  const bounds = { containersMax: messageFieldsMax, valuesMax: messageFieldsMax };
  if (!isLeanJson(bytes.toString("latin1"), bounds)) throw tooManyFields();
}

function isStream(body: UniversalServerRequest["body"]): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

function tooManyFields(): ConnectError {
  return tooMuch(`it has more than ${messageFieldsMax} fields, or too many for its bytes`);
}

function tooMuch(why: string): ConnectError {
  return new ConnectError(`the request is too large: ${why}`, Code.ResourceExhausted);
}
