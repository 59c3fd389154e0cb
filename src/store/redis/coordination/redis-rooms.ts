import { assert, ServiceError } from "../../../core/base/errors.js";
import {
  type LineEntry,
  type RoomOverride,
  roomModes,
} from "../../../core/waiting-room/room-line.js";
import { noLineYet } from "../../coordination/memory-rooms.js";
import {
  assertStep,
  assertTurn,
  lineChunkSize,
  lineWordsMax,
  numbersMax,
  type RoomBeat,
  type RoomHead,
  type RoomStep,
  type RoomStepAnswer,
  type RoomStore,
  type RoomTurn,
  type RoomTurnAnswer,
  sessionsMax,
  sessionsReadMax,
  statusBytesMax,
} from "../../coordination/room-store.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../scripts/connection.js";
import { replyBytes } from "./fleet-script.js";
import { PackedList } from "./packed-list.js";
import { PageReader } from "./page-reader.js";
import {
  applyScript,
  beatScript,
  forgetScript,
  overrideScript,
  readLineScript,
  readSessionsScript,
} from "./room-scripts.js";
import { turnScript } from "./room-turn-script.js";

interface RedisRoomsParts {
  /** For visitors' requests. Never repeats a call, which could give out numbers twice. */
  readonly turns: StoreConnection;
  readonly heartbeats: StoreConnection;
  /** For words of lines, which take megabytes. */
  readonly bulk: StoreConnection;
  readonly keyPrefix: string;
}

/** Maximum size of an operator's override, as JSON in bytes. */
const overrideBytesMax = 4_096;

/** Maximum length of a replica's id, in bytes. */
const leaderBytesMax = 256;

/** Maximum size of the answer to a turn, in bytes: four numbers for each visitor. */
const turnBytesMax = 65_536;

/** The highest next number of a line that this process knows. */
interface KnownLine {
  readonly lineId: number;
  readonly nextNumber: number;
}

/**
 * Lines of waiting rooms in Redis; see `room-texts` for the keys. If a primary dies before its last
 * writes are replicated, the new primary does not know the last numbers given out. So each call
 * sends the next number that this process knows, and no such number is given out twice.
 */
export class RedisRooms implements RoomStore {
  readonly #parts: RedisRoomsParts;
  readonly #known = new Map<string, KnownLine>();

  constructor(parts: RedisRoomsParts) {
    this.#parts = parts;
  }

  async beat(beat: RoomBeat, deadlineMs: number): Promise<RoomHead> {
    const { room, replicaId, leaseMs, freshLineId, freshSecret, waits } = beat;
    const { lineId, nextNumber } = this.#known.get(room) ?? { lineId: -1, nextNumber: 0 };
    const args = [replicaId, String(leaseMs), String(freshLineId), freshSecret];
    const numbers = [lineId, nextNumber, waits.endedCount, waits.heldCount];
    const reply = await this.#run(this.#parts.heartbeats, beatScript, {
      room,
      args: [...args, ...numbers.map(String)],
      deadlineMs,
    });
    const head = parseHead(replyBytes(reply));
    this.#know(room, head);
    return head;
  }

  async turn(turn: RoomTurn, deadlineMs: number): Promise<RoomTurnAnswer> {
    assertTurn(turn);
    const { room, lineId, joinCount, spanMax, lostAfterSeconds } = turn;
    const known = this.#known.get(room);
    const nextNumber = known?.lineId === lineId ? known.nextNumber : 0;
    const { visits, bytes } = packVisits(turn.visits);
    const numbers = [lineId, nextNumber, joinCount, spanMax, lostAfterSeconds];
    const reply = await this.#run(this.#parts.turns, turnScript, {
      room,
      args: [...numbers.map(String), bytes, packOthers(turn)],
      deadlineMs,
    });
    const answer = parseTurn(reply, turn, visits);
    this.#know(room, {
      lineId: answer.lineId,
      nextNumber: answer.firstNumber + answer.joinedCount,
    });
    return answer;
  }

  async readLine(
    room: string,
    { from, count }: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    assert(count <= lineWordsMax, "a read of a line is bounded");
    const call = { room, args: [String(from), String(count)], deadlineMs };
    return parseWords(await this.#run(this.#parts.bulk, readLineScript, call), count);
  }

  async readSessions(
    room: string,
    { from, count }: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    assert(count <= sessionsReadMax, "a read of sessions is bounded");
    const call = { room, args: [String(from), String(count)], deadlineMs };
    return parseWords(await this.#run(this.#parts.bulk, readSessionsScript, call), 2 * count);
  }

  async apply(step: RoomStep, deadlineMs: number): Promise<RoomStepAnswer> {
    assertStep(step);
    let calledCount = 0;
    let freedCount = 0;
    let second = 0;
    let isStopped = false;
    for (const part of partsOf(step)) {
      if (isStopped && !part.isLast) continue;
      const calls = isStopped ? [] : part.calls;
      const calledPlace = isStopped ? 0 : part.calledPlace;
      const counts = await this.#applyPart(step, { ...part, calls, calledPlace }, deadlineMs);
      if (counts === undefined) return { kind: "outranked" };
      calledCount += counts.take(0, calls.length);
      freedCount += counts.take(0, part.frees.length);
      if (counts.take(0, 1) === 1) isStopped = true;
      second = counts.take(0, Number.MAX_SAFE_INTEGER) / 1_000;
      counts.end();
    }
    return { kind: "applied", calledCount, freedCount, second };
  }

  async #applyPart(
    step: RoomStep,
    { frees, calls, calledPlace, isLast }: StepPart,
    deadlineMs: number,
  ): Promise<ReplyNumbers | undefined> {
    const { room, term, replicaId, lineId, lostAfterSeconds, forgottenBelow } = step;
    const { afterSecond } = step;
    const afterMs = afterSecond === undefined ? -1 : Math.round(1_000 * afterSecond);
    const numbers = [lineId, afterMs, lostAfterSeconds, calledPlace, forgottenBelow].map(String);
    const args = [String(term), replicaId, ...numbers, packStep(frees, calls), isLast ? "1" : "0"];
    const last = [packSessions(step.spareSessions), packSessions(step.extraSessions)];
    const reply = await this.#run(this.#parts.bulk, applyScript, {
      room,
      args: isLast ? [...args, ...last, step.published] : args,
      deadlineMs,
    });
    return reply === undefined ? undefined : new ReplyNumbers(reply);
  }

  async override(
    room: string,
    override: RoomOverride | undefined,
    deadlineMs: number,
  ): Promise<void> {
    const text = override === undefined ? "" : JSON.stringify(override);
    assert(Buffer.byteLength(text) <= overrideBytesMax, "what an operator sets is bounded");
    await this.#run(this.#parts.bulk, overrideScript, { room, args: [text], deadlineMs });
  }

  async forget(room: string, deadlineMs: number): Promise<void> {
    await this.#run(this.#parts.bulk, forgetScript, { room, args: [], deadlineMs });
    this.#known.delete(room);
  }

  #know(room: string, { lineId, nextNumber }: KnownLine): void {
    const known = this.#known.get(room);
    const before = known?.lineId === lineId ? known.nextNumber : 0;
    this.#known.set(room, { lineId, nextNumber: Math.max(before, nextNumber) });
  }

  async #run(
    connection: StoreConnection,
    script: StoreScript,
    call: {
      readonly room: string;
      readonly args: readonly (string | Buffer)[];
      readonly deadlineMs: number;
    },
  ): Promise<ScriptReply> {
    const { room, args, deadlineMs } = call;
    // A brace would end the hash tag.
    const key = `${this.#parts.keyPrefix}{room-${encodeURIComponent(room)}}:head`;
    const reply = await connection.run({ script, keys: [key], args, deadlineMs });
    if (reply === 0) throw new ServiceError("STORE_UNAVAILABLE", noLineYet);
    return reply;
  }
}

/** Packs visits by chunk in the script's format. Also returns the visits in the packed order. */
function packVisits(visits: readonly number[]): {
  readonly visits: readonly number[];
  readonly bytes: Buffer | string;
} {
  if (visits.length === 0) return { visits, bytes: "" };
  const [first = 0] = visits;
  const chunkOf = (number: number): number => Math.floor(number / lineChunkSize);
  const isOneChunk = visits.every((number) => chunkOf(number) === chunkOf(first));
  const sorted = isOneChunk ? visits : visits.toSorted((one, other) => one - other);
  const list = new PackedList(3 * visits.length);
  for (let start = 0; start < sorted.length; ) {
    const chunk = chunkOf(sorted[start] ?? 0);
    let end = start;
    while (end < sorted.length && chunkOf(sorted[end] ?? 0) === chunk) end += 1;
    list.add(chunk);
    list.add(end - start);
    for (; start < end; start += 1) list.addOffset((sorted[start] ?? 0) % lineChunkSize);
  }
  return { visits: sorted, bytes: list.finish() };
}

function packOthers({ renewals, letIns, leaves }: RoomTurn): Buffer | string {
  if (renewals.length + letIns.length + leaves.length === 0) return "";
  const list = new PackedList(3 + 2 * renewals.length + letIns.length + 2 * leaves.length);
  list.add(renewals.length);
  for (const { session, number } of renewals) {
    list.add(session);
    list.add(number);
  }
  list.add(letIns.length);
  for (const number of letIns) list.add(number);
  list.add(leaves.length);
  for (const { number, session = -1 } of leaves) {
    list.add(number);
    list.add(session);
  }
  return list.finish();
}

/** Maximum frees or calls in one run of the script. This many calls block decisions for 2.5 ms. */
const partEntriesMax = 512;

interface StepPart {
  readonly frees: RoomStep["frees"];
  readonly calls: RoomStep["calls"];
  /** Place of the first call of the next part; in the last part, that of the step. */
  readonly calledPlace: number;
  readonly isLast: boolean;
}

function partsOf({ frees, calls, calledPlace }: RoomStep): readonly StepPart[] {
  const parts: StepPart[] = [];
  for (let at = 0; at + partEntriesMax < frees.length; at += partEntriesMax) {
    const some = frees.slice(at, at + partEntriesMax);
    parts.push({ frees: some, calls: [], calledPlace: 0, isLast: false });
  }
  let left = frees.slice(parts.length * partEntriesMax);
  for (let at = 0; at === 0 || at < calls.length; at += partEntriesMax) {
    const some = calls.slice(at, at + partEntriesMax);
    const next = calls[at + partEntriesMax];
    const place = next?.place ?? calledPlace;
    parts.push({ frees: left, calls: some, calledPlace: place, isLast: next === undefined });
    left = [];
  }
  return parts;
}

function packStep(frees: RoomStep["frees"], calls: RoomStep["calls"]): Buffer {
  const list = new PackedList(2 + 3 * (frees.length + calls.length));
  list.add(frees.length);
  for (const free of frees) for (const n of [free.session, free.number, free.word]) list.add(n);
  list.add(calls.length);
  for (const call of calls) for (const n of [call.number, call.place, call.session]) list.add(n);
  return list.finish();
}

function packSessions(sessions: readonly number[]): Buffer {
  return Buffer.from(Uint32Array.from(sessions).buffer).swap32();
}

/** Reads words in big-endian order, as the store keeps them. Missing words are 0. */
function parseWords(reply: ScriptReply, count: number): Uint32Array {
  const bytes = replyBytes(reply);
  if (bytes.length > 4 * count || bytes.length % 4 !== 0) throw new ServiceError("STORE_PROTOCOL");
  const words = new Uint32Array(count);
  const copy = Buffer.from(words.buffer, 0, bytes.length);
  bytes.copy(copy);
  copy.swap32();
  return words;
}

const waiting: LineEntry = { kind: "waiting" };
const gone: LineEntry = { kind: "gone" };

/** The script's code, instead of a session, for a visitor who still waits. */
const waitsCode = -2;
const goneCode = -1;

function parseTurn(reply: ScriptReply, turn: RoomTurn, sent: readonly number[]): RoomTurnAnswer {
  const numbers = new ReplyNumbers(reply);
  const lineId = numbers.take(0, 2 ** 32);
  const second = numbers.take(0, Number.MAX_SAFE_INTEGER) / 1_000;
  const firstNumber = numbers.take(0, numbersMax);
  const joinedCount = numbers.take(0, turn.joinCount);
  const enteredCount = numbers.take(0, joinedCount);
  const enteredSessions = numbers.list(enteredCount, () => numbers.take(0, sessionsMax));
  const entry = (): LineEntry => {
    const session = numbers.take(waitsCode, sessionsMax);
    const usedSecond = numbers.take(0, 2 ** 31);
    if (session === waitsCode) return waiting;
    return session === goneCode ? gone : { kind: "entered", session, usedSecond };
  };
  const odd = new Map<number, LineEntry>();
  const oddCount = numbers.take(0, sent.length);
  for (let i = 0; i < oddCount; i += 1) {
    const number = sent[numbers.take(0, sent.length - 1)] ?? 0;
    odd.set(number, entry());
  }
  const letInEntries = numbers.list(turn.letIns.length, entry);
  const lapsed = new Set<number>();
  const lapsedCount = numbers.take(0, turn.renewals.length);
  for (let i = 0; i < lapsedCount; i += 1) lapsed.add(numbers.take(0, turn.renewals.length - 1));
  numbers.end();
  const entries = turn.visits.map((number) => odd.get(number) ?? waiting);
  const renewed = turn.renewals.map((_, i) => !lapsed.has(i));
  const joined = { firstNumber, joinedCount, enteredSessions };
  return { lineId, second, ...joined, entries, letInEntries, renewed };
}

const headPattern = new RegExp(
  `^${Array(8).fill("(\\d{1,16})").join(" ")} (-1|\\d{1,16})${" (\\d{1,6})".repeat(4)}$`,
);

/** @throws ServiceError STORE_PROTOCOL */
function parseHead(reply: Buffer): RoomHead {
  const page = new PageReader(reply);
  const [lineId = 0, beganMs = 0, ms = 0, nextNumber = 0, calledPlace = 0, term = 0, ...more] = page
    .line(headPattern)
    .map(Number);
  const [endedCount = 0, heldCount = 0, ...rest] = more;
  const [statusMs = 0, leaderLength = 0, secretLength = 0, overrideLength = 0, length = 0] = rest;
  const isBounded = leaderLength <= leaderBytesMax && overrideLength <= overrideBytesMax;
  if (length > statusBytesMax || !isBounded) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  const leaderId = page.text(leaderLength);
  const secret = page.bytes(secretLength);
  const override = parseOverride(page.text(overrideLength));
  const bytes = page.bytes(length);
  if (!page.isAtEnd) throw new ServiceError("STORE_PROTOCOL");
  const published = statusMs < 0 ? undefined : { bytes, second: statusMs / 1_000 };
  const line = { lineId, beganMs, second: ms / 1_000, nextNumber, calledPlace };
  const waits = { endedCount, heldCount };
  return { ...line, waits, term, leaderId, secret, published, override };
}

function parseOverride(text: string): RoomOverride | undefined {
  if (text === "") return undefined;
  const { mode, activeUsersMax, entriesPerMinuteMax, openedEvent } = parseObject(text);
  const known = roomModes.find((one) => one === mode);
  const isSound = [activeUsersMax, entriesPerMinuteMax].every((value) => {
    return value === undefined || (typeof value === "number" && value >= 0);
  });
  const isText = openedEvent === undefined || typeof openedEvent === "string";
  if (known === undefined || !isSound || !isText) throw new ServiceError("STORE_PROTOCOL");
  const numberOf = (value: unknown) => (typeof value === "number" ? value : undefined);
  return {
    mode: known,
    activeUsersMax: numberOf(activeUsersMax),
    entriesPerMinuteMax: numberOf(entriesPerMinuteMax),
    openedEvent,
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Handled below: the text may be anything.
  }
  throw new ServiceError("STORE_PROTOCOL");
}

const [space, minus, zero] = [0x20, 0x2d, 0x30];

/** Number of digits of the largest number that is exact here and in the store. */
const digitsMax = 16;

/** Reads the numbers of a script's reply, separated by spaces. */
class ReplyNumbers {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(reply: ScriptReply) {
    this.#bytes = replyBytes(reply);
    if (this.#bytes.length > turnBytesMax) throw new ServiceError("STORE_PROTOCOL");
  }

  /** Reads the next number, which must be an integer within the bounds. */
  take(min: number, max: number): number {
    const bytes = this.#bytes;
    const isNegative = bytes[this.#at] === minus;
    const start = this.#at + (isNegative ? 1 : 0);
    let at = start;
    let number = 0;
    for (; at < bytes.length && bytes[at] !== space; at += 1) {
      const digit = (bytes[at] ?? 0) - zero;
      number = digit >= 0 && digit <= 9 ? 10 * number + digit : Number.NaN;
    }
    if (isNegative) number = -number;
    const isSound = at > start && at <= start + digitsMax && number >= min && number <= max;
    if (!isSound) throw new ServiceError("STORE_PROTOCOL");
    this.#at = at + 1;
    return number;
  }

  list<T>(count: number, take: () => T): readonly T[] {
    return Array.from({ length: count }, take);
  }

  /** Checks that there are no further numbers. */
  end(): void {
    if (this.#at !== this.#bytes.length + 1) throw new ServiceError("STORE_PROTOCOL");
  }
}
