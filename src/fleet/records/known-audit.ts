import type { AuditText } from "../../store/coordination/record-store.js";

/** Entries of the audit log that a replica keeps: the newest ones. */
export const keptAuditMax = 500;

/** The most bytes of them, as UTF-16 units of JSON: far above what 500 ordinary ones have. */
export const keptAuditCharsMax = 4_194_304;

/** What a replica knows of the audit log, so that a store which lost it gets it back. */
export class KnownAudit {
  /** The newest first. */
  #entries: readonly AuditText[] = [];
  #isStale = false;

  /** The number up to which entries are known; 0: all are to be read. */
  get since(): number {
    return this.#isStale ? 0 : (this.#entries[0]?.number ?? 0);
  }

  /** What the store lacks is looked for among these, the oldest first. */
  get oldestFirst(): readonly AuditText[] {
    return this.#entries.toReversed();
  }

  /** @param newer what was read since `since`, the newest first */
  learn(newer: readonly AuditText[]): void {
    if (newer.length === 0) return;
    const all = this.#isStale ? newer : [...newer, ...this.#entries];
    let chars = 0;
    const end = all.findIndex(({ text }) => {
      chars += text.length;
      return chars > keptAuditCharsMax;
    });
    this.#entries = all.slice(0, Math.min(keptAuditMax, end < 0 ? all.length : end));
    this.#isStale = false;
  }

  /** The store has numbered them anew: they hold until they are read again. */
  renumber(): void {
    this.#isStale = true;
  }
}
