import { describe, expect, it } from "vitest";
import type { JoinAnswer, VisitAnswer } from "../../../../src/core/waiting-room/room-line.js";
import type { RoomRules } from "../../../../src/core/waiting-room/room-rules.js";
import { RoomLines } from "../../../../src/fleet/waiting-room/room-lines.js";
import type {
  RoomLineEvent,
  StoreRoomLine,
} from "../../../../src/fleet/waiting-room/store-room-line.js";
import { MemoryRooms } from "../../../../src/store/coordination/memory-rooms.js";
import {
  type RoomTurn,
  roomVisitsMax,
  silenceSecondsMax,
} from "../../../../src/store/coordination/room-store.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { RoomLink, type RoomWatcher } from "../../../support/room-link.js";

const rules: RoomRules = {
  name: "sale",
  activeUsersMax: 2,
  entriesPerMinuteMax: "auto",
  sessionMs: 60_000,
  order: "fifo",
  queueAll: false,
  waitingMax: 5,
  refreshMs: 20_000,
  missedRefreshesMax: 2,
  events: [],
  estimatedWait: undefined,
};

/** Replicas that share rooms in memory, and what they sent. */
class Fleet implements RoomWatcher {
  readonly clock = new FakeClock();
  readonly inner = new MemoryRooms(this.clock);
  readonly turns: RoomTurn[] = [];
  #count = 0;

  turned(turn: RoomTurn): void {
    this.turns.push(turn);
  }

  async applied(): Promise<void> {
    // Nothing to look at.
  }

  async replica(rooms: readonly RoomRules[] = [rules]) {
    this.#count += 1;
    const { clock, inner } = this;
    const random = new FakeRandom(this.#count);
    const weather = { delayMs: 0, lostRatio: 0, isOut: false };
    const store = new RoomLink({ inner, clock, random, weather, watcher: this });
    const events: RoomLineEvent[] = [];
    const onEvent = (event: RoomLineEvent): number => events.push(event);
    const lines = new RoomLines({
      ...{ store, clock, random, turnTimeoutMs: 500 },
      load: () => undefined,
      onEvent,
    });
    lines.change(rooms);
    await this.pass(100);
    const line = lines.line("sale") ?? expect.fail("the room has a line");
    return { lines, line, weather, events, link: store };
  }

  pass(ms: number): Promise<void> {
    return this.clock.advanceAsync(ms, 10);
  }

  async join(line: StoreRoomLine, count = 1): Promise<readonly JoinAnswer[]> {
    const answers: JoinAnswer[] = [];
    for (let i = 0; i < count; i += 1) line.join((answer) => answers.push(answer));
    expect(answers).toEqual([]);
    await this.pass(600);
    expect(answers).toHaveLength(count);
    return answers;
  }

  async visit(line: StoreRoomLine, number: number): Promise<VisitAnswer> {
    const answers: VisitAnswer[] = [];
    line.visit(number, (answer) => answers.push(answer));
    expect(answers).toEqual([]);
    await this.pass(600);
    return answers.length === 1 && answers[0] ? answers[0] : expect.fail("it answers once");
  }
}

describe("RoomLines", () => {
  it("lets visitors in at once, then in their order, and no more than may wait", async () => {
    const fleet = new Fleet();
    const { line } = await fleet.replica();
    await fleet.pass(2_500);
    const answers = await fleet.join(line, 8);
    expect(
      answers.map((answer) => (answer.kind === "joined" ? answer.session : answer.kind)),
    ).toEqual([...[0, 1], ...Array(5).fill(undefined), "full"]);
    line.leave({ number: 0, session: 0 });
    await fleet.pass(1_500);
    expect(await fleet.visit(line, 2)).toMatchObject({ entry: { kind: "entered", session: 0 } });
    expect(await fleet.visit(line, 3)).toMatchObject({ entry: { kind: "waiting" } });
    expect(await fleet.visit(line, 0)).toMatchObject({ entry: { kind: "gone" } });
    expect(line.status).toMatchObject({ waitingCount: 4, activeCount: 2 });
  });

  it("sends what visitors do in one turn of the event loop together", async () => {
    const fleet = new Fleet();
    const { line } = await fleet.replica();
    await fleet.join(line, 3);
    const renewed: (boolean | "failed")[] = [];
    const sent = fleet.turns.length;
    for (const number of [0, 1, 2]) line.visit(number, () => {});
    line.renew({ session: 7, number: 1 }, (exists) => renewed.push(exists));
    line.letIn(2, () => {});
    line.leave({ number: 0 });
    line.join(() => {});
    await fleet.pass(20);
    expect(fleet.turns.slice(sent)).toMatchObject([
      {
        visits: [0, 1, 2],
        renewals: [{ session: 7, number: 1 }],
        letIns: [2],
        leaves: [{ number: 0 }],
        joinCount: 1,
      },
    ]);
    expect(renewed).toEqual([false]);
  });

  it("bounds turns, and fails visitors when too many are on their way", async () => {
    const fleet = new Fleet();
    const { line, weather } = await fleet.replica([{ ...rules, waitingMax: 1e6 }]);
    weather.isOut = true;
    const answers: VisitAnswer["kind"][] = [];
    const total = 65 * roomVisitsMax + 1;
    for (let i = 0; i < total; i += 1) line.visit(i, ({ kind }) => answers.push(kind));
    await fleet.pass(10);
    expect(answers).toEqual(Array(roomVisitsMax + 1).fill("failed"));
    await fleet.pass(600);
    expect(answers).toEqual(Array(total).fill("failed"));
    weather.isOut = false;
    const sent = fleet.turns.length;
    for (let i = 0; i <= roomVisitsMax; i += 1) line.visit(i, () => {});
    await fleet.pass(20);
    expect(fleet.turns.slice(sent).map(({ visits }) => visits.length)).toEqual([roomVisitsMax, 1]);
  });

  it("fails visitors while the store does not answer, and says so once", async () => {
    const fleet = new Fleet();
    const { line, weather, events } = await fleet.replica();
    await fleet.join(line, 3);
    const second = line.second() ?? 0;
    weather.isOut = true;
    expect(await fleet.join(line)).toEqual([{ kind: "failed" }]);
    expect(await fleet.visit(line, 2)).toEqual({ kind: "failed" });
    expect(line.isReachable).toBe(false);
    await fleet.pass(60_000);
    // As the line's clock does, this one stands still after a silence.
    expect(line.second()).toBeLessThan(second + silenceSecondsMax + 3);
    weather.isOut = false;
    await fleet.pass(3_000);
    expect(line.isReachable).toBe(true);
    expect(await fleet.visit(line, 2)).toMatchObject({ entry: { kind: "waiting" } });
    expect(events.map(({ kind }) => kind)).toEqual([
      "leaderElected",
      "storeLost",
      "storeFound",
      "leaderElected",
    ]);
  });

  it("knows nothing before the store has answered", async () => {
    const fleet = new Fleet();
    const { clock, inner } = fleet;
    const random = new FakeRandom(1);
    const weather = { delayMs: 0, lostRatio: 0, isOut: true };
    const store = new RoomLink({ inner, clock, random, weather, watcher: fleet });
    const lines = new RoomLines({
      store,
      clock,
      random,
      turnTimeoutMs: 500,
      load: () => undefined,
    });
    lines.change([rules]);
    const line = lines.line("sale") ?? expect.fail("the room has a line");
    expect([line.status, line.second(), line.isReachable]).toEqual([undefined, undefined, false]);
    expect(await fleet.join(line)).toEqual([{ kind: "failed" }]);
  });

  it("knows a line at every replica soon after it has begun", async () => {
    const fleet = new Fleet();
    const { line } = await fleet.replica();
    const { line: other } = await fleet.replica();
    await fleet.pass(200);
    expect(line.status).toBeDefined();
    expect(other.status).toEqual(line.status);
  });

  it("passes the lead on at once where it stops, and after its lease where it dies", async () => {
    const fleet = new Fleet();
    const first = await fleet.replica();
    const second = await fleet.replica();
    const third = await fleet.replica();
    const isLeader = () => [first, second, third].map(({ line }) => line.isLeader);
    await fleet.pass(2_000);
    expect(isLeader()).toEqual([true, false, false]);
    await Promise.all([first.lines.stop(), fleet.pass(1_100)]);
    expect(second.line.isLeader || third.line.isLeader).toBe(true);
    const leader = second.line.isLeader ? second : third;
    const other = leader === second ? third : second;
    leader.weather.isOut = true;
    await fleet.pass(2_000);
    expect(other.line.isLeader).toBe(false);
    await fleet.pass(2_500);
    expect(other.line.isLeader).toBe(true);
    leader.weather.isOut = false;
    await fleet.pass(2_500);
    expect(leader.events.slice(-2).map(({ kind }) => kind)).toEqual(["storeFound", "leaderLost"]);
    expect(leader.line.isLeader).toBe(false);
  });

  it("has the rooms of the policy, and leaves nothing behind when it stops", async () => {
    const fleet = new Fleet();
    const { lines, line } = await fleet.replica();
    lines.change([rules, { ...rules, name: "tickets", activeUsersMax: 5 }]);
    expect(lines.line("sale")).toBe(line);
    await fleet.pass(2_000);
    expect(lines.line("tickets")?.status?.activeCountMax).toBe(5);
    lines.change([{ ...rules, activeUsersMax: 9 }]);
    expect(lines.line("tickets")).toBeUndefined();
    await fleet.pass(2_500);
    expect(line.status?.activeCountMax).toBe(9);
    await Promise.all([lines.stop(), fleet.pass(100)]);
    await fleet.pass(5_000);
    expect(fleet.clock.timerCount).toBe(0);
  });

  it("lets nobody wait where the order is to reject, or the room is drained", async () => {
    const fleet = new Fleet();
    const { line } = await fleet.replica([{ ...rules, order: "reject" }]);
    await fleet.pass(2_500);
    const kinds = (await fleet.join(line, 4)).map(({ kind }) => kind);
    expect(kinds).toEqual(["joined", "joined", "full", "full"]);
    const drained = new Fleet();
    const { line: other } = await drained.replica();
    const none = { activeUsersMax: undefined, entriesPerMinuteMax: undefined };
    await drained.inner.override("sale", { mode: "draining", ...none, openedEvent: undefined });
    await drained.pass(2_500);
    expect(await drained.join(other)).toEqual([{ kind: "full" }]);
  });

  it("tells a visitor who was passed over, and came back later, to join again", async () => {
    const fleet = new Fleet();
    const { line, lines } = await fleet.replica();
    await fleet.join(line, 4);
    await fleet.pass(70_000);
    await fleet.join(line, 1);
    await fleet.pass(2_000);
    // With more patience its word would still count.
    lines.change([{ ...rules, refreshMs: 60_000 }]);
    expect(await fleet.visit(line, 3)).toMatchObject({ entry: { kind: "gone" } });
    expect(await fleet.visit(line, 4)).toMatchObject({ entry: { kind: "entered" } });
  });

  // It once had the id and the secret of the line before, whose sessions were then believed.
  it("begins another line where the store has lost its own", async () => {
    const fleet = new Fleet();
    const { line, events } = await fleet.replica();
    const before = line.head;
    await fleet.join(line, 3);
    await fleet.inner.forget("sale");
    await fleet.pass(2_500);
    expect(events.map(({ kind }) => kind)).toContain("lineBegan");
    expect(line.head?.lineId).not.toBe(before?.lineId);
    expect(line.head?.secret).not.toEqual(before?.secret);
    expect(await fleet.join(line)).toMatchObject([{ kind: "joined", number: 0 }]);
  });

  it("learns from the waits of all replicas", async () => {
    const fleet = new Fleet();
    const { line } = await fleet.replica();
    const { line: other } = await fleet.replica();
    await fleet.pass(2_000);
    for (let i = 0; i < 50; i += 1) line.noteWait(false);
    other.noteWait(true);
    await fleet.pass(3_500);
    expect(line.head?.waits).toEqual({ endedCount: 51, heldCount: 1 });
    expect(other.status?.rangeFactor).toBeGreaterThan(1.03);
  });
});
