import { describe, expect, it } from "vitest";
import { type LogEvent, type Logger, silentLogger } from "../../src/app/base/logger.js";
import type { OpenStore } from "../../src/app/store/open-store.js";
import { once, takeOne, testCharge } from "../support/charges.js";
import { type Env, openConfiguredStore } from "../support/configured-store.js";
import { startRedis } from "../support/redis.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function open(env: Env): Promise<OpenStore> {
  return openConfiguredStore(stage, env);
}

describe("openStore()", () => {
  it("starts where no cluster answers, and fails calls until one does", async () => {
    const { store } = await open({ REDIS_TYPE: "cluster", REDIS_URL: "127.0.0.1:1" });
    await expect(store.take([once(testCharge())], soon())).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
  });
});

describe("the stores of other regions", () => {
  const password = "hush-41";

  /** This region's, and the other one's with a password. */
  async function openRegions(given: string) {
    const own = await startRedis(stage);
    const other = await startRedis(stage, { args: ["--requirepass", password], password });
    const records: LogEvent[] = [];
    const note = (line: LogEvent): void => {
      records.push(line);
    };
    const logger: Logger = { ...silentLogger, debug: note, info: note, warn: note, error: note };
    const env = {
      REDIS_URL: `127.0.0.1:${own.port}`,
      HEADGATE_REGION: "eu",
      HEADGATE_REGION_STORES: [
        `eu=127.0.0.1:${own.port}`,
        `us=redis://:${given}@127.0.0.1:${other.port}`,
      ].join(" "),
    };
    const opened = await openConfiguredStore(stage, env, logger);
    return { opened, records, other };
  }

  it("keep limits under the keys of the own one", async () => {
    const { opened, other } = await openRegions(password);
    const [us] = opened.peers;
    expect(opened.peers.map(({ name }) => name)).toEqual(["us"]);
    for (const store of [opened.store, us?.store]) {
      await waitFor("it is charged", async () => {
        return store !== undefined && (await takeOne(store, [testCharge()], soon())) !== undefined;
      });
    }
    const keys = await other.client().keys("*");
    expect(keys).toEqual([`headgate:${testCharge().key}`]);
  });

  it("refuse a wrong password in a line with the region, and without the password", async () => {
    const { records } = await openRegions("hush-42");
    const line = await waitFor("it is refused", () => {
      return records.find(({ event }) => event === "redisFailed");
    });
    expect(line).toMatchObject({ region: "us", code: "STORE_UNAUTHENTICATED" });
    expect(JSON.stringify(records)).not.toContain("hush");
  });
});

describe("RedisConnection", () => {
  it("sends what one turn asks for in one write: a batch is a script a hash tag", async () => {
    const server = await startRedis(stage);
    const { store } = await openTestStore(server);
    stage.atEnd(() => store.close());
    const control = server.client();
    const readCount = async (): Promise<number> => {
      const stats = await control.info("stats");
      return Number(/total_reads_processed:(\d+)/.exec(stats)?.[1]);
    };
    const beforeCount = await readCount();
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => takeOne(store, [testCharge({ key })], soon())));
    // The second look is a read, too.
    expect((await readCount()) - beforeCount).toBe(2);
  });
});
