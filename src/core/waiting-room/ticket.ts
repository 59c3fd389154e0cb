import type { WaitRange } from "./room-line.js";

/** A place in a line, as a cookie carries it. */
export interface WaitingTicket {
  readonly kind: "waiting";
  /** `roomHash` of the room's name. */
  readonly room: number;
  readonly lineId: number;
  /** Below 2^48. */
  readonly number: number;
  /** When the visitor joined, in seconds of the line, below 2^31. */
  readonly second: number;
  /** Of the caller's address: see `addressHash`. Undefined: the ticket is bound to none. */
  readonly address: number | undefined;
  /** The range that was announced when the visitor joined; undefined: none was known. */
  readonly announced: AnnouncedWait | undefined;
}

/** A session of a visitor who has entered. */
export interface SessionTicket {
  readonly kind: "session";
  readonly room: number;
  readonly lineId: number;
  readonly number: number;
  /** Its index in the store, below 2^31. */
  readonly session: number;
  /** When it was used last as far as the store knows, in seconds of the line, below 2^31. */
  readonly second: number;
  readonly address: number | undefined;
}

export type Ticket = WaitingTicket | SessionTicket;

/** A range and the `RoomStatus.rangeFactor` that it was widened by. */
export interface AnnouncedWait extends WaitRange {
  readonly rangeFactor: number;
}

/** A key that signs tickets. */
export interface TicketKey {
  /** 0 to 255: tells keys apart before anything is computed. Different keys may share one. */
  readonly id: number;
  /** At least 16 bytes; HMAC-SHA-256 in production. */
  mac(bytes: Uint8Array): Uint8Array;
}

/** Characters of a ticket at most. */
export const ticketLengthMax = 96;

/** Base64url of the ticket and 16 bytes of MAC: at most `ticketLengthMax` characters. */
export declare function encodeTicket(ticket: Ticket, key: TicketKey): string;

/**
 * A ticket's text as a ticket of this room; undefined: it is none, or none of the keys signed it.
 * Whether its line is the room's present one, and whether it is too old, is the caller's to see.
 */
export declare function decodeTicket(
  text: string,
  expected: { readonly room: number; readonly keys: readonly TicketKey[] },
): Ticket | undefined;

/** 32 bits of a room's name. */
export declare function roomHash(name: string): number;
