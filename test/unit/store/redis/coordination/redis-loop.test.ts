import { describe, expect, it } from "vitest";
import { gatheredMax } from "../../../../../src/store/coordination/loop-store.js";
import { FakeConnection } from "../../../../support/fake-connection.js";
import { redisLoop } from "../../../../support/redis-loop.js";

describe("RedisLoop", () => {
  it("takes reports of as many replicas as there may be, and of no more", async () => {
    const connection = new FakeConnection();
    const store = redisLoop(connection);
    const gather = (count: number) => {
      connection.answer = { kind: "reply", reply: Buffer.from("a 1 0 1\nx".repeat(count)) };
      return store.gather();
    };
    await expect(gather(gatheredMax)).resolves.toHaveLength(gatheredMax);
    await expect(gather(gatheredMax + 1)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });
});
