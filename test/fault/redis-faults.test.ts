import { describe, expect, it } from "vitest";
import {
  expectUnharmed,
  type FaultRig,
  faultOutcomes,
  startFaultRig,
  wellOutcomes,
} from "../support/fault-rig.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";

/** What goes wrong with Redis. */
interface Fault {
  readonly what: string;
  readonly begin: (redis: RedisServer) => Promise<unknown>;
  readonly end: (redis: RedisServer) => Promise<unknown>;
  /** Codes of which at least one is counted as the cause. */
  readonly causes: readonly string[];
  /** What calls of a limit with `on_store_failure: error` get. Default UNAVAILABLE. */
  readonly errorOutcome?: string;
}

/** A key space that takes two seconds to load, at half a millisecond a key. */
const loadedKeysCount = 4_000;
const fill = "for i = 1, ARGV[1] do redis.call('SET', 'filler:' .. i, i) end";
const slowLoading = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];

const faults: readonly Fault[] = [
  {
    what: "is killed",
    begin: (redis) => redis.kill(),
    end: (redis) => redis.restart(),
    causes: ["STORE_UNAVAILABLE"],
  },
  {
    what: "hangs with its connections open",
    begin: async (redis) => redis.pause(),
    end: async (redis) => redis.resume(),
    causes: ["STORE_TIMEOUT"],
  },
  {
    what: "is out of memory",
    begin: (redis) => redis.client().config("SET", "maxmemory", "1"),
    end: (redis) => redis.client().config("SET", "maxmemory", "0"),
    causes: ["STORE_OUT_OF_MEMORY"],
  },
  {
    what: "becomes a replica",
    begin: (redis) => redis.client().replicaof("127.0.0.1", 1),
    end: (redis) => redis.client().replicaof("NO", "ONE"),
    causes: ["STORE_READ_ONLY"],
  },
  {
    what: "forbids our command",
    begin: (redis) => redis.client().acl("SETUSER", "default", "-evalsha"),
    end: (redis) => redis.client().acl("SETUSER", "default", "+evalsha"),
    causes: ["STORE_ACCESS_DENIED"],
    errorOutcome: "FAILED_PRECONDITION|UNAVAILABLE",
  },
  {
    what: "restarts and loads for long",
    begin: async (redis) => {
      await redis.client().eval(fill, 0, loadedKeysCount);
      await redis.client().save();
      await redis.kill();
      await redis.restart();
    },
    // It ends by itself; what is asked for next waits for that.
    end: async () => {},
    causes: ["STORE_LOADING", "STORE_UNAVAILABLE"],
  },
];

const stage = useStage("test");

async function start(): Promise<{ readonly redis: RedisServer; readonly rig: FaultRig }> {
  const redis = await startRedis(stage, {
    args: slowLoading,
  });
  return { redis, rig: await startFaultRig(stage, redisEnv(redis.port)) };
}

describe("a Redis that", () => {
  it.each(faults)(
    "$what: every call is answered by its failure mode, then by Redis",
    async (fault) => {
      const { redis, rig } = await start();
      const { headgate, traffic } = rig;
      await fault.begin(redis);
      const { errorOutcome = faultOutcomes.error } = fault;
      await traffic.expectNothingBut({ ...faultOutcomes, error: errorOutcome });
      const counts = fault.causes.map((error) => {
        return headgate.metric("headgate_store_failures_total", { error });
      });
      expect(Math.max(...(await Promise.all(counts)))).toBeGreaterThan(0);
      await fault.end(redis);
      await traffic.expectFromNowOn(wellOutcomes);
      await expectUnharmed(headgate);
    },
  );
});
