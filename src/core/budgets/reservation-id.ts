import type { ReservationId } from "./budget-ledger.js";

/** 1 to 48 characters; so an id has at most 64. */
const holderPattern = /^[0-9A-Za-z._-]{1,48}$/;

/**
 * Names a reservation: `<holder>.<number>`, so that whoever settles it knows whose it is.
 *
 * @param holder see `isHolder`; a process draws a new one when it starts
 * @param number whole, 0 to 10^15; grows: stores look for earlier ones only below the highest
 */
export function reservationId(holder: string, number: number): ReservationId {
  return `${holder}.${number}` as ReservationId;
}

/** The id that a text is; undefined where it is none. Texts come back from Envoys. */
export function readReservationId(text: string): ReservationId | undefined {
  return idPattern.test(text) ? (text as ReservationId) : undefined;
}

const idPattern = /^[0-9A-Za-z._-]{1,48}\.\d{1,15}$/;

/** Whether reservations can be of somebody with this name: 1 to 48 of `[0-9A-Za-z._-]`. */
export function isHolder(name: string): boolean {
  return holderPattern.test(name);
}

/** Whose reservation it is. */
export function holderOf(id: ReservationId): string {
  return id.slice(0, id.lastIndexOf("."));
}

/** Whether a reservation is a holder's. */
export function isOf(holder: string, id: ReservationId): boolean {
  return id.lastIndexOf(".") === holder.length && id.startsWith(holder);
}

/** The number of a reservation. */
export function numberOf(id: ReservationId): number {
  return Number(id.slice(id.lastIndexOf(".") + 1));
}
