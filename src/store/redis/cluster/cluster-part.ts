import { isServiceError } from "../../../core/base/errors.js";
import type { Compensation } from "../../../core/limits/compensation.js";
import type { LimitKey } from "../../../core/limits/limit.js";
import type { StoredBucket, StoreOutcome, StoreRequest } from "../../limit-store.js";
import type { GivenBack, SplitPart } from "../../split/split-part.js";
import { SlotRefusal } from "../redis-error.js";

/** Maximum calls per batch while its slot is being moved. The requests beyond them fail. */
export const movingCallsMax = 64;

/**
 * The keys of one hash tag in a Redis Cluster. While their slot is being moved to another node,
 * each node runs only scripts of which it has all keys. A batch over several keys is refused, and
 * nothing is charged. It is then repeated key by key, and redirections lead to the right node. A
 * request over several keys is not divided, and fails unless all keys are on one node.
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

/** Returns positions of the requests, grouped by exactly the same keys, in order. */
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
