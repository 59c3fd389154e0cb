import { WireType } from "@bufbuild/protobuf/wire";
import { isServiceError, ServiceError } from "../../core/base/errors.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { descriptorCountMax, entryCountMax } from "../../decide/rate-limit/query.js";
import type { RateLimitUnit } from "../../gen/envoy/type/v3/ratelimit_unit_pb.js";
import {
  FieldReader,
  fieldTag,
  LastPart,
  passTwoParts,
  TooManyFieldsError,
} from "../codec/field-reader.js";
import {
  requestTooLarge,
  type SentDescriptor,
  type SentLimit,
  type SentRequest,
} from "./rls-request.js";

/**
 * Decodes a RateLimitRequest by hand. The general decoder creates objects for everything before it
 * can be counted, rejects text that is not UTF-8, and costs more than the decision (5 us instead of
 * half a microsecond). Property tests compare the two.
 *
 * @throws ServiceError REQUEST_INVALID for bytes that are not a message; REQUEST_TOO_LARGE for more
 *   than `descriptorCountMax` descriptors, before any of the others is read
 */
export function decodeRequest(bytes: Uint8Array): SentRequest {
  try {
    return readRequest(new FieldReader(bytes));
  } catch (thrown) {
    if (isServiceError(thrown)) throw thrown;
    if (thrown instanceof TooManyFieldsError) throw requestTooLarge();
    const words = "The message is not a RateLimitRequest of envoy.service.ratelimit.v3.";
    throw new ServiceError("REQUEST_INVALID", words);
  }
}

const { Varint, LengthDelimited } = WireType;

/** Source: envoy.service.ratelimit.v3.RateLimitRequest. */
const requestTags = {
  domain: fieldTag(1, LengthDelimited),
  descriptors: fieldTag(2, LengthDelimited),
  hitsAddend: fieldTag(3, Varint),
} as const;

/** Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor. */
const descriptorTags = {
  entries: fieldTag(1, LengthDelimited),
  limit: fieldTag(2, LengthDelimited),
  hitsAddend: fieldTag(3, LengthDelimited),
  isNegativeHits: fieldTag(4, Varint),
} as const;

/** Source: RateLimitDescriptor.RateLimitOverride. */
const limitTags = {
  requestsPerUnit: fieldTag(1, Varint),
  unit: fieldTag(2, Varint),
  unitMultiplier: fieldTag(3, LengthDelimited),
} as const;

/** Source: google.protobuf.UInt32Value, UInt64Value. */
const wrappedTag = fieldTag(1, Varint);

function readRequest(reader: FieldReader): SentRequest {
  const domain = new LastPart();
  let hitsAddend = 0;
  const descriptors: SentDescriptor[] = [];
  while (reader.next()) {
    if (reader.tag === requestTags.descriptors) {
      if (descriptors.length === descriptorCountMax) throw requestTooLarge();
      descriptors.push(readDescriptor(reader));
    } else if (reader.tag === requestTags.domain) domain.pass(reader);
    else if (reader.tag === requestTags.hitsAddend) hitsAddend = readUint32(reader);
    else reader.skip();
  }
  return { domain: domain.text(reader, Number.POSITIVE_INFINITY), descriptors, hitsAddend };
}

function readDescriptor(reader: FieldReader): SentDescriptor {
  const entries: DescriptorEntry[] = [];
  let ownHits: number | undefined;
  let isRefund = false;
  let limit: SentLimit | undefined;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === descriptorTags.entries && entries.length <= entryCountMax) {
      entries.push(readEntry(reader));
    } else if (reader.tag === descriptorTags.hitsAddend) ownHits = readWrapped(reader, ownHits);
    else if (reader.tag === descriptorTags.isNegativeHits) isRefund = reader.whole() !== 0;
    else if (reader.tag === descriptorTags.limit) limit = readLimit(reader, limit);
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { entries, ownHits, isRefund, limit };
}

/** Source: RateLimitDescriptor.Entry. */
function readEntry(reader: FieldReader): DescriptorEntry {
  const key = new LastPart();
  const value = new LastPart();
  passTwoParts(reader, key, value);
  return {
    key: key.text(reader, Number.POSITIVE_INFINITY),
    value: value.text(reader, Number.POSITIVE_INFINITY),
  };
}

/** @param before the value of an earlier field, which this one is merged into, as in protobuf */
function readLimit(reader: FieldReader, before: SentLimit | undefined): SentLimit {
  let { requestsPerUnit, unit, unitMultiplier } = before ?? noLimit;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === limitTags.requestsPerUnit) requestsPerUnit = readUint32(reader);
    else if (reader.tag === limitTags.unit) unit = reader.whole();
    else if (reader.tag === limitTags.unitMultiplier) {
      unitMultiplier = readWrapped(reader, unitMultiplier);
    } else reader.skip();
  }
  reader.leave(outerEnd);
  return { requestsPerUnit, unit, unitMultiplier };
}

function readWrapped(reader: FieldReader, before = 0): number {
  let value = before;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === wrappedTag) value = reader.whole();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return value;
}

const uint32Max = 4_294_967_295;

/** Reads a number, capped at the largest one of 32 bits. */
function readUint32(reader: FieldReader): number {
  return Math.min(reader.whole(), uint32Max);
}

const unknownUnit: RateLimitUnit = 0;

const noLimit: SentLimit = { requestsPerUnit: 0, unit: unknownUnit, unitMultiplier: undefined };
