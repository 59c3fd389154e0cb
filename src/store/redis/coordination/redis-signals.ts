import {
  type SignalStore,
  type SignalTurn,
  sharedReadingsBytesMax,
} from "../../coordination/signal-store.js";
import type { ScriptReply, StoreScript } from "../scripts/connection.js";
import { type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";

/** Readings in Redis, with a hash for each source: owner and end of the turn, and the readings. */
export class RedisSignals implements SignalStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async take(turn: SignalTurn, deadlineMs: number): Promise<string | undefined> {
    const args = [String(sharedReadingsBytesMax)];
    const reply = replyBytes(await this.#run(takeScript, turn, { args, deadlineMs }));
    return reply.length === 0 ? undefined : reply.toString();
  }

  async tell(turn: SignalTurn, readings: string): Promise<void> {
    await this.#run(tellScript, turn, { args: [readings] });
  }

  async release(turn: SignalTurn): Promise<void> {
    await this.#run(releaseScript, turn, { args: [] });
  }

  #run(
    script: StoreScript,
    { source, replicaId, turnMs }: SignalTurn,
    { args, deadlineMs }: { readonly args: readonly string[]; readonly deadlineMs?: number },
  ): Promise<ScriptReply> {
    return runFleetScript(this.#store, {
      script,
      keys: [`signal:${source}`],
      args: [replicaId, String(turnMs), ...args],
      ...(deadlineMs === undefined ? {} : { untilMs: deadlineMs }),
    });
  }
}

/** Reads the time in ms, and the owner and end of the turn. The clock may have stepped back. */
const readTurn = `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local turnMs = tonumber(ARGV[2])
local owner = redis.call('HGET', KEYS[1], 'owner')
local untilMs = tonumber(redis.call('HGET', KEYS[1], 'until')) or 0
`;

const keepTurn = `
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', string.format('%.0f', nowMs + turnMs))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/**
 * Takes or keeps the turn. KEYS: the source. ARGV: the replica, the length of a turn in ms, the
 * maximum bytes of readings. Returns the readings that another replica has published, or nothing.
 */
const takeScript: StoreScript = {
  name: "signal-take",
  text: `${readTurn}
if owner and owner ~= ARGV[1] and untilMs >= nowMs and untilMs <= nowMs + turnMs then
  local readings = redis.call('HGET', KEYS[1], 'readings') or ''
  if #readings > tonumber(ARGV[3]) then return '' end
  return readings
end
if owner ~= ARGV[1] then redis.call('HDEL', KEYS[1], 'readings') end
${keepTurn}
return ''
`,
};

/** Publishes readings. KEYS: the source. ARGV: the replica, the length of a turn, the readings. */
const tellScript: StoreScript = {
  name: "signal-tell",
  text: `${readTurn}
if owner ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'readings', ARGV[3])
${keepTurn}
return 1
`,
};

/** Ends a turn. KEYS: the source. ARGV: the replica. */
const releaseScript: StoreScript = {
  name: "signal-release",
  text: `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`,
};
