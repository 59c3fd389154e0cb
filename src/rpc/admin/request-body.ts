import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { isLeanJson } from "../../core/base/json-count.js";
import { countParts } from "../codec/count-parts.js";
import { FieldReader, leanPartsMax, TooManyFieldsError } from "../codec/field-reader.js";
import { type AdminMethod, adminMessageBytesMax } from "./methods.js";

/**
 * The most fields of a message, with those of its parts; values of JSON count as fields. Each makes
 * an object of a hundred bytes of two that are sent. An explanation of 128 descriptors of 32
 * entries, by a candidate of 1,000 files, has 15,800.
 */
export const messageFieldsMax = 16_384;

/** Bytes of an entry of the shortest names that anybody would use. */
const partBytes = 12;

/** The longest request in JSON, in bytes: to parse it takes four times as long as its message. */
export const jsonBytesMax = 524_288;

/** What is held of all unfinished requests that hold no policies, in bytes. */
export const bodiesBytesMax = 16_777_216;

/**
 * Bodies of requests, counted before the library makes anything of them: it would make 10 million
 * objects of 20 MB of empty parts.
 */
export class RequestBodies {
  #heldBytes = 0;

  /** The same request, whose body is refused where it is too much; the handler answers so. */
  counted(request: UniversalServerRequest, method: AdminMethod): UniversalServerRequest {
    const { body } = request;
    // A body that somebody has parsed already: no adapter of ours does.
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

/** Answers may be compressed; what a compressed request becomes nobody could know before. */
export function answersOnly(compression: Compression): Compression {
  const decompress = async (): Promise<never> => {
    throw new ConnectError("requests must be uncompressed", Code.Unimplemented);
  };
  return { ...compression, decompress };
}

/** A byte of flags, and the length of the message. Source: gRPC over HTTP2; Connect protocol. */
const envelopeBytes = 5;

const compressedFlag = 1;

/** Of a body that is not whole, or compressed, the library says so. */
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
 * @throws ConnectError for too many, and for bytes that are no message
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
 * Counts the bytes and the values of a JSON text, right or wrong.
 *
 * @throws ConnectError for too many
 */
export function checkJson(bytes: Buffer): void {
  if (bytes.length > jsonBytesMax) throw tooMuch(`in JSON it has more than ${jsonBytesMax} bytes`);
  // What stands between texts is ASCII, and each byte of them is one character so.
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
