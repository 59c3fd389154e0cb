import { ServiceError } from "../../../core/base/errors.js";
import type { MemberStore } from "../../coordination/member-store.js";
import type { StoreScript } from "../scripts/connection.js";
import type { FleetStore } from "./fleet-script.js";

/** The replicas of a fleet in Redis, in a sorted set. */
export class RedisMembers implements MemberStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async join(
    { replicaId, leaseMs }: Parameters<MemberStore["join"]>[0],
    deadlineMs: number,
  ): Promise<number> {
    const { connection, keyPrefix } = this.#store;
    const keys = [`${keyPrefix}fleet:replicas`];
    const args = [replicaId, String(leaseMs)];
    const reply = await connection.run({ script: joinScript, keys, args, deadlineMs });
    if (typeof reply !== "number") throw new ServiceError("STORE_PROTOCOL");
    return reply;
  }

  async leave(replicaId: string, deadlineMs: number): Promise<void> {
    const { connection, keyPrefix } = this.#store;
    const keys = [`${keyPrefix}fleet:replicas`];
    await connection.run({ script: leaveScript, keys, args: [replicaId], deadlineMs });
  }
}

/**
 * KEYS[1]: the replicas, scored by their last heartbeat, in ms of the store's clock. ARGV: this
 * replica, the lease in ms. Returns how many are live. If the clock has stepped back, scores may be
 * in the future. They become the current time, or dead replicas would be counted until the clock
 * has caught up.
 */
const joinScript: StoreScript = {
  name: "fleet-join",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local key, leaseMs = KEYS[1], tonumber(ARGV[2])
local now = string.format('%.0f', nowMs)
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', nowMs - leaseMs))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
  redis.call('ZADD', key, now, id)
end
redis.call('ZADD', key, now, ARGV[1])
redis.call('PEXPIRE', key, ARGV[2])
return redis.call('ZCARD', key)
`,
};

const leaveScript: StoreScript = {
  name: "fleet-leave",
  text: "return redis.call('ZREM', KEYS[1], ARGV[1])",
};
