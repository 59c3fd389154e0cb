import type { Random } from "../../core/base/clock.js";
import type {
  LedgerEntry,
  LedgerStore,
  LedgerSums,
} from "../../store/coordination/ledger-store.js";

/** The sums of a shadow policy that runs in all replicas, as one replica adds to them. */
export class ShadowLedger {
  readonly #store: LedgerStore;
  readonly #replicaId: string;
  #number = 0;
  /** The entry that was added last, and whether it is known to be in. */
  #last: LedgerEntry | undefined;

  constructor({ store, random }: { readonly store: LedgerStore; readonly random: Random }) {
    this.#store = store;
    this.#replicaId = random.id();
  }

  /**
   * Adds counts, once whatever the network does. Answers the sums of all replicas; undefined: the
   * run is over.
   *
   * @throws ServiceError STORE_ codes; the same entry is to be added again then, before any other
   */
  add(entry: LedgerEntry): Promise<LedgerSums | undefined> {
    // The same entry again keeps its number, so that it counts once.
    if (entry !== this.#last) this.#number += 1;
    this.#last = entry;
    return this.#store.add(entry, { replicaId: this.#replicaId, number: this.#number });
  }
}
