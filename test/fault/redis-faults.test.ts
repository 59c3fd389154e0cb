import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
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
import { waitFor } from "../support/wait.js";

/** Passwords that hold what a URL gives a meaning to: ours, and one that we do not know. */
const password = "pa:ss@wo/rd-of-redis";
const newPassword = "wr:ong@wo/rd-of-nobody";

/** What goes wrong with Redis. */
interface Fault {
  readonly what: string;
  readonly begin: (redis: RedisServer, admin: Redis) => Promise<unknown>;
  readonly end: (redis: RedisServer, admin: Redis) => Promise<unknown>;
  /** Codes of which at least one is counted as the cause, and logged with what to do next. */
  readonly causes: readonly string[];
  readonly remedy: RegExp;
  /** What calls of a limit with `on_store_failure: error` get. Default UNAVAILABLE. */
  readonly errorOutcome?: string;
}

/**
 * A key space that takes twenty seconds to load, at half a millisecond a key, should nobody make
 * it quicker.
 */
const loadedKeysCount = 40_000;
const keyLoadDelayUs = 500;
const fill = "for i = 1, ARGV[1] do redis.call('SET', 'filler:' .. i, i) end";
const slowLoading = ["--key-load-delay", String(keyLoadDelayUs)];
slowLoading.push("--loading-process-events-interval-bytes", "1024");

const refusal = { errorOutcome: "FAILED_PRECONDITION|UNAVAILABLE" } as const;

const faults: readonly Fault[] = [
  {
    what: "is killed",
    begin: (redis) => redis.kill(),
    end: (redis) => redis.restart(),
    causes: ["STORE_UNAVAILABLE"],
    remedy: /Check that Redis runs/,
  },
  {
    what: "hangs with its connections open",
    begin: async (redis) => redis.pause(),
    end: async (redis) => redis.resume(),
    // Its connections are given up after a second of silence, and then it cannot be reached.
    causes: ["STORE_TIMEOUT", "STORE_UNAVAILABLE"],
    remedy: /HEADGATE_STORE_BUDGET_MS|Check that Redis runs/,
  },
  {
    what: "is out of memory",
    begin: (_, admin) => admin.config("SET", "maxmemory", "1"),
    end: (_, admin) => admin.config("SET", "maxmemory", "0"),
    causes: ["STORE_OUT_OF_MEMORY"],
    remedy: /maxmemory/,
  },
  {
    what: "cannot save to its disk",
    begin: async (_, admin) => {
      await mkdir(await snapshotPath(admin));
      await admin.config("SET", "save", "3600 1000000");
      await admin.bgsave();
      await savesUntil(admin, "err");
    },
    end: async (_, admin) => {
      await rm(await snapshotPath(admin), { recursive: true });
      await admin.bgsave();
      await savesUntil(admin, "ok");
      await admin.config("SET", "save", "");
    },
    causes: ["STORE_NOT_SAVING"],
    remedy: /INFO persistence.*stop-writes-on-bgsave-error/,
  },
  {
    what: "has too few replicas",
    begin: (_, admin) => admin.config("SET", "min-replicas-to-write", "1"),
    end: (_, admin) => admin.config("SET", "min-replicas-to-write", "0"),
    causes: ["STORE_TOO_FEW_REPLICAS"],
    remedy: /INFO replication.*min-replicas-to-write/,
  },
  {
    what: "becomes a replica",
    begin: (_, admin) => admin.replicaof("127.0.0.1", 1),
    end: (_, admin) => admin.replicaof("NO", "ONE"),
    causes: ["STORE_READ_ONLY"],
    remedy: /primary/,
  },
  {
    what: "forbids our command",
    begin: (_, admin) => setRights(admin, "-evalsha"),
    end: (_, admin) => setRights(admin, "+evalsha"),
    causes: ["STORE_ACCESS_DENIED"],
    remedy: /ACL SETUSER/,
    ...refusal,
  },
  {
    what: "forbids our keys",
    begin: (_, admin) => setRights(admin, "resetkeys", "~other:*"),
    end: (_, admin) => setRights(admin, "resetkeys", "~headgate:*"),
    causes: ["STORE_ACCESS_DENIED"],
    remedy: /ACL SETUSER/,
    ...refusal,
  },
  {
    what: "changes our password",
    begin: async (_, admin) => {
      await setRights(admin, "resetpass", `>${newPassword}`);
      await dropOthers(admin);
    },
    end: (_, admin) => setRights(admin, "resetpass", `>${password}`),
    causes: ["STORE_UNAUTHENTICATED"],
    remedy: /REDIS_AUTH/,
    ...refusal,
  },
  // The last one: what it saves is loaded at every start.
  {
    what: "restarts and loads for long",
    begin: async (redis, admin) => {
      await admin.eval(fill, 0, loadedKeysCount);
      await admin.save();
      await redis.kill();
      await redis.restart();
    },
    end: async (redis) => {
      const whileLoading = redis.client({ enableReadyCheck: false });
      await whileLoading.config("SET", "key-load-delay", "0");
      whileLoading.disconnect();
    },
    causes: ["STORE_LOADING", "STORE_UNAVAILABLE"],
    remedy: /Redis/,
  },
];

/** Where Redis saves: nothing is written there while it is a folder. */
async function snapshotPath(admin: Redis): Promise<string> {
  const [, folder = ""] = (await admin.config("GET", "dir")) as readonly string[];
  const [, name = ""] = (await admin.config("GET", "dbfilename")) as readonly string[];
  return join(folder, name);
}

async function savesUntil(admin: Redis, status: "ok" | "err"): Promise<void> {
  await waitFor(`its last save is ${status}`, async () => {
    const facts = await admin.info("persistence");
    return (
      facts.includes("rdb_bgsave_in_progress:0") &&
      facts.includes(`rdb_last_bgsave_status:${status}`)
    );
  });
}

async function setRights(admin: Redis, ...rules: readonly string[]): Promise<void> {
  expect(await admin.acl("SETUSER", "gate", ...rules)).toBe("OK");
}

/** Makes every connection but this one prove itself anew. */
async function dropOthers(admin: Redis): Promise<void> {
  await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

const stage = useStage("file");
let redis: RedisServer;
let admin: Redis;
let rig: FaultRig;

// One Headgate lives through all of it: each test ends what it began.
beforeAll(async () => {
  const user = ["--user", "gate", "on", `>${password}`, "~headgate:*", "+@all"];
  redis = await startRedis(stage, { args: [...slowLoading, ...user] });
  admin = redis.client();
  const login = `gate:${encodeURIComponent(password)}`;
  const url = { REDIS_URL: `redis://${login}@127.0.0.1:${redis.port}` };
  rig = await startFaultRig(stage, { ...redisEnv(redis.port), ...url });
});

describe("a Redis that", () => {
  it("has too many clients is asked again at a bounded pace", async () => {
    const { headgate, traffic } = rig;
    try {
      await admin.config("SET", "maxclients", "1");
      await dropOthers(admin);
      await admin.config("RESETSTAT");
      const startMs = performance.now();
      await traffic.expectNothingBut(faultOutcomes);
      await waitFor("some attempts were refused", async () => (await refusedClients()) >= 6);
      const elapsedSeconds = (performance.now() - startMs) / 1_000;
      const [remedy] = await waitFor("the log says what to do", () => {
        const found = remediesFor(["STORE_TOO_MANY_CLIENTS"]);
        return found.length > 0 ? found : undefined;
      });
      expect(remedy).toMatch(/maxclients.*CLIENT LIST/);
      // Three connections, each waiting 50 ms at least, and longer every time.
      expect(await refusedClients()).toBeLessThan(3 * (4 + 4 * elapsedSeconds));
    } finally {
      await admin.config("SET", "maxclients", "1000");
    }
    await traffic.expectFromNowOn(wellOutcomes);
    await expectUnharmed(headgate);
  });

  it.each(faults)(
    "$what: each call is answered by its failure mode, the log says what to do, all is well after",
    async ({ begin, end, causes, remedy, errorOutcome = faultOutcomes.error }) => {
      const { headgate, traffic } = rig;
      const failuresBefore = await failuresBy(causes);
      const linesBefore = remediesFor(causes).length;
      try {
        await begin(redis, admin);
        await traffic.expectNothingBut({ ...faultOutcomes, error: errorOutcome });
        // Before it refuses us it may be out of reach for a moment, which is another cause.
        await waitFor("it is counted as the cause", async () => {
          return (await failuresBy(causes)) > failuresBefore;
        });
        await waitFor("the log says what to do", () => remediesFor(causes).length > linesBefore);
        for (const line of remediesFor(causes).slice(linesBefore)) expect(line).toMatch(remedy);
      } finally {
        await end(redis, admin);
      }
      await traffic.expectFromNowOn(wellOutcomes);
      expectNoSecret(headgate.process.output);
      await expectUnharmed(headgate);
    },
  );
});

/** How often the store has failed for one of these causes. */
async function failuresBy(causes: readonly string[]): Promise<number> {
  const counts = causes.map((error) => {
    return rig.headgate.metric("headgate_store_failures_total", { error });
  });
  return Math.max(...(await Promise.all(counts)));
}

/** What the log has said to do next about these causes. */
function remediesFor(causes: readonly string[]): readonly string[] {
  return rig.headgate.process.output.split("\n").flatMap((text) => {
    if (!text.endsWith("}") || !text.includes('"remedy"')) return [];
    const line: { readonly code: string; readonly remedy: string } = JSON.parse(text);
    return causes.includes(line.code) ? [line.remedy] : [];
  });
}

/** No part of a password, as it is or as a URL writes it, may be read anywhere. */
function expectNoSecret(output: string): void {
  for (const secret of [password, newPassword]) {
    for (const text of [secret, encodeURIComponent(secret), secret.split("@")[1] ?? secret]) {
      expect(output).not.toContain(text);
    }
  }
}

/** Connections that Redis has refused. */
async function refusedClients(): Promise<number> {
  const found = /rejected_connections:(\d+)/.exec(await admin.info("stats"));
  return Number(found?.[1] ?? 0);
}
