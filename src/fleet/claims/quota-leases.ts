import type { Random } from "../../core/base/clock.js";
import type { LeasesQuotas, QuotaLeaseAnswer, QuotaLeaseAsk } from "../../core/quota/quota.js";
import type { QuotaStore } from "../../store/coordination/quota-store.js";

/** The dependencies of `QuotaLeases`. */
export interface QuotaLeasesParts {
  readonly store: QuotaStore;
  readonly random: Random;
}

/**
 * Divides pools among the replicas of a store. A stopping replica sends nothing: the assignments of
 * its Envoys stay valid, and so does its lease.
 */
export class QuotaLeases implements LeasesQuotas {
  readonly #store: QuotaStore;
  readonly #id: string;
  #claimCount = 0;

  constructor({ store, random }: QuotaLeasesParts) {
    this.#store = store;
    this.#id = random.id();
  }

  exchange(asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]> {
    this.#claimCount += 1;
    return this.#store.exchange({ replicaId: this.#id, number: this.#claimCount, asks });
  }
}
