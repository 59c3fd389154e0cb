import { decodeBase64, encodeBase64 } from "../base/base64.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../base/json.js";
import {
  frontBytesMax,
  type LineShuffle,
  lineSpanMax,
  liveBlockSize,
  type RoomStatus,
  roomEventPhases,
  roomModes,
  shufflesMax,
} from "./room-line.js";

/** What a leader needs from earlier leaders, besides the status and the words of the store. */
export interface LeaderMemory {
  /** Sessions from this index on have never been used. */
  readonly sessionsEnd: number;
  /** Entries that the rate allows at once. Below 0 after spare sessions were taken. */
  readonly tokens: number;
  /** The event that was opened last, with its start. */
  readonly openedEvent: string | undefined;
  /** Decayed sums: seconds of sessions, and how many ended. */
  readonly heldSeconds: number;
  readonly endedCount: number;
  /** Decayed sums: seconds of waiting, and how many left. */
  readonly waitedSeconds: number;
  readonly leftCount: number;
  /** The part of `RoomHead.waits` that the factor of ranges has learned from. */
  readonly learnedEndedCount: number;
  readonly learnedHeldCount: number;
  /** For `activeUsersMax: auto`: sessions at a time, and decayed sums, as in `AutoCapacity`. */
  readonly autoActiveMax: number | undefined;
  readonly inFlightSum: number;
  readonly activeSum: number;
}

/** What a leader publishes: the status for all, and the memory for the next leader. */
export interface PublishedRoom {
  readonly status: RoomStatus;
  readonly memory: LeaderMemory;
}

/** Encodes as JSON, at most 64 KiB for a line of 8,388,608 places. */
export function encodePublishedRoom({ status, memory }: PublishedRoom): string {
  const liveAtFront = encodeBase64(status.liveAtFront);
  return JSON.stringify({ format, status: { ...status, liveAtFront }, memory });
}

/** Decodes what was published. Undefined: this version cannot read it. Never throws. */
export function decodePublishedRoom(text: string): PublishedRoom | undefined {
  const json = parsed(text);
  if (!isJsonObject(json) || json["format"] !== format) return undefined;
  const { status, memory } = json;
  if (!isJsonObject(status) || !isJsonObject(memory)) return undefined;
  const fields = new Fields();
  const published = { status: statusOf(status, fields), memory: memoryOf(memory, fields) };
  return fields.areValid ? published : undefined;
}

const format = 1;

/** Maximum number of blocks: those of the longest line, and one that it begins in. */
const blocksMax = lineSpanMax / liveBlockSize + 1;

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function statusOf(json: JsonObject, fields: Fields): RoomStatus {
  const whole = (name: string): number => fields.whole(json[name]);
  const number = (name: string): number => fields.number(json[name]);
  const maybe = (name: string): number | undefined => fields.maybe(json[name]);
  return {
    lineId: whole("lineId"),
    second: number("second"),
    nextNumber: whole("nextNumber"),
    calledPlace: whole("calledPlace"),
    waitingCount: whole("waitingCount"),
    liveByBlock: fields.list(json["liveByBlock"], blocksMax).map((count) => fields.whole(count)),
    liveAtFront: fields.bytes(json["liveAtFront"], frontBytesMax),
    activeCount: whole("activeCount"),
    activeCountMax: whole("activeCountMax"),
    entriesPerSecond: maybe("entriesPerSecond"),
    entriesMeasuredCount: number("entriesMeasuredCount"),
    abandonPerSecond: number("abandonPerSecond"),
    sessionSeconds: maybe("sessionSeconds"),
    rangeFactor: number("rangeFactor"),
    rejectRatio: number("rejectRatio"),
    shuffles: fields.list(json["shuffles"], shufflesMax).map((run) => shuffleOf(run, fields)),
    phase: fields.word(json["phase"], roomEventPhases),
    opensSecond: maybe("opensSecond"),
    shufflesNext: json["shufflesNext"] === true,
    mode: fields.word(json["mode"], roomModes),
  };
}

function shuffleOf(json: JsonValue, fields: Fields): LineShuffle {
  const run = fields.object(json);
  const count = fields.whole(run["count"]);
  if (count > lineSpanMax) fields.areValid = false;
  return { from: fields.whole(run["from"]), count, seed: fields.whole(run["seed"]) };
}

function memoryOf(json: JsonObject, fields: Fields): LeaderMemory {
  const number = (name: string): number => fields.number(json[name]);
  return {
    sessionsEnd: fields.whole(json["sessionsEnd"]),
    tokens: fields.signed(json["tokens"]),
    openedEvent: fields.text(json["openedEvent"]),
    heldSeconds: number("heldSeconds"),
    endedCount: number("endedCount"),
    waitedSeconds: number("waitedSeconds"),
    leftCount: number("leftCount"),
    learnedEndedCount: number("learnedEndedCount"),
    learnedHeldCount: number("learnedHeldCount"),
    autoActiveMax: fields.maybe(json["autoActiveMax"]),
    inFlightSum: number("inFlightSum"),
    activeSum: number("activeSum"),
  };
}

/** Reads values, and records whether any is invalid. */
class Fields {
  areValid = true;

  /** Reads a number of either sign. */
  signed(json: JsonValue | undefined): number {
    return typeof json === "number" && Number.isFinite(json) ? json : this.#invalid(0);
  }

  number(json: JsonValue | undefined): number {
    const value = this.signed(json);
    return value >= 0 ? value : this.#invalid(0);
  }

  whole(json: JsonValue | undefined): number {
    const value = this.number(json);
    return Number.isSafeInteger(value) ? value : this.#invalid(0);
  }

  maybe(json: JsonValue | undefined): number | undefined {
    return json === undefined ? undefined : this.number(json);
  }

  text(json: JsonValue | undefined): string | undefined {
    if (json === undefined || typeof json === "string") return json;
    return this.#invalid(undefined);
  }

  word<W extends string>(json: JsonValue | undefined, words: readonly [W, ...W[]]): W {
    return words.find((word) => word === json) ?? this.#invalid(words[0]);
  }

  list(json: JsonValue | undefined, countMax: number): readonly JsonValue[] {
    return Array.isArray(json) && json.length <= countMax ? json : this.#invalid([]);
  }

  object(json: JsonValue | undefined): JsonObject {
    return isJsonObject(json) ? json : this.#invalid({});
  }

  bytes(json: JsonValue | undefined, bytesMax: number): Uint8Array {
    const text = this.text(json) ?? "";
    const bytes = text.length <= 2 * bytesMax ? decodeBase64(text) : undefined;
    return bytes !== undefined && bytes.length <= bytesMax
      ? bytes
      : this.#invalid(new Uint8Array());
  }

  #invalid<T>(instead: T): T {
    this.areValid = false;
    return instead;
  }
}
