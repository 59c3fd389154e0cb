import { describe, expect, it } from "vitest";
import { RedisMembers } from "../../../../../src/store/redis/coordination/redis-members.js";
import { FakeClock } from "../../../../support/fake-clock.js";
import { FakeConnection } from "../../../../support/fake-connection.js";
import { FakeRandom } from "../../../../support/fake-random.js";

describe("RedisMembers", () => {
  it("takes no answer that is no number for how many replicas there are", async () => {
    const connection = new FakeConnection();
    const parts = { connection, clock: new FakeClock(), random: new FakeRandom(), keyPrefix: "" };
    const join = () => new RedisMembers(parts).join({ replicaId: "a", leaseMs: 1 }, 1);
    await expect(join()).resolves.toBe(1);
    for (const reply of [undefined, Buffer.from("1")]) {
      connection.answer = { kind: "reply", reply };
      await expect(join()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    }
  });
});
