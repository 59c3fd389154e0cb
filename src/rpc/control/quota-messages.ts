import { WireType } from "@bufbuild/protobuf/wire";
import { microHzPerHz, type QuotaAssignment } from "../../core/quota/quota.js";
import type { BucketReport, QuotaAction } from "../../decide/quota/quota-session.js";
import { BackwardWriter } from "../codec/backward-writer.js";
import {
  FieldReader,
  fieldTag,
  LastPart,
  leanPartsMax,
  passTwoParts,
  TooManyFieldsError,
} from "../codec/field-reader.js";
import { readDurationMs } from "../codec/well-known-reader.js";

/** One usage message. */
export interface UsageMessage {
  readonly domain: string;
  /** Times are whole seconds, because Envoy truncates them. Below 0: an impossible time. */
  readonly usages: readonly BucketReport[];
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

/**
 * Reads a usage message. Bucket ids stay bytes, each as one character: Envoy puts callers' bytes
 * into them, which may not be text, and a response must name the bucket exactly as Envoy did.
 *
 * Source: envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports.
 *
 * @param most how many usages are read; the rest is skipped, because a message of a few megabytes
 *   may contain a million empty ones
 * @throws Error for bytes that are not a message, and for more usages than its size allows
 */
export function decodeUsage(bytes: Uint8Array, most: number): UsageMessage {
  const reader = new FieldReader(bytes);
  const usagesMax = leanPartsMax(bytes.length);
  const usages: BucketReport[] = [];
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

function readUsage(reader: FieldReader): BucketReport {
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
  return { id: id.latin1(reader), elapsedMs, allowedHits, deniedHits };
}

/** Field numbers with their wire types. Source: RateLimitQuotaResponse and its parts. */
const actionTags = {
  action: 0x0a,
  id: 0x0a,
  assignment: 0x12,
  abandon: 0x1a,
  ttl: 0x12,
  strategy: 0x1a,
  blanketRule: 0x08,
  tokenBucket: 0x1a,
  tokensMax: 0x08,
  tokensPerFill: 0x12,
  fillInterval: 0x1a,
  wrapped: 0x08,
} as const;

/** Maximum size of an action without its id, in bytes. */
const actionBytesMax = 96;

/**
 * Writes a message of actions, in order. Source: RateLimitQuotaResponse.
 *
 * @param writer sharing it among all messages saves half of the time
 */
export function encodeActions(
  actions: readonly QuotaAction[],
  writer = new BackwardWriter(),
): Uint8Array {
  let lengthMax = 0;
  for (const { id } of actions) lengthMax += id.length + actionBytesMax;
  writer.begin(lengthMax);
  for (let i = actions.length - 1; i >= 0; i -= 1) {
    const action = actions[i];
    if (action !== undefined) writeAction(writer, action);
  }
  return writer.finish();
}

function writeAction(writer: BackwardWriter, { id, reported }: QuotaAction): void {
  const end = writer.at;
  if (reported.kind === "abandon") writer.message(actionTags.abandon, end);
  else {
    writeAssignment(writer, reported.assignment);
    writer.message(actionTags.assignment, end);
  }
  const idEnd = writer.at;
  writer.latin1(id);
  writer.message(actionTags.id, idEnd);
  writer.message(actionTags.action, end);
}

/**
 * Writes only what Envoy 1.40 enforces: allow all, deny all, or a token bucket. Times are whole
 * seconds, because Envoy drops fractions, and a bucket that fills within less than one second
 * allows everything.
 */
function writeAssignment(writer: BackwardWriter, assignment: QuotaAssignment): void {
  const end = writer.at;
  if (assignment.kind === "blanket") {
    // As part of a oneof, it is written even if it is zero.
    writer.varint(assignment.rule === "allow" ? blanketRules.allow : blanketRules.deny);
    writer.byte(actionTags.blanketRule);
  } else {
    writeTokenBucket(writer, assignment);
    writer.message(actionTags.tokenBucket, end);
  }
  writer.message(actionTags.strategy, end);
  writeWrapped(writer, actionTags.ttl, Math.floor(assignment.ttlMs / 1_000));
}

/** Source: envoy.type.v3.RateLimitStrategy.BlanketRule. */
const blanketRules = { allow: 0, deny: 1 } as const;

/** Source: envoy.type.v3.TokenBucket. */
function writeTokenBucket(
  writer: BackwardWriter,
  { tokensMax, rateMicroHz }: Extract<QuotaAssignment, { kind: "bucket" }>,
): void {
  const { tokensPerFill, fillSeconds } = wireRate(rateMicroHz);
  writeWrapped(writer, actionTags.fillInterval, fillSeconds);
  writeWrapped(writer, actionTags.tokensPerFill, tokensPerFill);
  writer.number(actionTags.tokensMax, tokensMax);
}

/** Writes the seconds of a google.protobuf.Duration, or a google.protobuf.UInt32Value. */
function writeWrapped(writer: BackwardWriter, tag: number, value: number): void {
  const end = writer.at;
  writer.number(actionTags.wrapped, value);
  writer.message(tag, end);
}

/** Maximum value of a 32-bit field. */
const uint32Max = 4_294_967_295;

/**
 * Converts a rate to tokens and whole seconds. Envoy fills continuously, so a million seconds and
 * as many tokens as there are micro-hits are exact, up to the maximum. Larger rates are reduced by
 * less than a millionth.
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

/** Why a bucket id is rejected. */
type BucketIdFault = "id_too_long" | "id_too_many_entries" | "id_unreadable";

/** Maximum length of a bucket id, in bytes. */
export const bucketIdBytesMax = 4_096;

/** Maximum number of entries of a bucket id. */
export const bucketIdEntriesMax = 32;

/** A bucket id that can be compared with others, or why it is rejected. */
type ReadBucketId =
  | {
      readonly kind: "id";
      /** Equal for the same entries in any order, and only for these. */
      readonly key: string;
      /** Its entries as texts. Bytes that are not text are replaced by a mark. */
      readonly entries: () => Readonly<Record<string, string>>;
    }
  | { readonly kind: "fault"; readonly fault: BucketIdFault };

/**
 * Reads a bucket id in which each character is a byte.
 *
 * Source: envoy.service.rate_limit_quota.v3.BucketId.
 */
export function readBucketId(id: string): ReadBucketId {
  if (id.length > bucketIdBytesMax) return { kind: "fault", fault: "id_too_long" };
  let parts: readonly EntryTexts[];
  try {
    parts = readEntries(Buffer.from(id, "latin1"));
  } catch {
    return { kind: "fault", fault: "id_unreadable" };
  }
  if (parts.length > bucketIdEntriesMax) return { kind: "fault", fault: "id_too_many_entries" };
  const names = parts.map(({ key, value }) => `${key.length}:${key}${value.length}:${value}`);
  const key = names.sort().join("");
  return { kind: "id", key, entries: () => textEntries(parts) };
}

/** An entry in which each character is a byte. */
interface EntryTexts {
  readonly key: string;
  readonly value: string;
}

function readEntries(id: Uint8Array): readonly EntryTexts[] {
  const reader = new FieldReader(id);
  const parts: EntryTexts[] = [];
  // One more than the maximum shows that there are too many.
  while (reader.next() && parts.length <= bucketIdEntriesMax) {
    if (reader.tag === entryTag) parts.push(readEntry(reader));
    else reader.skip();
  }
  return parts;
}

function readEntry(reader: FieldReader): EntryTexts {
  const key = new LastPart();
  const value = new LastPart();
  passTwoParts(reader, key, value);
  return { key: key.latin1(reader), value: value.latin1(reader) };
}

const decoder = new TextDecoder();

function textEntries(parts: readonly EntryTexts[]): Readonly<Record<string, string>> {
  return Object.fromEntries(parts.map(({ key, value }) => [textOf(key), textOf(value)]));
}

const ascii = /^[\0-\x7f]*$/;

/** Nearly all are ASCII, and need no decoding, which takes a microsecond for each. */
function textOf(bytes: string): string {
  return ascii.test(bytes) ? bytes : decoder.decode(Buffer.from(bytes, "latin1"));
}
