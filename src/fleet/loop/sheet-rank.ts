/** Who made a sheet, and which of its sheets it is. */
export interface SheetRank {
  /** Of the leader's reign: a whole number from 1. */
  readonly epoch: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  /** Grows with each sheet of a reign. */
  readonly version: number;
}

/** The rank below all others: of who has seen no sheet yet. */
export const lowestRank: SheetRank = { epoch: 0, leaderId: "0", version: 0 };

/**
 * Below 0 where the first is older than the second, 0 where they are the same. By epoch, then by
 * the leader's name, then by version: two leaders share an epoch only where a store has lost what
 * it was told, and then all have to agree on one of them.
 */
export function compareRanks(one: SheetRank, other: SheetRank): number {
  if (one.epoch !== other.epoch) return one.epoch - other.epoch;
  if (one.leaderId !== other.leaderId) return one.leaderId < other.leaderId ? -1 : 1;
  return one.version - other.version;
}

/** As the store holds it. Example: `7 5f3a 42`. */
export function rankText({ epoch, leaderId, version }: SheetRank): string {
  return `${epoch} ${leaderId} ${version}`;
}

/** Reads it back; undefined for a text that is none. */
export function parseRank(text: string): SheetRank | undefined {
  const [, epoch, leaderId, version] = rankPattern.exec(text) ?? [];
  if (epoch === undefined || leaderId === undefined || version === undefined) return undefined;
  return { epoch: Number(epoch), leaderId, version: Number(version) };
}

/** Numbers of 15 digits are exact, here and in the store. */
const rankPattern = /^(\d{1,15}) ([0-9a-f]{1,64}) (\d{1,15})$/;
