import type { Clock } from "../../core/base/clock.js";
import type { PermitBeat, PermitClaim, PermitStore } from "./permit-store.js";

interface PermitRecord {
  readonly number: number;
  readonly heldCount: number;
  readonly neededCount: number;
  readonly untilMs: number;
}

/** Records of one limit, by replica. */
type LimitRecords = Map<string, PermitRecord>;

/** Divides limits among the replicas of one process. */
export class MemoryPermits implements PermitStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #limits = new Map<string, LimitRecords>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async claim(beat: PermitBeat): Promise<readonly (number | undefined)[]> {
    return beat.claims.map((claim) => this.#grant(beat, claim));
  }

  async leave({ replicaId, names }: Parameters<PermitStore["leave"]>[0]): Promise<void> {
    for (const name of names) {
      const records = this.#limits.get(name);
      records?.delete(replicaId);
      if (records?.size === 0) this.#limits.delete(name);
    }
  }

  #grant({ replicaId, number, leaseMs }: PermitBeat, claim: PermitClaim): number | undefined {
    const records = this.#live(claim.name);
    const { limit, heldCount, neededCount } = claim;
    if ((records.get(replicaId)?.number ?? 0) > number) return undefined;
    const own = { number, heldCount, neededCount, untilMs: this.#clock.monotonicMs() + leaseMs };
    records.set(replicaId, own);
    this.#limits.set(claim.name, records);
    const othersHeld = [...records.values()].reduce((sum, one) => sum + one.heldCount, -heldCount);
    const target = targetOf(records, replicaId, limit);
    if (target <= heldCount) return target;
    const granted = Math.max(heldCount, Math.min(target, limit - othersHeld));
    records.set(replicaId, { ...own, heldCount: granted });
    return granted;
  }

  #live(name: string): LimitRecords {
    const nowMs = this.#clock.monotonicMs();
    const records = [...(this.#limits.get(name) ?? [])];
    return new Map(records.filter(([, { untilMs }]) => untilMs > nowMs));
  }
}

/** Max-min fair by need, each as if in need of one at least; the rest evenly. */
function targetOf(records: LimitRecords, replicaId: string, limit: number): number {
  const byNeed = [...records].toSorted(([id, one], [otherId, other]) => {
    return one.neededCount - other.neededCount || (id < otherId ? -1 : 1);
  });
  let left = limit;
  let own = 0;
  let place = 0;
  for (const [i, [id, { neededCount }]] of byNeed.entries()) {
    const given = Math.min(Math.max(neededCount, 1), Math.floor(left / (byNeed.length - i)));
    left -= given;
    if (id !== replicaId) continue;
    own = given;
    place = i;
  }
  const each = Math.floor(left / byNeed.length);
  const isAmongLast = byNeed.length - 1 - place < left - each * byNeed.length;
  return own + each + (isAmongLast ? 1 : 0);
}
