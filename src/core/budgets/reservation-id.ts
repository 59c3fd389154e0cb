import { assert } from "../base/errors.js";
import type { ReservationId } from "./budget-ledger.js";

/** 1 to 48 characters; so an id has at most 64. */
const holderPattern = /^[0-9A-Za-z._-]{1,48}$/;

/**
 * Names a reservation: `<holder>.<number>`, so that whoever settles it knows whose it is.
 *
 * @param holder 1 to 48 characters of `[0-9A-Za-z._-]`; a process draws a new one when it starts
 * @param number whole, 0 to 10^15; grows, so that a reservation which comes again, or too late, is
 *   not made
 */
export function reservationId(holder: string, number: number): ReservationId {
  assert(isHolder(holder), "a holder's name can be part of an id");
  return `${holder}.${number}` as ReservationId;
}

/** The id that a text is; undefined where it is none. Texts come back from Envoys. */
export function readReservationId(text: string): ReservationId | undefined {
  return idPattern.test(text) ? (text as ReservationId) : undefined;
}

const idPattern = /^[0-9A-Za-z._-]{1,48}\.\d{1,15}$/;

/** Whether reservations can be of somebody with this name. */
export function isHolder(name: string): boolean {
  return holderPattern.test(name);
}

/** Whose reservation it is. */
export function holderOf(id: ReservationId): string {
  return id.slice(0, id.lastIndexOf("."));
}

/** The number of a reservation. */
export function numberOf(id: ReservationId): number {
  return Number(id.slice(id.lastIndexOf(".") + 1));
}
