import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isServiceError } from "../../src/core/base/errors.js";
import { calledBit } from "../../src/core/waiting-room/room-line.js";
import { roomKeptMs } from "../../src/store/coordination/room-store.js";
import { RedisRooms } from "../../src/store/redis/coordination/redis-rooms.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { FakeConnection } from "../support/fake-connection.js";
import { startRedis } from "../support/redis.js";
import { openTestStore, shareTestStore } from "../support/redis-store.js";
import { openClockedRooms, TestRoom } from "../support/rooms.js";
import { propertyRuns } from "../support/seeds.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const waits = { kind: "waiting" } as const;
const gone = { kind: "gone" } as const;

describe.each(enginesFor.behaviour)("waiting rooms in the keys of %s", (engine) => {
  const shared = shareTestStore(engine);
  let roomCount = 0;

  const openRoom = async (clock = new FakeClock()): Promise<TestRoom> => {
    roomCount += 1;
    const { connections } = shared.opened;
    const name = `room-${roomCount}`;
    return TestRoom.open({ store: openClockedRooms({ connections, clock }), clock }, name);
  };
  const headOf = ({ name }: TestRoom): string => `headgate:{room-${name}}:head`;
  const keysOf = async ({ name }: TestRoom): Promise<readonly string[]> => {
    return (await shared.control.keys(`headgate:{room-${name}}:*`)).toSorted();
  };

  it("keeps all of a room for a week after its last beat, under one hash tag", async () => {
    const room = await openRoom();
    await room.turn({ joinCount: 4 });
    await room.apply({ spareSessions: [1], extraSessions: [2] });
    await room.call([0]);
    const keys = await keysOf(room);
    const base = `headgate:{room-${room.name}}:`;
    const own = ["extra", "line:0", "sessions", "spare"].map((name) => `${base}77:${name}`);
    expect(keys).toEqual([...own, `${base}head`]);
    const leftMs = () => Promise.all(keys.map((key) => shared.control.pttl(key)));
    for (const left of await leftMs()) {
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(roomKeptMs);
    }
    const shorten = () => Promise.all(keys.map((key) => shared.control.pexpire(key, 1_000_000)));
    await shorten();
    await room.beat();
    expect(Math.max(...(await leftMs()))).toBeLessThanOrEqual(1_000_000);
    // Once in an hour of the line.
    await shared.control.hset(headOf(room), "last", 3_600_001);
    await room.beat();
    expect(Math.min(...(await leftMs()))).toBeGreaterThan(roomKeptMs - 100_000);
    await room.store.forget(room.name, Number.POSITIVE_INFINITY);
    expect(await keysOf(room)).toEqual([]);
  });

  it("keeps the lower half of numbers in sessions, and gives none from 2^48 on", async () => {
    const room = await openRoom();
    const startAt = async (first: number): Promise<void> => {
      const forgotten = Math.floor(first / 1_048_576);
      await shared.control.hset(headOf(room), { next: first, called: first, forgotten });
    };
    const first = 2 ** 32 - 2;
    await startAt(first);
    expect(await room.turn({ joinCount: 5 })).toMatchObject({ firstNumber: first, joinedCount: 5 });
    await room.call([first, first + 2, first + 3]);
    expect(await room.sessions(0, 3)).toEqual([
      ...[first, calledBit + 1],
      ...[0, calledBit + 1],
      ...[1, calledBit + 1],
    ]);
    const visits = [first, first + 1, first + 2, first + 3];
    const entered = (session: number) => ({ kind: "entered", session, usedSecond: 0 });
    expect(await room.visit(...visits)).toEqual([entered(0), waits, entered(1), entered(2)]);
    // A chunk that is forgotten is not made again.
    expect(await room.visit(5, first)).toEqual([gone, entered(0)]);
    expect(await keysOf(room)).not.toContain(`headgate:{room-${room.name}}:77:line:0`);
    const renewals = [
      { session: 1, number: first + 2 },
      { session: 1, number: 0 },
      { session: 2, number: first + 2 },
    ];
    // Numbers that are 2^32 apart look the same there.
    expect((await room.turn({ renewals })).renewed).toEqual([true, true, false]);
    const frees = [{ session: 2, number: first + 3, word: 1 }];
    expect(await room.apply({ frees })).toMatchObject({ freedCount: 1 });
    await startAt(2 ** 48 - 2);
    expect(await room.turn({ joinCount: 5 })).toMatchObject({
      ...{ firstNumber: 2 ** 48 - 2, joinedCount: 2 },
    });
    expect(await room.line(2 ** 48 - 3, 4)).toEqual([0, 1, 1, 0]);
    expect(await room.visit(2 ** 48 - 1)).toEqual([waits]);
    expect((await room.turn({ joinCount: 1 })).joinedCount).toBe(0);
  });

  it("gives no number out twice that a lost primary has given out", async () => {
    const room = await openRoom();
    await room.turn({ joinCount: 9 });
    const loseLast = (count: number) => shared.control.hincrby(headOf(room), "next", -count);
    await loseLast(4);
    expect(await room.turn({ joinCount: 1 })).toMatchObject({ firstNumber: 9, joinedCount: 1 });
    await loseLast(3);
    expect((await room.beat()).nextNumber).toBe(10);
    await room.turn({ lineId: 5 });
    expect((await room.beat()).nextNumber).toBe(10);
  });

  it("gives numbers and spare sessions of two replicas to one visitor each", async () => {
    const room = await openRoom();
    const { connections } = shared.opened;
    const store = openClockedRooms({ connections, clock: room.clock });
    const other = new TestRoom({ store, clock: room.clock }, room.name);
    await other.beat({ replicaId: "b2" });
    await room.apply({ spareSessions: [4, 5, 6] });
    const turns = Array.from({ length: 40 }, (_, i) => {
      return (i % 2 === 0 ? room : other).turn({ joinCount: 3 });
    });
    const answers = await Promise.all(turns);
    const given = answers.flatMap(({ firstNumber, joinedCount }) =>
      Array.from({ length: joinedCount }, (_, i) => firstNumber + i),
    );
    expect(given.toSorted((one, two) => one - two)).toEqual(given.map((_, i) => i));
    expect(given).toHaveLength(120);
    expect(answers.flatMap(({ enteredSessions }) => enteredSessions)).toEqual([4, 5, 6]);
  });

  it("takes a step that is repeated, since its answer was late, for one", async () => {
    const room = await openRoom();
    await room.turn({ joinCount: 3 });
    const calls = [{ number: 0, place: 0, session: 0 }];
    const step = { calls, calledPlace: 3, spareSessions: [1, 2] };
    expect(await room.apply(step)).toMatchObject({ calledCount: 1 });
    expect((await room.turn({ joinCount: 1 })).enteredSessions).toEqual([1]);
    const before = await room.sessions(0, 3);
    await room.apply(step);
    expect(await room.sessions(0, 3)).toEqual(before);
    expect(await room.beat()).toMatchObject({ calledPlace: 4, nextNumber: 4 });
    expect((await room.turn({ joinCount: 2 })).enteredSessions).toEqual([2]);
  });

  it("goes by the server's clock", async () => {
    const { decision: turns, fleet: heartbeats, background: bulk } = shared.opened.connections;
    const store = new RedisRooms({ turns, heartbeats, bulk, keyPrefix: "real:" });
    const room = await TestRoom.open({ store, clock: new FakeClock() });
    const head = await room.beat();
    const [second] = await shared.control.time();
    expect(Math.abs(head.beganMs / 1_000 - Number(second))).toBeLessThan(60);
    await waitFor("a second has passed", async () => (await room.turn()).second > 1);
  });
});

describe("waiting rooms in a Redis that fails", () => {
  it("begins another line in a Redis that comes back empty", async () => {
    const server = await startRedis(stage);
    const opened = await openTestStore(server);
    stage.atEnd(() => opened.store.close());
    const clock = new FakeClock();
    const store = openClockedRooms({ connections: opened.connections, clock });
    const room = await TestRoom.open({ store, clock });
    await room.turn({ joinCount: 3 });
    await room.call([0]);
    await room.visit(0);
    await server.kill();
    await waitFor("the loss is seen", () => opened.events.some((e) => e.kind === "redisLost"));
    await expect(room.visit(1)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await server.restart();
    // Nobody has beaten yet: who waits is told nothing.
    await waitFor("the store is back", async () => {
      const answer = await room.visit(1).catch((error: unknown) => error);
      return isServiceError(answer) && answer.message.includes("no line yet");
    });
    const old = room.lineId;
    const head = await room.beat({ freshLineId: 78 });
    expect(head).toMatchObject({ lineId: 78, nextNumber: 0, calledPlace: 0, term: 1 });
    const renewals = [{ session: 0, number: 0 }];
    const answer = await room.turn({ lineId: old, visits: [0, 1], renewals, joinCount: 1 });
    expect(answer).toMatchObject({ lineId: 78, entries: [gone, gone], renewed: [false] });
    expect([answer.firstNumber, answer.joinedCount]).toEqual([0, 1]);
    expect(await room.visit(0, 1)).toEqual([waits, gone]);
  });
});

describe("RedisRooms", () => {
  const connection = new FakeConnection();
  const parts = { turns: connection, heartbeats: connection, bulk: connection };
  const store = new RedisRooms({ ...parts, keyPrefix: "" });
  const room = new TestRoom({ store, clock: new FakeClock() });

  const renewals = [{ session: 0, number: 0 }];
  const calls: readonly (() => Promise<unknown>)[] = [
    () => room.beat(),
    () => room.turn({ joinCount: 3, visits: [1, 2, 3], letIns: [4], renewals }),
    () => room.apply({ frees: [], calls: [{ number: 1, place: 1, session: 1 }] }),
    () => room.line(0, 4),
    () => room.sessions(0, 2),
  ];
  /** Answers as the scripts give them. */
  const sound = [
    `7 1700000000000 1500 9 3 2 6 5 1500 2 4 17 3\na1abcd{"mode":"paused"}xyz`,
    "7 1500 9 3 1 5 2 0 4 1 2 -1 0 -2 0 1 0",
    "1 0 0 1500",
    "abcdefgh",
    "abcdefgh",
  ];

  it.each(calls.map((call, i) => ({ call, reply: sound[i] ?? "" })))(
    "reads $reply",
    async ({ call, reply }) => {
      connection.answer = { kind: "reply", reply: Buffer.from(reply) };
      await expect(call()).resolves.toBeDefined();
    },
  );

  const positions = fc.nat(80);
  const mutations = fc.oneof(
    fc.record({ at: positions, put: fc.constantFrom("9", "-", " ", "", "\n", "x", "99999999999") }),
    fc.record({ at: positions, put: fc.string({ maxLength: 8 }) }),
  );

  it("reads nothing else, or what could have been an answer too", async () => {
    const property = fc.asyncProperty(
      fc.nat(calls.length - 1),
      fc.array(mutations, { minLength: 1, maxLength: 4 }),
      async (i, changes) => {
        const text = changes.reduce((before, { at, put }) => {
          return before.slice(0, at) + put + before.slice(at + 1);
        }, sound[i] ?? "");
        connection.answer = { kind: "reply", reply: Buffer.from(text) };
        const answer = await calls[i]?.().catch((error: unknown) => error);
        if (answer instanceof Error) expect(answer).toMatchObject({ code: "STORE_PROTOCOL" });
        else expect(JSON.stringify(answer)).not.toMatch(/null|NaN/);
      },
    );
    await fc.assert(property, propertyRuns(2_000));
  });

  it.each([
    ["a number", 5],
    ["nothing", undefined],
    ["too much", Buffer.alloc(20_000_000, "1 ")],
    ["entries without end", Buffer.from("7 1500 9 3 1 5 99999999 0 4 1 2 -1 0")],
    ["an index beyond", Buffer.from("7 1500 9 3 1 5 1 3 4 1 -2 0 0")],
    ["more joined than asked", Buffer.from("7 1500 9 4 0 0 -2 0 0")],
    ["a session beyond", Buffer.from("7 1500 9 3 1 1000001 0 -2 0 0")],
  ])("refuses %s", async (_, reply) => {
    connection.answer = { kind: "reply", reply };
    await expect(calls[1]?.()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });

  it("refuses an override that nobody can have set", async () => {
    for (const text of ["[]", "{", '{"mode":"off"}', '{"mode":"open","activeUsersMax":"x"}']) {
      const head = `7 1700000000000 1500 9 3 2 -1 2 4 ${text.length} 0\na1abcd${text}`;
      connection.answer = { kind: "reply", reply: Buffer.from(head) };
      await expect(calls[0]?.()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    }
  });
});
