import { describe, expect, it } from "vitest";
import { gatheredMax } from "../../../../../src/store/coordination/loop-store.js";
import { FakeClock } from "../../../../support/fake-clock.js";
import { FakeConnection } from "../../../../support/fake-connection.js";
import { redisLoop } from "../../../../support/redis-loop.js";

describe("RedisLoop", () => {
  it("takes reports of as many replicas as there may be, and of no more", async () => {
    const connection = new FakeConnection();
    const store = redisLoop(connection);
    const gather = (count: number) => {
      connection.answer = { kind: "reply", reply: Buffer.from("a 1 0 1 0 0\nx".repeat(count)) };
      return store.gather(new Map());
    };
    await expect(gather(gatheredMax)).resolves.toHaveLength(gatheredMax);
    await expect(gather(gatheredMax + 1)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });

  const nowMs = new FakeClock().monotonicMs();

  const answering = (reply: string | number | undefined) => {
    const connection = new FakeConnection();
    const bytes = typeof reply === "string" ? Buffer.from(reply) : reply;
    connection.answer = { kind: "reply", reply: bytes };
    return redisLoop(connection);
  };

  it("reads when reports were made, and their bytes, whatever these are", async () => {
    const reports = await answering("a 7 30 3 0 0\n\nxyb 8 5 0 0 0\nc 9 5 1 8 2\nxyz").gather(
      new Map(),
    );
    const told = reports.map(({ bytes, base, ...facts }) => ({
      ...facts,
      text: bytes.toString(),
      base: base && { number: base.number, text: base.bytes.toString() },
    }));
    expect(told).toEqual([
      { replicaId: "a", number: 7, atMs: nowMs - 30, text: "\nxy", base: undefined },
      { replicaId: "b", number: 8, atMs: nowMs - 5, text: "", base: undefined },
      { replicaId: "c", number: 9, atMs: nowMs - 5, text: "x", base: { number: 8, text: "yz" } },
    ]);
    expect(await answering(undefined).gather(new Map())).toEqual([]);
  });

  it.each([
    "a 7 30 3 0 0",
    "a 7 30 3 0 0\nxy",
    "g 7 30 1 0 0\nx",
    "a 7 30 1\nx",
    "a 7 30 1 1 1\nx",
    3,
  ])("takes %j for no reports", async (reply) => {
    await expect(answering(reply).gather(new Map())).rejects.toMatchObject({
      code: "STORE_PROTOCOL",
    });
  });

  it("reads a snapshot behind its line, or that there is none", async () => {
    const found = await answering("30 2 ab 5\nbytes\n").fetch();
    expect(found).toMatchObject({
      rank: { term: 2, leaderId: "ab", version: 5 },
      atMs: nowMs - 30,
    });
    expect(found?.bytes.toString()).toBe("bytes\n");
    expect(await answering(undefined).fetch()).toBeUndefined();
    for (const reply of ["30\nbytes", "30 2 ab\nbytes", "2 ab 5\nbytes"]) {
      await expect(answering(reply).fetch()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    }
  });

  it("reads whether it leads, and which snapshot is the newest", async () => {
    const beat = (reply: string | number) => {
      const seen = { term: 0, leaderId: "", version: 0 };
      const facts = { replicaId: "a", number: 1, term: 0, leaseMs: 1_000, seen };
      return answering(reply).beat(facts, 1_000);
    };
    expect(await beat("0 ")).toEqual({ term: 0, newest: undefined });
    const newest = { term: 2, leaderId: "ab", version: 5 };
    expect(await beat("3 2 ab 5")).toMatchObject({ term: 3, newest });
    for (const reply of ["", "3", "x ", "3 2 ab", 3]) {
      await expect(beat(reply)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    }
  });

  it("knows whether its snapshot was taken", async () => {
    const publish = (reply: number) =>
      answering(reply).publish({ term: 1, leaderId: "a", version: 1 }, Buffer.from("x"), 1_000);
    expect([await publish(1), await publish(0)]).toEqual([true, false]);
  });
});
