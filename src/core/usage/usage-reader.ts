import type { Usage } from "../budgets/usage.js";
import { AmazonFrameReader } from "./amazon-frame-reader.js";
import { Base64Reader } from "./base64-reader.js";
import { type ByteRange, JsonReader, type JsonSink } from "./json-reader.js";
import { ReportedUsage } from "./reported-usage.js";
import { type EventSink, SseReader } from "./sse-reader.js";
import { parseCount } from "./usage-fields.js";
import type { UsageForm, UsageSlot } from "./usage-forms.js";

/**
 * Why the body of a response reported no tokens. `unknownForm`: it is neither JSON nor a stream of
 * events. `compressed`: its `content-encoding` is not `identity`. `tooLong`: nothing was reported
 * in its first `readBytesMax` bytes. `notFound`: it has none of the fields, like bodies of errors.
 */
export type UnrecognisedReason = "unknownForm" | "compressed" | "tooLong" | "notFound";

/** What a response reports about its call. */
export interface UsageReading {
  /** What was reported or estimated, and the size of the body as `responseBytes`. */
  readonly usage: Usage;
  /**
   * Whether output tokens are partly or wholly an estimate from the text that was sent, because the
   * stream was cut off before its last report, or reports none. Input tokens may then be missing.
   */
  readonly isEstimated: boolean;
  /** Why `usage` contains only bytes. Undefined if it contains more. */
  readonly unrecognised: UnrecognisedReason | undefined;
  /** The model that the response names, at most 128 characters; empty if it names none. */
  readonly model: string;
}

/** Maximum bytes of a body that are searched for counts: 256 MiB. The rest counts only as bytes. */
export const readBytesMax = 268_435_456;

/** Reads the body of one response. Takes any bytes, keeps none of them, and never throws. */
export interface UsageReader {
  /** Reads the next piece of the body. */
  push(bytes: Uint8Array): void;
  /** Returns what is known so far, whether the body is complete or not. Ends the reading. */
  end(): UsageReading;
}

/**
 * Creates a reader of one response's body, which holds at most 4 KiB.
 *
 * @param form of the service, by `createUsageForm`
 * @param headers of the response, by names in lower case: `content-type`, `content-encoding`, and
 *   for Bedrock `x-amzn-bedrock-*-token-count`
 */
export function createUsageReader(
  form: UsageForm,
  headers: ReadonlyMap<string, string>,
): UsageReader {
  return new BodyReader(form, headers);
}

/** Form of a body, as far as it is known. `sniffed`: its first byte decides. */
type BodyKind = "sniffed" | "json" | "events" | "frames" | "unread";

class BodyReader implements UsageReader, EventSink {
  readonly #form: UsageForm;
  readonly #counts = new ReportedUsage();
  #kind: BodyKind;
  #unread: UnrecognisedReason | undefined;
  #byteCount = 0;
  #json: JsonReader<UsageSlot> | undefined;
  #events: SseReader | undefined;
  #frames: AmazonFrameReader | undefined;

  constructor(form: UsageForm, headers: ReadonlyMap<string, string>) {
    this.#form = form;
    if (form.hasBedrockHeaders) addBedrockHeaders(this.#counts, headers);
    this.#kind = bodyKindOf(headers.get("content-type") ?? "");
    if (isEncoded(headers.get("content-encoding") ?? "")) this.#stop("compressed");
  }

  push(bytes: Uint8Array): void {
    this.#byteCount += bytes.length;
    if (this.#kind !== "unread" && this.#byteCount > readBytesMax) this.#stop("tooLong");
    const from = this.#kind === "sniffed" ? this.#sniff(bytes) : 0;
    switch (this.#kind) {
      case "json":
        this.data(bytes, from, bytes.length);
        break;
      case "events":
        this.#events ??= new SseReader(this);
        this.#events.push(from === 0 ? bytes : bytes.subarray(from));
        break;
      case "frames":
        this.#frames ??= new AmazonFrameReader(this);
        this.#frames.push(bytes);
        if (this.#frames.isBroken) this.#stop("unknownForm");
        break;
    }
  }

  end(): UsageReading {
    this.#json?.reset();
    const { isEstimated, model } = this.#counts;
    const usage = this.#counts.usage();
    return {
      usage: { ...usage, responseBytes: usage?.responseBytes ?? this.#byteCount },
      isEstimated,
      unrecognised: usage === undefined ? (this.#unread ?? "notFound") : undefined,
      model,
    };
  }

  data(bytes: Uint8Array, from: number, to: number): void {
    this.#json ??= this.#createJsonReader();
    this.#json.push(bytes, from, to);
  }

  eventEnd(): void {
    this.#json?.reset();
  }

  #createJsonReader(): JsonReader<UsageSlot> {
    if (this.#kind !== "frames") return new JsonReader(this.#form.tree, this.#counts);
    return new JsonReader(this.#form.frameTree, new FrameCounts(this.#form, this.#counts));
  }

  #stop(reason: UnrecognisedReason): void {
    this.#kind = "unread";
    this.#unread = reason;
  }

  /** Distinguishes JSON from events by the first byte that is no space. @returns its position */
  #sniff(bytes: Uint8Array): number {
    for (let i = 0; i < bytes.length; i += 1) {
      const byte = bytes[i] ?? 0;
      if (byte <= 0x20 || byteOrderMark.has(byte)) continue;
      if (byte === 0x7b || byte === 0x5b) this.#kind = "json";
      else if (eventStarts.has(byte)) this.#kind = "events";
      else this.#stop("unknownForm");
      return i;
    }
    return 0;
  }
}

/** Counts of messages in Amazon's streams, including documents in them in base64. */
class FrameCounts implements JsonSink<UsageSlot> {
  readonly #counts: ReportedUsage;
  readonly #json: JsonReader<UsageSlot>;
  readonly #base64: Base64Reader;

  constructor(form: UsageForm, counts: ReportedUsage) {
    this.#counts = counts;
    this.#json = new JsonReader(form.tree, counts);
    this.#base64 = new Base64Reader((bytes, from, to) => this.#json.push(bytes, from, to));
  }

  scalar(slot: UsageSlot, text: string, isText: boolean): void {
    this.#counts.scalar(slot, text, isText);
  }

  piece(slot: UsageSlot, bytes: Uint8Array, range: ByteRange): void {
    if (slot === "base64") this.#base64.push(bytes, range.from, range.to);
    else this.#counts.piece(slot, bytes, range);
  }

  pieceEnd(slot: UsageSlot): void {
    if (slot === "base64") this.#endBase64();
    else this.#counts.pieceEnd();
  }

  documentEnd(): void {
    this.#endBase64();
    this.#counts.documentEnd();
  }

  #endBase64(): void {
    this.#base64.reset();
    this.#json.reset();
  }
}

const byteOrderMark: ReadonlySet<number> = new Set([0xef, 0xbb, 0xbf]);

/** First letters of `data`, `event`, `id` and `retry`, and the colon of a comment. */
const eventStarts: ReadonlySet<number> = new Set([0x64, 0x65, 0x69, 0x72, 0x3a]);

function bodyKindOf(contentType: string): BodyKind {
  const [type = ""] = contentType.toLowerCase().split(";", 1);
  switch (type.trim()) {
    case "text/event-stream":
      return "events";
    case "application/vnd.amazon.eventstream":
      return "frames";
    default:
      return "sniffed";
  }
}

/** Source: RFC 9110, section 8.4. */
function isEncoded(contentEncoding: string): boolean {
  return contentEncoding
    .toLowerCase()
    .split(",")
    .some((coding) => !["", "identity"].includes(coding.trim()));
}

function addBedrockHeaders(counts: ReportedUsage, headers: ReadonlyMap<string, string>): void {
  for (const [slot, name] of bedrockHeaders) {
    const text = headers.get(`x-amzn-bedrock-${name}-token-count`);
    if (text !== undefined) counts.add(slot, parseCount(text));
  }
}

/** The middle of header names, by slot. */
const bedrockHeaders = [
  ["input", "input"],
  ["output", "output"],
  ["cached", "cache-read-input"],
  ["written", "cache-write-input"],
] as const;
