import type { ReservationId } from "./budget-ledger.js";

/** 1 to 48 characters, so that an id has at most 64. */
const holderPattern = /^[0-9A-Za-z._-]{1,48}$/;

/**
 * Returns the id of a reservation: `<holder>.<number>`. It shows whose it is when it is settled.
 *
 * @param holder see `isHolder`. A process generates a new one when it starts
 * @param number integer, 0 to 10^15. Increases: stores look for known ones only below the highest
 */
export function reservationId(holder: string, number: number): ReservationId {
  return `${holder}.${number}` as ReservationId;
}

/** Parses an id, as returned by Envoys. Undefined if the text is not an id. */
export function readReservationId(text: string): ReservationId | undefined {
  return idPattern.test(text) ? (text as ReservationId) : undefined;
}

const idPattern = /^[0-9A-Za-z._-]{1,48}\.\d{1,15}$/;

/** Reports whether a name can be a holder's: 1 to 48 characters of `[0-9A-Za-z._-]`. */
export function isHolder(name: string): boolean {
  return holderPattern.test(name);
}

/** Returns the holder of a reservation. */
export function holderOf(id: ReservationId): string {
  return id.slice(0, id.lastIndexOf("."));
}

/** Reports whether a reservation belongs to a holder. */
export function isOf(holder: string, id: ReservationId): boolean {
  return id.lastIndexOf(".") === holder.length && id.startsWith(holder);
}

/** Returns the number of a reservation. */
export function numberOf(id: ReservationId): number {
  return Number(id.slice(id.lastIndexOf(".") + 1));
}
