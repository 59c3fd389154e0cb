import type { Random } from "../../core/base/clock.js";
import type {
  LedgerEntry,
  LedgerStore,
  LedgerSums,
} from "../../store/coordination/ledger-store.js";

/** The sums of a shadow policy over all replicas, to which this replica adds. */
export class ShadowLedger {
  readonly #store: LedgerStore;
  readonly #replicaId: string;
  #number = 0;
  /** The last entry that was added, and whether it is known to be stored. */
  #last: LedgerEntry | undefined;

  constructor({ store, random }: { readonly store: LedgerStore; readonly random: Random }) {
    this.#store = store;
    this.#replicaId = random.id();
  }

  /**
   * Adds counts exactly once, even if a response is lost. Returns the sums of all replicas.
   * Undefined: the run has ended.
   *
   * @throws ServiceError STORE_ codes; then the same entry must be added again before any other
   */
  add(entry: LedgerEntry): Promise<LedgerSums | undefined> {
    // A repeated entry keeps its number, so that it counts once.
    if (entry !== this.#last) this.#number += 1;
    this.#last = entry;
    return this.#store.add(entry, { replicaId: this.#replicaId, number: this.#number });
  }
}
