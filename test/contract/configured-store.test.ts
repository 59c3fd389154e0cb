import { describe, expect, it } from "vitest";
import type { OpenStore } from "../../src/app/store/open-store.js";
import { once, takeOne, testCharge } from "../support/charges.js";
import { type Env, openConfiguredStore } from "../support/configured-store.js";
import { startRedis } from "../support/redis.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";

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
