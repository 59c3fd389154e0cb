import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { microHzPerHz, type QuotaAssignment } from "../../core/quota/quota.js";
import type { QuotaAction } from "../../decide/quota/quota-session.js";
import {
  FieldReader,
  fieldTag,
  LastPart,
  leanPartsMax,
  passTwoParts,
  TooManyFieldsError,
} from "../codec/field-reader.js";
import { readDurationMs } from "../codec/well-known-reader.js";

/** What an Envoy says of one bucket, as it came. */
interface WireUsage {
  /** The bucket's id as a message, in place: it holds as long as what it was read from. */
  readonly id: Uint8Array;
  readonly allowedHits: number;
  readonly deniedHits: number;
  /** Whole seconds, as Envoy cuts them off; below 0 where it is no time that can be. */
  readonly elapsedMs: number;
}

/** One message of usage. */
export interface UsageMessage {
  readonly domain: string;
  readonly usages: readonly WireUsage[];
}

const { Varint, LengthDelimited } = WireType;

/** Source: envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports. */
const messageTags = { domain: fieldTag(1, LengthDelimited), usage: fieldTag(2, LengthDelimited) };

/** Source: RateLimitQuotaUsageReports.BucketQuotaUsage. */
const usageTags = {
  id: fieldTag(1, LengthDelimited),
  elapsed: fieldTag(2, LengthDelimited),
  allowed: fieldTag(3, Varint),
  denied: fieldTag(4, Varint),
} as const;

/** Source: BucketId, a map. */
const entryTag = fieldTag(1, LengthDelimited);

const nothing: Uint8Array = new Uint8Array(0);

/**
 * Reads a message of usage. Bucket ids stay bytes: Envoy puts callers' bytes into them, which may
 * be no text, and an answer must name the bucket exactly as it was named.
 *
 * Source: envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports.
 *
 * @param most how many usages are read; those after them are passed over, since a message of a few
 *   megabytes may hold a million empty ones
 * @throws Error for bytes that are no message, and for more usages than so many bytes have
 */
export function decodeUsage(bytes: Uint8Array, most: number): UsageMessage {
  const reader = new FieldReader(bytes);
  const usagesMax = leanPartsMax(bytes.length);
  const usages: WireUsage[] = [];
  const domain = new LastPart();
  while (reader.next()) {
    if (reader.tag === messageTags.domain) domain.pass(reader);
    else if (reader.tag === messageTags.usage && usages.length < most) {
      if (usages.length >= usagesMax) throw new TooManyFieldsError();
      usages.push(readUsage(reader));
    } else reader.skip();
  }
  return { domain: domain.text(reader), usages };
}

function readUsage(reader: FieldReader): WireUsage {
  const id = new LastPart();
  let elapsedMs = 0;
  let allowedHits = 0;
  let deniedHits = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === usageTags.id) id.pass(reader);
    else if (reader.tag === usageTags.elapsed) elapsedMs = readDurationMs(reader);
    else if (reader.tag === usageTags.allowed) allowedHits = reader.whole();
    else if (reader.tag === usageTags.denied) deniedHits = reader.whole();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { id: id.bytes(reader), elapsedMs, allowedHits, deniedHits };
}

/** Writes a message of actions, in order. Source: RateLimitQuotaResponse. */
export function encodeActions(actions: readonly QuotaAction[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const { id, reported } of actions) {
    const action = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(id);
    if (reported.kind === "abandon") action.tag(3, WireType.LengthDelimited).bytes(nothing);
    else action.tag(2, WireType.LengthDelimited).bytes(encodeAssignment(reported.assignment));
    writer.tag(1, WireType.LengthDelimited).bytes(action.finish());
  }
  return writer.finish();
}

/**
 * Only what Envoy 1.40 enforces: everything, nothing, or a token bucket. Times are whole seconds,
 * since Envoy drops the rest of them, and a bucket that fills within less than one lets everything
 * pass.
 */
function encodeAssignment(assignment: QuotaAssignment): Uint8Array {
  const writer = new BinaryWriter().tag(2, LengthDelimited);
  writeSeconds(writer, Math.floor(assignment.ttlMs / 1_000));
  writer.tag(3, LengthDelimited).fork();
  if (assignment.kind === "blanket") {
    writer
      .tag(1, Varint)
      .int32(assignment.rule === "allow" ? blanketRules.allow : blanketRules.deny);
  } else writeTokenBucket(writer.tag(3, LengthDelimited), assignment);
  return writer.join().finish();
}

/** Source: envoy.type.v3.RateLimitStrategy.BlanketRule. */
const blanketRules = { allow: 0, deny: 1 } as const;

/** The value of a field, with its length. Source: envoy.type.v3.TokenBucket. */
function writeTokenBucket(
  writer: BinaryWriter,
  { tokensMax, rateMicroHz }: Extract<QuotaAssignment, { kind: "bucket" }>,
): void {
  const { tokensPerFill, fillSeconds } = wireRate(rateMicroHz);
  writer.fork().tag(1, Varint).uint32(tokensMax);
  writer.tag(2, LengthDelimited).fork().tag(1, Varint).uint32(tokensPerFill).join();
  writeSeconds(writer.tag(3, LengthDelimited), fillSeconds);
  writer.join();
}

/** The value of a field, with its length. Source: google.protobuf.Duration. */
function writeSeconds(writer: BinaryWriter, seconds: number): void {
  writer.fork().tag(1, Varint).int64(seconds).join();
}

/** The largest number of a field of 32 bits. */
const uint32Max = 4_294_967_295;

/**
 * A rate as tokens and whole seconds. Envoy fills all the time, so a million seconds and as many
 * tokens as there are micro-hits say it exactly, as far as they go; larger rates are cut by less
 * than a millionth.
 */
export function wireRate(rateMicroHz: number): {
  readonly tokensPerFill: number;
  readonly fillSeconds: number;
} {
  for (const fillSeconds of [microHzPerHz, 1_000]) {
    const tokensPerFill = Math.floor(rateMicroHz / (microHzPerHz / fillSeconds));
    if (tokensPerFill <= uint32Max) return { tokensPerFill, fillSeconds };
  }
  const tokensPerFill = Math.min(uint32Max, Math.floor(rateMicroHz / microHzPerHz));
  return { tokensPerFill, fillSeconds: 1 };
}

/** What is wrong with a bucket id. */
type BucketIdFault = "id_too_long" | "id_too_many_entries" | "id_unreadable";

/** The longest bucket id, in bytes. */
export const bucketIdBytesMax = 4_096;

/** The most entries of one. */
export const bucketIdEntriesMax = 32;

/** A bucket id, as far as it can be told from others. */
type ReadBucketId =
  | {
      readonly kind: "id";
      /** The same for the same entries in any order, and for no others. */
      readonly key: string;
      /** Its entries as texts; what is no text has a mark in place of it. */
      readonly entries: () => Readonly<Record<string, string>>;
    }
  | { readonly kind: "fault"; readonly fault: BucketIdFault };

/** Reads a bucket id. Source: envoy.service.rate_limit_quota.v3.BucketId. */
export function readBucketId(id: Uint8Array): ReadBucketId {
  if (id.length > bucketIdBytesMax) return { kind: "fault", fault: "id_too_long" };
  let parts: readonly EntryBytes[];
  try {
    parts = readEntries(id);
  } catch {
    return { kind: "fault", fault: "id_unreadable" };
  }
  if (parts.length > bucketIdEntriesMax) return { kind: "fault", fault: "id_too_many_entries" };
  const names = parts.map(({ key, value }) => {
    const name = latin1(key);
    return `${name.length}:${name}${value.length}:${latin1(value)}`;
  });
  const key = names.sort().join("");
  return { kind: "id", key, entries: () => textEntries(parts) };
}

interface EntryBytes {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

function readEntries(id: Uint8Array): readonly EntryBytes[] {
  const reader = new FieldReader(id);
  const parts: EntryBytes[] = [];
  // One more than may be shows that there are more.
  while (reader.next() && parts.length <= bucketIdEntriesMax) {
    if (reader.tag === entryTag) parts.push(readEntry(reader));
    else reader.skip();
  }
  return parts;
}

function readEntry(reader: FieldReader): EntryBytes {
  const key = new LastPart();
  const value = new LastPart();
  passTwoParts(reader, key, value);
  return { key: key.bytes(reader), value: value.bytes(reader) };
}

/** Every byte as one character: nothing is lost, whatever the bytes are. */
function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}

const decoder = new TextDecoder();

function textEntries(parts: readonly EntryBytes[]): Readonly<Record<string, string>> {
  const texts = parts.map(({ key, value }) => [decoder.decode(key), decoder.decode(value)]);
  return Object.fromEntries(texts);
}
