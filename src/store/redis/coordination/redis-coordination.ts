import type { Clock, Random } from "../../../core/base/clock.js";
import type { SharedCoordination } from "../../coordination/coordination-store.js";
import type { RedisConnections } from "../connections.js";
import { RedisBudgets } from "./redis-budgets.js";
import { RedisLedger } from "./redis-ledger.js";
import { RedisLoop } from "./redis-loop.js";
import { RedisMembers } from "./redis-members.js";
import { RedisNumbers } from "./redis-numbers.js";
import { RedisPermits } from "./redis-permits.js";
import { RedisQuestions } from "./redis-questions.js";
import { RedisQuotas } from "./redis-quotas.js";
import { RedisRecords } from "./redis-records.js";
import { RedisRooms } from "./redis-rooms.js";
import { RedisSignals } from "./redis-signals.js";

interface RedisCoordinationParts {
  readonly connections: Pick<RedisConnections, "decision" | "fleet" | "background">;
  readonly clock: Clock;
  readonly random: Random;
  /** Replicas with the same prefix on the same store are one fleet. */
  readonly keyPrefix: string;
}

/** Creates coordination over Redis. Heartbeats never wait for large data. */
export function createRedisCoordination(parts: RedisCoordinationParts): SharedCoordination {
  const { connections, ...common } = parts;
  const heartbeats = { ...common, connection: connections.fleet };
  const bulk = { ...common, connection: connections.background };
  return {
    isShared: true,
    records: new RedisRecords(bulk),
    loop: new RedisLoop({ heartbeats, bulk }),
    members: new RedisMembers(heartbeats),
    permits: new RedisPermits(heartbeats),
    quotas: new RedisQuotas(heartbeats),
    questions: new RedisQuestions(bulk),
    signals: new RedisSignals(bulk),
    ledger: new RedisLedger(bulk),
    rooms: new RedisRooms({
      turns: connections.decision,
      heartbeats: connections.fleet,
      bulk: connections.background,
      keyPrefix: common.keyPrefix,
    }),
    budgets: new RedisBudgets({
      decisions: connections.decision,
      heartbeats: connections.fleet,
      bulk: connections.background,
      keyPrefix: common.keyPrefix,
    }),
    // Reads may be repeated.
    numbers: new RedisNumbers(connections.background),
  };
}
