import type { Clock } from "../../core/base/clock.js";
import { fairShares } from "../../core/feedback/fair-share.js";
import type { PermitAnswer, PermitBeat, PermitClaim, PermitStore } from "./permit-store.js";

interface PermitRecord {
  readonly number: number;
  readonly heldCount: number;
  readonly neededCount: number;
  readonly untilMs: number;
  /** Infinity if the limit is not learned, since all replicas then report the same limit. */
  readonly learnedLimit: number;
}

/** Records of one limit, by replica. */
type LimitRecords = Map<string, PermitRecord>;

/** Divides limits among the replicas of one process, such as simulated ones. */
export class MemoryPermits implements PermitStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #limits = new Map<string, LimitRecords>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async claim(beat: PermitBeat): Promise<readonly (PermitAnswer | undefined)[]> {
    return beat.claims.map((claim) => this.answer(beat, claim));
  }

  async leave({ replicaId, names }: Parameters<PermitStore["leave"]>[0]): Promise<void> {
    for (const name of names) this.#limits.get(name)?.delete(replicaId);
  }

  /** Answers one claim of a heartbeat. */
  answer(
    { replicaId, number, leaseMs }: Omit<PermitBeat, "claims">,
    claim: PermitClaim,
  ): PermitAnswer | undefined {
    const records = this.#live(claim.name);
    const { heldCount, neededCount } = claim;
    if ((records.get(replicaId)?.number ?? 0) > number) return undefined;
    const learnedLimit = claim.isLearned ? claim.limit : Number.POSITIVE_INFINITY;
    const untilMs = this.#clock.monotonicMs() + leaseMs;
    const own = { number, heldCount, neededCount, untilMs, learnedLimit };
    records.set(replicaId, own);
    this.#limits.set(claim.name, records);
    const others = [...records].filter(([id]) => id !== replicaId).map(([, record]) => record);
    const limit = Math.min(claim.limit, ...others.map((one) => one.learnedLimit));
    const othersHeld = sumOf(others, ({ heldCount: held }) => held);
    const othersInUseCount = sumOf(others, (one) => Math.min(one.heldCount, one.neededCount));
    const target = targetOf(records, replicaId, limit);
    const room = Math.max(heldCount, limit - othersHeld);
    const grantedCount = Math.min(target, room);
    if (grantedCount > heldCount) records.set(replicaId, { ...own, heldCount: grantedCount });
    return { grantedCount, othersInUseCount, limit };
  }

  #live(name: string): LimitRecords {
    const nowMs = this.#clock.monotonicMs();
    const records = [...(this.#limits.get(name) ?? [])];
    return new Map(records.filter(([, { untilMs }]) => untilMs > nowMs));
  }
}

function sumOf(
  records: readonly PermitRecord[],
  countOf: (record: PermitRecord) => number,
): number {
  return records.reduce((sum, record) => sum + countOf(record), 0);
}

/** Max-min fair share by need (at least one), those who need most first; the rest evenly. */
function targetOf(records: LimitRecords, replicaId: string, limit: number): number {
  const byNeed = [...records].toSorted(([id, one], [otherId, other]) => {
    return other.neededCount - one.neededCount || (id > otherId ? -1 : 1);
  });
  const divided = (count: number, demandOf: (record: PermitRecord) => number): readonly number[] =>
    fairShares(
      count,
      byNeed.map(([, record]) => ({ demand: demandOf(record), floor: 0, weight: 1 })),
    );
  const needed = divided(limit, ({ neededCount }) => Math.max(neededCount, 1));
  const left = limit - needed.reduce((sum, count) => sum + count, 0);
  const spare = divided(left, () => left);
  const place = byNeed.findIndex(([id]) => id === replicaId);
  return (needed[place] ?? 0) + (spare[place] ?? 0);
}
