import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import { pageRowsMax } from "../../src/store/coordination/budget-store.js";
import { RedisBudgets } from "../../src/store/redis/coordination/redis-budgets.js";
import {
  hourly,
  openClockedBudgets,
  TestBudgets,
  testAccount,
  testEntry,
} from "../support/budgets.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { FakeConnection } from "../support/fake-connection.js";
import { shareTestStore, soon } from "../support/redis-store.js";
import { propertyRuns } from "../support/seeds.js";

describe.each(enginesFor.behaviour)("budgets in the keys of %s", (engine) => {
  const shared = shareTestStore(engine);
  const openBudgets = (): TestBudgets => {
    const clock = new FakeClock();
    const { connections } = shared.opened;
    return new TestBudgets({ store: openClockedBudgets({ connections, clock }), clock });
  };

  it("keeps everything under one hash tag, and nothing for ever", async () => {
    await shared.control.flushall();
    const budgets = openBudgets();
    await budgets.reserve(1);
    await budgets.reserve(2);
    await budgets.settle(2, [3], { by: "b2" });
    await budgets.renew();
    await budgets.store.leave("a1", soon());
    await budgets.reserve(3);
    await budgets.renew();
    const refund = { id: "r1", account: testAccount("team"), law: hourly, amount: 5 };
    await budgets.store.refund(refund, soon());
    const rows = [{ service: "s", account: "", model: "", callCount: 1, counts: {}, cost: 0 }];
    await budgets.store.addUsage({ holder: "a1", number: 1, day: "2026-11-27", rows }, soon());
    const keys = (await shared.control.keys("*")).toSorted();
    const names = ["a", "b:a1:0", "holders", "l:a1", "n:team", "o:a1", "r:r1"];
    const usage = ["u", "v", "w"].map((name) => `${name}:2026-11-27`);
    const own = [...names, ...usage, "x"].map((name) => `headgate:{budgets}:${name}`);
    expect(keys).toEqual(own.toSorted());
    for (const key of keys) expect([key, await shared.control.pttl(key)]).not.toEqual([key, -1]);
  });

  it("begins anew where all data is lost in the middle, and charges nothing twice", async () => {
    const budgets = openBudgets();
    await budgets.reserve(1);
    await budgets.reserve(2);
    await shared.control.flushall();
    expect(await budgets.settle(1, [5])).toBe("unknown");
    expect(await budgets.row()).toBeUndefined();
    expect((await budgets.reserve(3, [testEntry({ estimate: 100 })])).isReserved).toBe(true);
    expect(await budgets.settle(2, [6], { unreserved: [testEntry()] })).toBe("settled");
    expect(await budgets.settle(2, [6], { unreserved: [testEntry()] })).toBe("unknown");
    expect(await budgets.row()).toMatchObject({ spent: 6, reserved: 100 });
    expect(await budgets.renew()).toBe(0);
    await budgets.store.leave("a1", soon());
    expect(await budgets.row()).toMatchObject({ spent: 6, reserved: 0, lost: 100 });
  });

  it("takes what is not its own for nothing", async () => {
    await shared.control.flushall();
    const budgets = openBudgets();
    await budgets.reserve(1);
    for (const value of ["", "x".repeat(73), "\u0001", "y".repeat(1_000)]) {
      await shared.control.hset("headgate:{budgets}:a", "team", value);
      expect(await budgets.row()).toBeUndefined();
    }
    expect(await budgets.settle(1, [5])).toBe("settled");
    expect((await budgets.reserve(2)).entries[0]).toEqual({ spent: 0, reserved: 0, isOver: false });
  });

  it("admits no more of two replicas than there is", async () => {
    await shared.control.flushall();
    const clock = new FakeClock();
    const { connections } = shared.opened;
    const replicas = Array.from({ length: 2 }, () => {
      return new TestBudgets({ store: openClockedBudgets({ connections, clock }), clock });
    });
    const asked = Array.from({ length: 60 }, (_, i) => {
      return replicas[i % 2]?.reserve(i, [testEntry({ estimate: 7 })], `h${i % 2}`);
    });
    const admitted = (await Promise.all(asked)).filter((result) => result?.isReserved);
    expect(admitted).toHaveLength(14);
  });
});

describe("RedisBudgets", () => {
  const connection = new FakeConnection();
  const parts = { decisions: connection, heartbeats: connection, bulk: connection };
  const store = new RedisBudgets({ ...parts, keyPrefix: "" });
  const budgets = new TestBudgets({ store, clock: new FakeClock() });
  const doubles = (...numbers: readonly number[]) => Buffer.from(Float64Array.from(numbers).buffer);
  const bytes = (...numbers: readonly number[]) => Buffer.from(numbers);
  const named = (name: string) => Buffer.concat([bytes(name.length, 0), Buffer.from(name)]);
  const id = reservationId("a1", 1);
  const query = { budget: "team", law: hourly, cursor: "" };
  const calls: readonly (() => Promise<unknown>)[] = [
    () => budgets.apply([{ kind: "reserve", id, entries: [testEntry()] }]),
    () => budgets.apply([{ kind: "settle", id, costs: [5] }]),
    () => budgets.row(),
    () => store.list(query, soon()),
    () => store.usage({ day: "2026-11-27", cursor: "" }, soon()),
    () => store.refund({ id: "r", account: testAccount("t"), law: hourly, amount: 5 }, soon()),
  ];
  /** Answers as the scripts give them. */
  const sound = [
    Buffer.concat([doubles(1_700_000_000_000_000), bytes(1, 0), doubles(5, 6, -1)]),
    Buffer.concat([doubles(1_700_000_000_000_000), bytes(3)]),
    Buffer.concat([bytes(1), doubles(1, 2, 3, 4)]),
    Buffer.concat([named("team/a"), bytes(1), doubles(1, 2, 3, 4), named("team/b"), bytes(0)]),
    Buffer.concat([named('["s","a","m"]'), doubles(1, 2, -1, -1, -1, -1, -1, -1, 3, 4)]),
    Buffer.from("5"),
  ];

  it("reads what scripts answer", async () => {
    for (const [i, call] of calls.entries()) {
      connection.answer = { kind: "reply", reply: sound[i] };
      await expect(call()).resolves.toBeDefined();
    }
  });

  it("reads nothing else, or what could have been an answer too", async () => {
    const mutations = fc.array(fc.record({ at: fc.nat(60), put: fc.nat(255) }), {
      minLength: 1,
      maxLength: 4,
    });
    const property = fc.asyncProperty(
      ...([
        fc.nat(calls.length - 1),
        mutations,
        fc.option(fc.nat(90), { nil: undefined }),
      ] as const),
      async (i, changes, cut) => {
        const reply = Buffer.from(sound[i] ?? "");
        for (const { at, put } of changes) if (at < reply.length) reply[at] = put;
        connection.answer = { kind: "reply", reply: reply.subarray(0, cut) };
        const answer = await calls[i]?.().catch((error: unknown) => error);
        if (answer instanceof Error) expect(answer).toMatchObject({ code: "STORE_PROTOCOL" });
        else expect(JSON.stringify(answer) ?? "").not.toMatch(/null|NaN/);
      },
    );
    await fc.assert(property, propertyRuns(2_000));
  });

  it.each([
    ["a number", 5],
    ["nothing", undefined],
    ["too much", Buffer.alloc(1_000)],
  ])("refuses %s", async (_, reply) => {
    for (const call of calls) {
      connection.answer = { kind: "reply", reply };
      const answer = await call().catch((error: unknown) => error);
      if (answer instanceof Error) expect(answer).toMatchObject({ code: "STORE_PROTOCOL" });
    }
    connection.answer = { kind: "reply", reply };
    await expect(calls[0]?.()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });

  it("goes on behind the last row of a full page", async () => {
    const rows = Array.from({ length: pageRowsMax }, (_, i) =>
      Buffer.concat([named(`team/${i}`), bytes(0)]),
    );
    connection.answer = { kind: "reply", reply: Buffer.concat(rows) };
    expect(await store.list(query, soon())).toEqual({
      rows: [],
      cursor: `team/${pageRowsMax - 1}`,
    });
  });
});
