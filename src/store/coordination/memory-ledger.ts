import type { Clock } from "../../core/base/clock.js";
import {
  type LedgerAuthor,
  type LedgerEntry,
  type LedgerStore,
  type LedgerSums,
  ledgerKeptSeconds,
  ledgerNamesMax,
} from "./ledger-store.js";

interface Run {
  readonly sums: Map<string, number>;
  /** Of the last entry of each replica. */
  readonly numbers: Map<string, number>;
  endsMs: number;
}

/** Runs at a time; the oldest one leaves. */
const runsMax = 16;

/** The sums of the replicas of one process. */
export class MemoryLedger implements LedgerStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #runs = new Map<string, Run>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async add(entry: LedgerEntry, author: LedgerAuthor): Promise<LedgerSums | undefined> {
    const run = this.#runOf(entry);
    if (run === undefined) return undefined;
    if (author.number > (run.numbers.get(author.replicaId) ?? 0)) {
      run.numbers.set(author.replicaId, author.number);
      for (const [name, count] of entry.counts) {
        if (!run.sums.has(name) && run.sums.size >= ledgerNamesMax) continue;
        run.sums.set(name, (run.sums.get(name) ?? 0) + count);
      }
    }
    return new Map(run.sums);
  }

  #runOf({ run: name, begins, isLookedAt }: LedgerEntry): Run | undefined {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { endsMs }] of this.#runs) if (endsMs <= nowMs) this.#runs.delete(id);
    const known = this.#runs.get(name);
    if (known === undefined && !begins) return undefined;
    const endsMs = nowMs + 1_000 * ledgerKeptSeconds;
    const run = known ?? { sums: new Map(), numbers: new Map(), endsMs };
    if (isLookedAt) run.endsMs = endsMs;
    if (known === undefined) this.#runs.set(name, run);
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= runsMax) break;
      this.#runs.delete(oldest);
    }
    return run;
  }
}
