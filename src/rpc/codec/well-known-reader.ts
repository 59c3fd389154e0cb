import { WireType } from "@bufbuild/protobuf/wire";
import { type FieldReader, fieldTag } from "./field-reader.js";

/** Source: google.protobuf.Duration. */
const tags = {
  seconds: fieldTag(1, WireType.Varint),
  nanos: fieldTag(2, WireType.Varint),
} as const;

/** Negative numbers, read as unsigned, are at least this. */
const negativeFrom = 2 ** 63;

/** Reads a `google.protobuf.Duration` field, in milliseconds. -1 if it is negative. */
export function readDurationMs(reader: FieldReader): number {
  let seconds = 0;
  let nanos = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === tags.seconds) seconds = reader.whole();
    else if (reader.tag === tags.nanos) nanos = reader.whole();
    else reader.skip();
  }
  reader.leave(outerEnd);
  if (seconds >= negativeFrom || nanos >= negativeFrom) return -1;
  return seconds * 1_000 + nanos / 1_000_000;
}
