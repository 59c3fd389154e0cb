import { isServiceError } from "../../../core/base/errors.js";
import type { Compensation } from "../../../core/limits/compensation.js";
import type { LimitKey } from "../../../core/limits/limit.js";
import type { StoredBucket, StoreOutcome, StoreRequest } from "../../limit-store.js";
import type { GivenBack, SplitPart } from "../../split/split-part.js";
import { SlotRefusal } from "../redis-error.js";

/** Calls that a batch becomes at most while its slot is on the move; the requests beyond fail. */
export const movingCallsMax = 64;

/**
 * The keys of one hash tag in a Redis Cluster. While their slot moves from one node to another,
 * each node runs only scripts whose keys it has all of: a batch over several keys is refused, with
 * nothing charged. Then it is asked again, key by key, which a redirection leads to the right node.
 * A request over several keys is asked as it is, and fails unless they are all in one place.
 */
export class ClusterPart implements SplitPart {
  readonly #store: SplitPart;

  /** @param store the keys of the tag, as on a single server */
  constructor(store: SplitPart) {
    this.#store = store;
  }

  async take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    try {
      return await this.#store.take(batch, deadlineMs);
    } catch (thrown) {
      if (!(thrown instanceof SlotRefusal && thrown.kind === "tryAgain")) throw thrown;
      const groups = groupedByKeys(batch);
      if (groups.length === 1) throw thrown;
      return this.#takeApart(batch, groups, deadlineMs);
    }
  }

  giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack> {
    return this.#store.giveBack(compensations, deadlineMs);
  }

  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    return this.#store.peek(key, deadlineMs);
  }

  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    return this.#store.forget(keys, deadlineMs);
  }

  ping(deadlineMs: number): Promise<void> {
    return this.#store.ping(deadlineMs);
  }

  verify(deadlineMs: number): Promise<void> {
    return this.#store.verify(deadlineMs);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #takeApart(
    batch: readonly StoreRequest[],
    groups: readonly (readonly number[])[],
    deadlineMs: number,
  ): Promise<readonly StoreOutcome[]> {
    const outcomes = batch.map((): StoreOutcome => ({ kind: "failed", code: "STORE_UNAVAILABLE" }));
    const take = async (positions: readonly number[]): Promise<void> => {
      const requests = positions.flatMap((position) => batch[position] ?? []);
      const answers = await this.#takeGroup(requests, deadlineMs);
      positions.forEach((position, i) => {
        const answer = answers[i];
        if (answer !== undefined) outcomes[position] = answer;
      });
    };
    await Promise.all(groups.slice(0, movingCallsMax).map(take));
    return outcomes;
  }

  async #takeGroup(
    requests: readonly StoreRequest[],
    deadlineMs: number,
  ): Promise<readonly StoreOutcome[]> {
    try {
      return await this.#store.take(requests, deadlineMs);
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      const { code } = thrown;
      return requests.map(() => ({ kind: "failed", code }));
    }
  }
}

/** Positions of the requests, those together that are over the very same keys, in order. */
function groupedByKeys(batch: readonly StoreRequest[]): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  batch.forEach(({ charges }, position) => {
    const keys = [...new Set(charges.map(({ key }) => key))].sort();
    const name = JSON.stringify(keys);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [position]);
    else group.push(position);
  });
  return [...groups.values()];
}
