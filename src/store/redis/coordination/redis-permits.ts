import type { PermitAnswer, PermitBeat, PermitStore } from "../../coordination/permit-store.js";
import type { FleetStore } from "./fleet-script.js";
import { leaveSharesScript, shareScript } from "./permit-script.js";
import { parseNumbers } from "./reply-numbers.js";

/** What the script answers to a heartbeat that was overtaken by a later one. */
const overtaken = -1;

/** Divides limits in Redis: a hash for each, all under one tag. */
export class RedisPermits implements PermitStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async claim(
    beat: PermitBeat,
    deadlineMs: number,
  ): Promise<readonly (PermitAnswer | undefined)[]> {
    const { replicaId, number, leaseMs, claims } = beat;
    const numbers = claims.flatMap(({ limit, heldCount, neededCount, isLearned }) => {
      return [limit, heldCount, neededCount, isLearned ? 1 : 0];
    });
    const reply = await this.#store.connection.run({
      script: shareScript,
      keys: this.#keys(claims.map(({ name }) => name)),
      args: [replicaId, ...[number, leaseMs, ...numbers].map(String)],
      deadlineMs,
    });
    const answers = parseNumbers(reply, 3 * claims.length);
    return claims.map((claim, i) => {
      const own = answers.slice(3 * i, 3 * i + 3);
      const [grantedCount = overtaken, othersInUseCount = 0, limit = claim.limit] = own;
      return grantedCount === overtaken ? undefined : { grantedCount, othersInUseCount, limit };
    });
  }

  async leave(
    { replicaId, names }: Parameters<PermitStore["leave"]>[0],
    deadlineMs: number,
  ): Promise<void> {
    const call = { script: leaveSharesScript, keys: this.#keys(names), args: [replicaId] };
    await this.#store.connection.run({ ...call, deadlineMs });
  }

  #keys(names: readonly string[]): readonly string[] {
    return names.map((name) => `${this.#store.keyPrefix}{permits}:${name}`);
  }
}
