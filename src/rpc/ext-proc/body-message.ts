import { WireType } from "@bufbuild/protobuf/wire";
import { FieldReader, fieldTag } from "../codec/field-reader.js";

/** Source: ProcessingRequest, request_body and response_body; HttpBody, body. */
const bodyPartTags: ReadonlySet<number> = new Set([
  fieldTag(4, WireType.LengthDelimited),
  fieldTag(5, WireType.LengthDelimited),
]);

/**
 * Returns how many bytes of a message are not part of its body if the body comes first, as Envoy
 * writes it: decoding reads these bytes. For other messages, returns the whole length.
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
