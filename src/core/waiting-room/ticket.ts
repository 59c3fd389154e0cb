import { decodeBase64, encodeBase64 } from "../base/base64.js";
import type { WaitRange } from "./room-line.js";

/** A place in a line, as in a cookie. */
export interface WaitingTicket {
  readonly kind: "waiting";
  readonly lineId: number;
  /** Below 2^48. */
  readonly number: number;
  /** When the visitor joined, in whole seconds of the line, below 2^31. */
  readonly second: number;
  /** The range that was announced when the visitor joined. Undefined: none was known. */
  readonly announced: AnnouncedWait | undefined;
}

/** A session of a visitor who has entered. */
export interface SessionTicket {
  readonly kind: "session";
  readonly lineId: number;
  readonly number: number;
  /** Its index in the store, below 2^31. */
  readonly session: number;
  /** When it was last used, as known to the store, in whole seconds of the line, below 2^31. */
  readonly second: number;
}

/** The content of a cookie. Times and numbers do not identify the visitor. */
export type Ticket = WaitingTicket | SessionTicket;

/** A range, and the `RoomStatus.rangeFactor` by which it was widened. */
export interface AnnouncedWait extends WaitRange {
  readonly rangeFactor: number;
}

/** A key that signs tickets. */
export interface TicketKey {
  /** 0 to 255. Distinguishes keys before a MAC is computed. Two keys may have the same. */
  readonly id: number;
  /** At least 16 bytes: HMAC-SHA-256 in production. */
  mac(bytes: Uint8Array): Uint8Array;
}

/** What a ticket is signed for, besides its own fields. It is not in the ticket. */
export interface TicketScope {
  /** The room's name. */
  readonly room: string;
  /** The part of the caller's address that the ticket is bound to. Undefined: none. */
  readonly address: string | undefined;
}

/** Bytes of a ticket's signature: 128 bits. */
const macBytes = 16;

/** Maximum characters of a ticket. Longer texts are refused before they are decoded. */
export const ticketLengthMax = 56;

/**
 * Encodes a ticket as text: base64url of its fields and of the first 16 bytes of their MAC. They
 * fill whole characters, so that no two texts are the same ticket. Numbers are big-endian:
 *
 *     1 kind, 1 key id, 4 line, 6 number, 4 second
 *     a session:  4 session
 *     a place:    3 x 3 low, middle and high second of its range, 1 factor; all ones: unknown
 *     16 MAC of all of it and the scope
 *
 * A session has 48 characters, a place 56.
 */
export function encodeTicket(ticket: Ticket, scope: TicketScope, key: TicketKey): string {
  const fields = [kindBytes[ticket.kind], key.id & 0xff];
  put(fields, ticket.lineId, 4);
  put(fields, ticket.number, 6);
  put(fields, ticket.second, 4);
  if (ticket.kind === "session") put(fields, ticket.session, 4);
  else putAnnounced(fields, ticket.announced);
  const mac = key.mac(signedBytes(fields, scope)).subarray(0, macBytes);
  const text = encodeBase64(Uint8Array.from([...fields, ...mac]));
  return text.replaceAll("+", "-").replaceAll("/", "_");
}

/**
 * Decodes a ticket. Undefined: the text is not a ticket, or no key has signed it for this scope.
 * Never throws. The caller checks whether the line is the present one, and the ticket not too old.
 */
export function decodeTicket(
  text: string,
  scope: TicketScope,
  keys: readonly TicketKey[],
): Ticket | undefined {
  if (text.length > ticketLengthMax || !base64Url.test(text)) return undefined;
  const bytes = decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/")) ?? new Uint8Array();
  const kind = bytes[0] === kindBytes.session ? "session" : "waiting";
  if (bytes[0] !== kindBytes[kind] || bytes.length !== fieldBytes[kind] + macBytes) {
    return undefined;
  }
  const fields = bytes.subarray(0, fieldBytes[kind]);
  const signed = signedBytes(fields, scope);
  const mac = bytes.subarray(fieldBytes[kind]);
  const isSigned = keys.some((key) => key.id === fields[1] && isEqual(key.mac(signed), mac));
  return isSigned ? ticketOf(kind, fields) : undefined;
}

const base64Url = /^[A-Za-z0-9_-]*$/;

const kindBytes = { waiting: 1, session: 2 } as const;

const fieldBytes = { waiting: 26, session: 20 } as const;

/** Represents a range that is not known. */
const unknownSeconds = 0xff_ffff;

const unknownRange: WaitRange = {
  lowSeconds: unknownSeconds,
  middleSeconds: unknownSeconds,
  highSeconds: unknownSeconds,
};

/** Maximum seconds of a range: half a year. */
const announcedSecondsMax = unknownSeconds - 1;

/** Steps of a factor's byte for each doubling; 128 is 1. */
const factorStepsPerDoubling = 16;

function ticketOf(kind: Ticket["kind"], fields: Uint8Array): Ticket {
  const lineId = take(fields, 2, 4);
  const number = take(fields, 6, 6);
  const second = take(fields, 12, 4);
  if (kind === "session") return { kind, lineId, number, second, session: take(fields, 16, 4) };
  return { kind, lineId, number, second, announced: takeAnnounced(fields) };
}

function putAnnounced(fields: number[], announced: AnnouncedWait | undefined): void {
  const { lowSeconds, middleSeconds, highSeconds } = announced ?? unknownRange;
  for (const seconds of [
    Math.floor(lowSeconds),
    Math.round(middleSeconds),
    Math.ceil(highSeconds),
  ]) {
    put(fields, Math.min(announced ? announcedSecondsMax : unknownSeconds, seconds), 3);
  }
  const doublings = Math.log2(announced?.rangeFactor ?? 1);
  put(fields, Math.max(0, Math.min(255, Math.round(128 + factorStepsPerDoubling * doublings))), 1);
}

function takeAnnounced(fields: Uint8Array): AnnouncedWait | undefined {
  const lowSeconds = take(fields, 16, 3);
  if (lowSeconds > announcedSecondsMax) return undefined;
  return {
    lowSeconds,
    middleSeconds: take(fields, 19, 3),
    highSeconds: take(fields, 22, 3),
    rangeFactor: 2 ** ((take(fields, 25, 1) - 128) / factorStepsPerDoubling),
  };
}

function put(fields: number[], value: number, bytes: number): void {
  for (let at = bytes - 1; at >= 0; at -= 1) fields.push(Math.floor(value / 256 ** at) % 256);
}

function take(fields: Uint8Array, from: number, bytes: number): number {
  return fields.subarray(from, from + bytes).reduce((value, byte) => value * 256 + byte, 0);
}

/** No two scopes give the same bytes: room names have no line feed, and fields a fixed length. */
function signedBytes(fields: ArrayLike<number>, { room, address }: TicketScope): Uint8Array {
  const text = address === undefined ? room : `${room}\n${address}`;
  const bytes = new Uint8Array(fields.length + 2 * text.length);
  bytes.set(fields);
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    bytes[fields.length + 2 * i] = unit >> 8;
    bytes[fields.length + 2 * i + 1] = unit & 0xff;
  }
  return bytes;
}

/** Compares in constant time, wherever they differ. */
function isEqual(mac: Uint8Array, expected: Uint8Array): boolean {
  let difference = 0;
  for (let i = 0; i < macBytes; i += 1) difference |= (mac[i] ?? 0) ^ (expected[i] ?? 0);
  return difference === 0;
}
