import type { Cancel, Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import { recordsMax } from "../../store/coordination/record-store.js";

/** What `EndedSessions` need. */
export interface EndedSessionsParts {
  readonly records: Pick<SharedRecords, "list" | "change">;
  readonly clock: Pick<Clock, "epochUs" | "schedule">;
}

/** Time until a failed report to other replicas is retried, in milliseconds. */
const retryMs = 1_000;

/** Number of the oldest records that a sign-out examines, to remove those that have expired. */
const oldestCount = 10;

/**
 * Sessions that users ended early, as known to all replicas of a store: each is a record until it
 * would have expired. While the store is unreachable, only this replica knows.
 */
export class EndedSessions {
  readonly #parts: EndedSessionsParts;
  /** Sessions ended here. The other replicas may not know of them yet. */
  readonly #untold = new Map<string, number>();
  #cancel: Cancel | undefined;
  #isClosed = false;

  constructor(parts: EndedSessionsParts) {
    this.#parts = parts;
  }

  has(id: string): boolean {
    return this.#untold.has(id) || this.#parts.records.list("session").has(id);
  }

  /**
   * Ends a session, on this replica at once.
   *
   * @returns whether the other replicas know; if not, they are told later. Never rejects
   */
  async end({ id, untilEpochMs }: { readonly id: string; readonly untilEpochMs: number }) {
    const [oldest] = this.#untold.keys();
    if (oldest !== undefined && this.#untold.size >= recordsMax.session)
      this.#untold.delete(oldest);
    this.#untold.set(id, untilEpochMs);
    await this.#tell();
    return !this.#untold.has(id);
  }

  /** Stops telling other replicas. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  async #tell(): Promise<void> {
    this.#cancel?.();
    try {
      for (const [id, untilEpochMs] of [...this.#untold]) {
        if (untilEpochMs > this.#nowMs()) await this.#record(id, untilEpochMs);
        this.#untold.delete(id);
      }
    } catch {
      // The store is unreachable.
      this.#cancel?.();
      if (this.#isClosed) return;
      this.#cancel = this.#parts.clock.schedule(retryMs, () => void this.#tell());
    }
  }

  async #record(id: string, untilEpochMs: number): Promise<void> {
    const { records } = this.#parts;
    const known = records.list("session");
    const isFull = known.size >= recordsMax.session;
    const common = { kind: "session", audit: undefined } as const;
    for (const [i, old] of [...known.values()].slice(0, oldestCount).entries()) {
      const isOver = Number(old.value["untilEpochMs"]) <= this.#nowMs();
      if (!isOver && !(isFull && i === 0)) continue;
      const { id: of, version } = old;
      await records.change({ ...common, id: of, value: undefined, expectedVersion: version });
    }
    const value = { untilEpochMs };
    const { kind } = await records.change({ ...common, id, value, expectedVersion: 0 });
    if (kind === "full") throw new ServiceError("STORE_FULL");
  }

  #nowMs(): number {
    return this.#parts.clock.epochUs() / 1_000;
  }
}
