import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/app/base/logger.js";
import { loadConfig } from "../../src/app/config/config.js";
import { joinFleet } from "../../src/app/fleet/fleet.js";
import { openOperatorRecords } from "../../src/app/foundation/operator-records.js";
import { openStore } from "../../src/app/store/store.js";
import type { RoomOverride } from "../../src/core/waiting-room/room-line.js";
import { QuotaLeases } from "../../src/fleet/claims/quota-leases.js";
import {
  ReplicaQuestions,
  type ReplicaQuestionsOptions,
} from "../../src/fleet/claims/replica-questions.js";
import { SharedLoop } from "../../src/fleet/loop/shared-loop.js";
import type { SharedRecords } from "../../src/fleet/records/shared-records.js";
import type { BudgetStore } from "../../src/store/coordination/budget-store.js";
import type { RoomStore } from "../../src/store/coordination/room-store.js";
import { hourly, TestBudgets, testAccount, testEntry } from "../support/budgets.js";
import { takeOne, testCharge, testKey } from "../support/charges.js";
import { markedBlock } from "../support/docs.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { TestMaker, testReport } from "../support/fleet-reports.js";
import { claimHz } from "../support/quota-claims.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { startRedis, userPassword, withPassword } from "../support/redis.js";
import { soon } from "../support/redis-store.js";
import { TestRoom } from "../support/rooms.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** What the documentation tells people to enter. */
const documentedCommand = markedBlock("acl");

/** Every script of the records. */
async function changeEverything(records: SharedRecords, lose: () => Promise<void>): Promise<void> {
  const change = { kind: "override", id: "one", value: {}, expectedVersion: 0, audit: {} } as const;
  expect(await records.change(change)).toMatchObject({ kind: "changed" });
  const expectedVersion = records.list("override").get("one")?.version ?? 0;
  await records.note({ by: "ann" });
  expect(await records.audit(Number.POSITIVE_INFINITY, 10)).toHaveLength(2);
  await lose();
  await waitFor("it is put back", async () => {
    const log = await records.audit(Number.POSITIVE_INFINITY, 1);
    return log[0]?.value["action"] === "RestoreRecords";
  });
  const gone = { ...change, value: undefined, expectedVersion };
  expect(await records.change(gone)).toMatchObject({ kind: "changed" });
}

/** Every script of what replicas ask each other. */
async function askEverything(
  parts: Pick<ReplicaQuestionsOptions, "clock" | "random" | "store">,
): Promise<void> {
  const [one, other] = ["one", "other"].map(
    (replica) => new ReplicaQuestions({ ...parts, replica }),
  );
  const body = Buffer.from("an answer");
  other?.answer(() => ({ take: async () => body, close: () => {} }));
  const put = await one?.put({ method: "Any", request: Buffer.from("a"), caller: {} });
  await waitFor("it is answered", async () => {
    const [answer] = (await put?.take()) ?? [];
    return answer?.replica === "other" && body.equals(answer.body);
  });
  await put?.close();
  other?.close();
}

/** Every script of waiting rooms. */
async function useRoom(store: RoomStore): Promise<void> {
  const room = await TestRoom.open({ store, clock: new FakeClock() });
  await room.apply({ extraSessions: [1], spareSessions: [2] });
  await room.turn({ joinCount: 3 });
  await room.call([1]);
  const renewals = [{ session: 2, number: 0 }];
  expect(await room.turn({ visits: [1], letIns: [2], renewals })).toMatchObject({
    entries: [{ kind: "entered" }],
    renewed: [true],
  });
  await room.turn({ leaves: [{ number: 1 }] });
  expect(await room.line(1, 1)).toEqual([0]);
  const override: RoomOverride = {
    mode: "paused",
    activeUsersMax: 1,
    entriesPerMinuteMax: undefined,
    openedEvent: undefined,
  };
  await store.override(room.name, override, soon());
  await store.override(room.name, undefined, soon());
  await store.forget(room.name, soon());
}

/** Every script of budgets, and each command that they run. */
async function useBudgets(store: BudgetStore): Promise<void> {
  const budgets = new TestBudgets({ store, clock: new FakeClock() });
  const unreserved = [testEntry()];
  await budgets.reserve(1);
  await budgets.reserve(2);
  await budgets.reserve(2);
  expect(await budgets.settle(1, [5], { by: "b2" })).toBe("settled");
  expect(await budgets.settle(3, [5], { unreserved })).toBe("settled");
  await store.leave("a1", soon());
  expect(await budgets.settle(2, [5], { unreserved })).toBe("late");
  await budgets.renew("b2");
  await store.leave("b2", soon());
  expect(await budgets.list()).toHaveLength(1);
  expect(await budgets.row()).toBeDefined();
  const refund = { id: "r1", account: testAccount("team"), law: hourly, amount: 5 };
  expect(await store.refund(refund, soon())).toBeGreaterThanOrEqual(0);
  const day = "2026-11-27";
  const names = { service: "llm", account: "a", model: "gpt" };
  const rows = [{ ...names, callCount: 1, counts: {}, cost: 1 }];
  await store.addUsage({ holder: "a1", number: 1, day, rows }, soon());
  expect(await store.usage({ day, cursor: "" }, soon())).toEqual({ rows, cursor: "" });
}

describe.each(enginesFor.rights)("the rights of a user on %s", (engine) => {
  it("as documented are enough for everything, and no more than that", async () => {
    const server = await startRedis(stage, { engine });
    const control = server.client();
    const [unedited = "", ...uneditedWords] = documentedCommand.split(" ");
    await expect(control.call(unedited, ...uneditedWords)).rejects.toThrow("ACL SETUSER");
    const [acl, ...words] = withPassword(documentedCommand);
    await control.call(acl, ...words);
    const env = { REDIS_URL: `127.0.0.1:${server.port}`, REDIS_AUTH: `gate:${userPassword}` };
    const loaded = loadConfig({ flags: {}, env });
    if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
    const { config } = loaded;
    const parts = { config, clock: realClock, random: realRandom, logger: silentLogger };
    const opened = await openStore({ ...parts, onBadBuckets: () => {} });
    stage.atEnd(() => opened.store.close());
    const charge = testCharge({ key: "k", hits: 1, periodUs: 60_000_000, burst: 10 });
    expect((await takeOne(opened.store, [charge], soon())).isDenied).toBe(false);
    expect(await opened.store.peek(testKey("k"), soon())).toBeDefined();
    expect(await opened.store.forget([testKey("k")], soon())).toBe(1);
    const fleet = joinFleet(opened, parts);
    await waitFor("its heartbeat is there", async () => (await control.keys("*")).length === 1);
    await fleet.stop();
    expect(await control.keys("*")).toEqual([]);
    if (!opened.coordination.isShared) throw new Error("the store is shared");
    const { questions, quotas, signals } = opened.coordination;
    const loop = new SharedLoop({
      ...{ clock: realClock, id: realRandom.id(), store: opened.coordination.loop },
      pressures: () => [],
      createMaker: (start) => new TestMaker(start),
      gateSettings: () => new Map(),
      onBug: (thrown) => {
        throw thrown;
      },
    });
    loop.report([testReport()]);
    await waitFor("its snapshot is there", () => loop.current());
    await loop.stop();
    expect(loop.counts.failed).toBe(0);
    const operator = openOperatorRecords({ ...parts, replica: "r1", opened });
    await changeEverything(operator.records, async () => {
      await control.flushall();
    });
    operator.close();
    await askEverything({ clock: realClock, random: realRandom, store: questions });
    const leases = new QuotaLeases({ store: quotas, random: realRandom });
    expect(await claimHz(leases, {})).toBe(100);
    expect(await claimHz(leases, { heldMicroHz: 1 })).toBe(100);
    await useRoom(opened.coordination.rooms);
    await useBudgets(opened.coordination.budgets);
    const turn = { source: "5a", replicaId: "a1", turnMs: 60_000 };
    await signals.take(turn, soon());
    await signals.tell(turn, "1");
    await signals.release(turn);
    expect(await control.call("acl", "log")).toEqual([]);
    // It runs only where more than 10,000 were taken away.
    expect(await control.call("acl", "dryrun", "gate", "zrange", "headgate:k", "0", "0")).toBe(
      "OK",
    );
    const forbidden = ["eval x 0", "flushall", "keys *", "config get x", "get headgate:k"];
    for (const command of [...forbidden, "set other:k v"]) {
      expect(await control.call("acl", "dryrun", "gate", ...command.split(" "))).not.toBe("OK");
    }
  });
});
