import type { Clock } from "../../core/base/clock.js";
import type { ShareSheet } from "../../core/feedback/feedback.js";
import { lapsedSheet } from "../../core/feedback/feedback-loop.js";
import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import type { GateVerdict } from "./fleet-gates.js";
import type { FleetSheet } from "./sheet-codec.js";
import { compareRanks, lowestRank, type SheetRank } from "./sheet-rank.js";

/** What happens to the sheet that holds here; each is told once. */
export type SheetEvent =
  /** The first sheet of a reign holds. */
  | { readonly kind: "leaderChanged"; readonly epoch: number; readonly leaderId: string }
  /** Nobody has renewed the sheet for too long: Envoys' configured defaults hold. */
  | { readonly kind: "sheetLost"; readonly epoch: number }
  | { readonly kind: "sheetFound"; readonly epoch: number };

/** A sheet that holds. */
export interface HeldSheet {
  readonly fleet: FleetSheet;
  /** When it was made, on the monotonic clock of who holds it. */
  readonly atMs: number;
}

/** What a `SheetBoard` is made of. */
export interface SheetBoardOptions {
  readonly clock: Clock;
  /** How long a sheet holds that nobody renews. Default `sheetAgeMsMax`. */
  readonly ageMsMax?: number;
  readonly onEvent?: (event: SheetEvent) => void;
}

/** How long a sheet holds that nobody renews: as long as Envoys keep what they were sent. */
export const sheetAgeMsMax = defaultLayerTtlMs;

/**
 * The sheet that holds at one replica. Once a sheet of some reign was seen, none of an older reign
 * is handed out, nor an older sheet of the same one.
 */
export class SheetBoard {
  readonly #options: SheetBoardOptions;
  readonly #listeners = new Set<() => void>();
  #held: HeldSheet | undefined;
  #seen: SheetRank = lowestRank;
  #isLost = false;
  /** Sheets that were older than what had been seen. */
  olderCount = 0;

  constructor(options: SheetBoardOptions) {
    this.#options = options;
  }

  /** The highest rank that was seen. */
  get seen(): SheetRank {
    return this.#seen;
  }

  /** How long ago the newest sheet was made, in milliseconds; undefined before the first. */
  get ageMs(): number | undefined {
    return this.#held && this.#options.clock.monotonicMs() - this.#held.atMs;
  }

  /** The sheet that holds now; undefined: none, or one that is too old. */
  current(): ShareSheet | undefined {
    return this.#look()?.sheet;
  }

  /** What holds now, or else what is still worth knowing of the newest sheet there was. */
  lastKnown(): FleetSheet | undefined {
    const lapsed = this.#held && {
      sheet: lapsedSheet(this.#held.fleet.sheet),
      verdicts: new Map(),
    };
    return this.#look() ?? lapsed;
  }

  /** Everything that holds now, and when it was made on our monotonic clock. */
  held(): HeldSheet | undefined {
    const fleet = this.#look();
    const atMs = this.#held?.atMs;
    return fleet === undefined || atMs === undefined ? undefined : { fleet, atMs };
  }

  /** What the fleet says of a service's gate; undefined: nothing that holds. */
  verdict(service: string): GateVerdict | undefined {
    return this.#look()?.verdicts.get(service);
  }

  /** Calls back after every new sheet, until the answer is called. */
  onSheet(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * Takes a sheet over. False for one that is older than what was seen.
   *
   * @param atMs when it was made, on our monotonic clock
   */
  take(fleet: FleetSheet, atMs: number): boolean {
    const { sheet } = fleet;
    if (compareRanks(sheet, this.#seen) < 0) {
      this.olderCount += 1;
      return false;
    }
    const { epoch, leaderId } = sheet;
    const before = this.#held?.fleet.sheet;
    this.#held = { fleet, atMs };
    this.#seen = sheet;
    // The store keeps the last sheet for long: who comes up finds one that held for others once.
    const isLapsed = this.#isLapsed(atMs);
    if (before === undefined && isLapsed) this.#isLost = true;
    const isNewReign = before?.epoch !== epoch || before.leaderId !== leaderId;
    if (isNewReign && !isLapsed)
      this.#options.onEvent?.({ kind: "leaderChanged", epoch, leaderId });
    this.#look();
    for (const listener of [...this.#listeners]) listener();
    return true;
  }

  /** There is a sheet of this rank, which cannot be had: what is older is not handed out. */
  noteSeen(rank: SheetRank): void {
    if (compareRanks(rank, this.#seen) > 0) this.#seen = rank;
    this.#look();
  }

  /** What holds, and tells when that changes. */
  #look(): FleetSheet | undefined {
    const held = this.#held;
    if (held === undefined) return undefined;
    const { sheet } = held.fleet;
    const { onEvent } = this.#options;
    const isOutranked = compareRanks({ ...sheet, version: 0 }, { ...this.#seen, version: 0 }) < 0;
    const isLost = isOutranked || this.#isLapsed(held.atMs);
    if (isLost !== this.#isLost) {
      this.#isLost = isLost;
      onEvent?.({ kind: isLost ? "sheetLost" : "sheetFound", epoch: sheet.epoch });
    }
    return isLost ? undefined : held.fleet;
  }

  #isLapsed(atMs: number): boolean {
    const { clock, ageMsMax = sheetAgeMsMax } = this.#options;
    return clock.monotonicMs() - atMs >= ageMsMax;
  }
}
