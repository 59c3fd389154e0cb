import { WireType } from "@bufbuild/protobuf/wire";
import { FieldReader, fieldTag } from "../codec/field-reader.js";

/** Source: ProcessingRequest, request_body and response_body; HttpBody, body. */
const bodyPartTags: ReadonlySet<number> = new Set([
  fieldTag(4, WireType.LengthDelimited),
  fieldTag(5, WireType.LengthDelimited),
]);

/**
 * How many bytes of a message are not of a body, where the body stands first, as Envoy writes it:
 * those are looked at when it is decoded. All of them for other messages.
 */
export function bytesBesidesBody(bytes: Uint8Array): number {
  if (!bodyPartTags.has(bytes[0] ?? 0)) return bytes.length;
  try {
    const reader = new FieldReader(bytes);
    reader.next();
    reader.pass();
    return bytes.length - (reader.at - reader.partStart);
  } catch {
    return bytes.length;
  }
}
