import { expect, it } from "vitest";
import { calledBit } from "../../src/core/waiting-room/room-line.js";
import { lineChunkSize, roomVisitsMax } from "../../src/store/coordination/room-store.js";
import { soon } from "../support/redis-store.js";
import { type RoomWorld, TestRoom } from "../support/rooms.js";

const waits = { kind: "waiting" } as const;
const gone = { kind: "gone" } as const;

/** What a store of waiting rooms promises, whatever it is. */
export function describeRooms(open: () => RoomWorld): void {
  describeLeads(open);
  describeHeads(open);
  describeLines(open);
  describeChunks(open);
  describeCalls(open);
  describeConflicts(open);
  describeSessions(open);
  describeSteps(open);
  describeClocks(open);
}

function describeLeads(open: () => RoomWorld): void {
  it("has one leader, in terms that grow, until its lease is over or given up", async () => {
    const room = await TestRoom.open(open());
    expect(room.term).toBe(1);
    expect(await room.beat({ replicaId: "b2" })).toMatchObject({ term: 0, leaderId: "a1" });
    room.clock.advance(4_999);
    expect((await room.beat()).term).toBe(1);
    room.clock.advance(5_000);
    expect(await room.beat({ replicaId: "b2" })).toMatchObject({ term: 2, leaderId: "b2" });
    expect((await room.beat()).term).toBe(0);
    expect((await room.beat({ replicaId: "b2", leaseMs: 0 })).term).toBe(0);
    expect((await room.beat({ replicaId: "c3", leaseMs: 0 })).term).toBe(0);
    expect((await room.beat()).term).toBe(3);
  });

  it("adds up the waits that all replicas have seen end", async () => {
    const room = await TestRoom.open(open());
    await room.beat({ waits: { endedCount: 3, heldCount: 2 } });
    const head = await room.beat({ replicaId: "b2", waits: { endedCount: 1, heldCount: 1 } });
    expect(head.waits).toEqual({ endedCount: 4, heldCount: 3 });
  });

  it("begins a line once, and another one where it was lost", async () => {
    const room = new TestRoom(open());
    const began = await room.beat({ freshLineId: 5, freshSecret: Buffer.alloc(32, 1) });
    expect(began).toMatchObject({ lineId: 5, second: 0, nextNumber: 0, calledPlace: 0, term: 1 });
    expect(began.beganMs).toBe(room.clock.epochUs() / 1_000);
    const next = await room.beat({ freshLineId: 6, freshSecret: Buffer.alloc(32, 2) });
    expect([next.lineId, next.secret]).toEqual([5, Buffer.alloc(32, 1)]);
    await room.turn({ joinCount: 3 });
    await room.call([0]);
    await room.store.forget(room.name, soon());
    const anew = await room.beat({ freshLineId: 7 });
    expect(anew).toMatchObject({ lineId: 7, nextNumber: 0, calledPlace: 0 });
    expect((await room.turn({ lineId: 5, visits: [0, 1] })).entries).toEqual([gone, gone]);
    expect(await room.visit(0, 1)).toEqual([gone, gone]);
    expect(await room.sessions(0, 1)).toEqual([0, 0]);
  });

  it("rejects what needs a line where there is none", async () => {
    const room = new TestRoom(open());
    const read = { from: 0, count: 1 };
    for (const call of [
      () => room.turn({ joinCount: 1 }),
      () => room.apply(),
      () => room.store.readLine(room.name, read, soon()),
      () => room.store.readSessions(room.name, read, soon()),
      () => room.store.override(room.name, undefined, soon()),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    }
    await room.store.forget(room.name, soon());
  });
}

function describeHeads(open: () => RoomWorld): void {
  it("keeps what an operator set and what the leader published, byte by byte", async () => {
    const room = await TestRoom.open(open());
    expect(await room.beat()).toMatchObject({ published: undefined, override: undefined });
    const published = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
    room.clock.advance(1_500);
    await room.apply({ published });
    const override = {
      mode: "paused",
      activeUsersMax: 5,
      entriesPerMinuteMax: undefined,
      openedEvent: "Größter \n Ausverkauf",
    } as const;
    await room.store.override(room.name, override, soon());
    const head = await room.beat({ replicaId: "b2" });
    expect(head.published).toEqual({ bytes: published, second: 1.5 });
    expect(head.override).toEqual(override);
    await room.store.override(room.name, undefined, soon());
    expect((await room.beat()).override).toBeUndefined();
  });

  it("keeps rooms apart, whatever their names", async () => {
    const world = open();
    const names = ["a", "b", "a}b", "{a}", "a b", "ä:head", ""];
    const rooms = await Promise.all(names.map((name) => TestRoom.open(world, name)));
    for (const [i, room] of rooms.entries()) await room.turn({ joinCount: i + 1 });
    const heads = await Promise.all(rooms.map((room) => room.beat()));
    expect(heads.map(({ nextNumber }) => nextNumber)).toEqual(names.map((_, i) => i + 1));
  });
}

function describeLines(open: () => RoomWorld): void {
  it("gives each visitor the next number, as far as the span goes", async () => {
    const room = await TestRoom.open(open());
    const numbers = async (joinCount: number, spanMax = 10) => {
      const { firstNumber, joinedCount } = await room.turn({ joinCount, spanMax });
      return [firstNumber, joinedCount];
    };
    expect(await numbers(3)).toEqual([0, 3]);
    expect(await numbers(0)).toEqual([3, 0]);
    expect(await numbers(5)).toEqual([3, 5]);
    expect(await numbers(5)).toEqual([8, 2]);
    expect(await numbers(1)).toEqual([10, 0]);
    await room.call([0, 1, 2]);
    expect(await numbers(9)).toEqual([10, 3]);
    expect(await numbers(9, 5)).toEqual([13, 0]);
    expect(await room.beat()).toMatchObject({ nextNumber: 13, calledPlace: 3 });
  });

  it("takes a place from one who is not heard of for too long, and from nobody else", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 3 });
    await room.pass(60);
    expect(await room.visit(0)).toEqual([waits]);
    await room.pass(1);
    expect(await room.visit(2, 0, 0, 2)).toEqual([gone, waits, waits, gone]);
    expect(await room.line(0, 4)).toEqual([62, 1, 0, 0]);
    expect((await room.turn({ visits: [1], lostAfterSeconds: 61 })).entries).toEqual([waits]);
    expect(await room.visit(2, 3, 999)).toEqual([gone, gone, gone]);
  });

  it("forgets one who leaves, and frees what it had", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 3 });
    await room.call([0, 1]);
    await room.visit(0);
    await room.turn({ leaves: [{ number: 0 }, { number: 1, session: 1 }, { number: 2 }] });
    expect(await room.line(0, 3)).toEqual([0, 0, 0]);
    expect(await room.sessions(0, 2)).toEqual([0, 0, 0, 0]);
    await room.turn({ joinCount: 1 });
    await room.call([3]);
    await room.turn({ leaves: [{ number: 2, session: 0 }], visits: [2] });
    expect(await room.visit(3)).toMatchObject([{ kind: "entered", session: 0 }]);
    await room.turn({ leaves: [{ number: 9, session: 0 }] });
    expect(await room.sessions(0, 1)).toEqual([3, 1]);
  });
}

function describeChunks(open: () => RoomWorld): void {
  it("holds words of several chunks, and forgets those that are not needed", async () => {
    const room = await TestRoom.open(open());
    const perTurn = roomVisitsMax;
    const spanMax = 2 * lineChunkSize;
    for (let i = 0; i < lineChunkSize / perTurn; i += 1) {
      const joinCount = i === 0 ? perTurn - 3 : perTurn;
      await room.turn({ joinCount, spanMax });
    }
    await room.pass(1);
    const across = await room.turn({ joinCount: 8, spanMax });
    expect([across.firstNumber, across.joinedCount]).toEqual([lineChunkSize - 3, 8]);
    expect(await room.line(lineChunkSize - 5, 12)).toEqual([1, 1, ...Array(8).fill(2), 0, 0]);
    await room.pass(1);
    const visits = [lineChunkSize + 4, 0, lineChunkSize - 1, 7, lineChunkSize + 5];
    expect(await room.visit(...visits)).toEqual([waits, waits, waits, waits, gone]);
    expect(await room.line(lineChunkSize - 1, 6)).toEqual([3, 2, 2, 2, 2, 3]);
    await room.call([7, lineChunkSize - 1, lineChunkSize]);
    await room.apply({ calledPlace: lineChunkSize, forgottenBelow: lineChunkSize - 1 });
    expect(await room.visit(0)).toEqual([waits]);
    await room.apply({ calledPlace: lineChunkSize, forgottenBelow: lineChunkSize + 2 });
    expect(await room.line(lineChunkSize - 2, 4)).toEqual([0, 0, calledBit + 2, 2]);
    expect(await room.visit(0, lineChunkSize + 1, 7)).toEqual([gone, waits, gone]);
    expect((await room.turn({ letIns: [1] })).letInEntries).toEqual([gone]);
    // A session outlives its place.
    expect(await room.sessions(0, 1)).toEqual([7, calledBit + 3]);
    await room.turn({ leaves: [{ number: 7, session: 0 }] });
    expect(await room.sessions(0, 1)).toEqual([0, 0]);
  });
}

function describeCalls(open: () => RoomWorld): void {
  it("lets a called visitor enter once, and tells it the same again", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 3 });
    expect(await room.call([0, 1], 4)).toMatchObject({ calledCount: 2, freedCount: 0 });
    expect(await room.sessions(4, 2)).toEqual([0, calledBit + 1, 1, calledBit + 1]);
    await room.pass(2);
    const entered = { kind: "entered", session: 4, usedSecond: 2 };
    expect(await room.visit(0, 2, 0)).toEqual([entered, waits, entered]);
    await room.pass(2);
    expect(await room.visit(0)).toEqual([entered]);
    expect(await room.sessions(4, 2)).toEqual([0, 3, 1, calledBit + 1]);
  });

  it("calls nobody who has left, is lost, or was called before", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 4 });
    await room.pass(60);
    await room.turn({ visits: [1, 2], leaves: [{ number: 1 }] });
    await room.pass(1);
    expect(await room.call([0, 1, 2, 99])).toMatchObject({ calledCount: 1 });
    expect(await room.sessions(0, 4)).toEqual([0, 0, 0, 0, 2, calledBit + 62, 0, 0]);
    expect(await room.call([2], 7)).toMatchObject({ calledCount: 0 });
    expect((await room.beat()).calledPlace).toBe(4);
  });
}

function describeConflicts(open: () => RoomWorld): void {
  it("stops at a visitor whose session is taken, and leaves it its place", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 5 });
    await room.call([0], 1);
    const calls = [1, 2, 3, 4].map((number, i) => ({ number, place: number, session: i }));
    const step = await room.apply({ calls, calledPlace: 5 });
    expect(step).toMatchObject({ calledCount: 1 });
    expect((await room.beat()).calledPlace).toBe(2);
    expect(await room.visit(1, 2, 3)).toMatchObject([{ session: 0 }, waits, waits]);
    await room.turn({ leaves: [{ number: 2 }] });
    await room.apply({ calls: calls.slice(1), calledPlace: 5 });
    expect(await room.visit(1, 2, 3)).toMatchObject([{ session: 0 }, gone, { session: 2 }]);
  });

  it("calls and frees as many as a step may have, in the order of their places", async () => {
    const room = await TestRoom.open(open());
    const count = 1_500;
    for (let i = 0; i < 3; i += 1) await room.turn({ joinCount: 500, spanMax: count });
    const calls = Array.from({ length: count }, (_, i) => ({
      ...{ number: i, place: i, session: count - i },
    }));
    await room.apply({ calls: [{ number: 1_499, place: 1_499, session: count - 700 }] });
    const step = { calls, calledPlace: count, spareSessions: [7, 8] };
    expect(await room.apply(step)).toMatchObject({ calledCount: 700, freedCount: 0 });
    expect((await room.beat()).calledPlace).toBe(700);
    expect(await room.visit(699, 700)).toMatchObject([{ session: count - 699 }, waits]);
    const word = calledBit + 1;
    const taken = { number: 1_499, session: count - 700, word };
    const frees = [...calls.map(({ number, session }) => ({ number, session, word })), taken];
    expect(await room.apply({ frees, ...step, calls: calls.slice(700) })).toMatchObject({
      ...{ calledCount: 799, freedCount: 700 },
    });
    expect(await room.beat()).toMatchObject({ calledPlace: count, nextNumber: count });
    expect((await room.turn({ joinCount: 2 })).enteredSessions).toEqual([]);
  });

  it("takes a session back, which is another one's from then on", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 3 });
    await room.call([0]);
    const frees = [{ session: 0, number: 0, word: calledBit + 1 }];
    const calls = [{ number: 1, place: 1, session: 0 }];
    expect(await room.apply({ frees, calls, calledPlace: 2 })).toMatchObject({
      ...{ kind: "applied", calledCount: 1, freedCount: 1 },
    });
    expect(await room.visit(0, 1)).toMatchObject([gone, { kind: "entered", session: 0 }]);
    expect(await room.line(0, 1)).toEqual([0]);
    // Its word has changed since: it has entered.
    expect(
      await room.apply({ frees: [{ session: 0, number: 1, word: calledBit + 1 }] }),
    ).toMatchObject({
      ...{ kind: "applied", calledCount: 0, freedCount: 0 },
    });
    const other = [
      { session: 0, number: 2, word: 1 },
      { session: 5, number: 0, word: 0 },
    ];
    expect(await room.apply({ frees: other })).toMatchObject({ freedCount: 0 });
    expect(await room.apply({ frees: [{ session: 0, number: 1, word: 1 }] })).toMatchObject({
      freedCount: 1,
    });
    expect(await room.visit(1)).toEqual([gone]);
  });
}

function describeSessions(open: () => RoomWorld): void {
  it("gives spare sessions to those who join while nobody waits", async () => {
    const room = await TestRoom.open(open());
    await room.apply({ spareSessions: [9, 2] });
    await room.pass(3);
    expect(await room.turn({ joinCount: 1, spanMax: 0 })).toMatchObject({
      ...{ firstNumber: 0, joinedCount: 1, enteredSessions: [9] },
    });
    expect((await room.beat()).calledPlace).toBe(1);
    expect(await room.visit(0)).toEqual([{ kind: "entered", session: 9, usedSecond: 3 }]);
    expect((await room.turn({ joinCount: 3 })).enteredSessions).toEqual([2]);
    expect(await room.beat()).toMatchObject({ nextNumber: 4, calledPlace: 2 });
    expect(await room.sessions(2, 1)).toEqual([1, 4]);
    await room.apply({ spareSessions: [9, 5, 6], calledPlace: 2 });
    expect((await room.turn({ joinCount: 1 })).enteredSessions).toEqual([]);
    await room.apply({ spareSessions: [9, 5, 6], calledPlace: 5 });
    expect((await room.turn({ joinCount: 1 })).enteredSessions).toEqual([5]);
    await room.apply({ spareSessions: [], calledPlace: 6 });
    expect((await room.turn({ joinCount: 1 })).enteredSessions).toEqual([]);
  });

  it("calls those whom an operator lets in, as far as there are extra sessions", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 6 });
    await room.call([0]);
    await room.apply({ extraSessions: [0, 7, 8] });
    await room.pass(1);
    const own = { kind: "entered", session: 0, usedSecond: 0 };
    const { letInEntries } = await room.turn({ letIns: [0, 4, 4, 2, 3, 9] });
    const first = { kind: "entered", session: 7, usedSecond: 1 };
    const second = { kind: "entered", session: 8, usedSecond: 1 };
    expect(letInEntries).toEqual([own, first, first, second, waits, gone]);
    expect(await room.sessions(7, 2)).toEqual([4, calledBit + 2, 2, calledBit + 2]);
    expect(await room.visit(4, 3)).toEqual([first, waits]);
    expect(await room.sessions(7, 1)).toEqual([4, 2]);
  });

  it("renews the session of its own visitor alone", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 2 });
    await room.call([0, 1]);
    await room.visit(0);
    await room.pass(5);
    const keys = [
      [0, 0],
      [0, 1],
      [1, 1],
      [2, 0],
      [999_999, 1],
    ];
    const renewals = keys.map(([session = 0, number = 0]) => ({ session, number }));
    const { renewed } = await room.turn({ renewals });
    expect(renewed).toEqual([true, false, true, false, false]);
    expect(await room.sessions(0, 3)).toEqual([0, 6, 1, 6, 0, 0]);
    const other = await room.turn({ lineId: 1, renewals });
    expect(other.renewed).toEqual(keys.map(() => false));
  });
}

function describeSteps(open: () => RoomWorld): void {
  it("takes steps from the leader alone, while its lease lasts", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 2 });
    const outranked = { kind: "outranked" };
    const calls = [{ number: 0, place: 0, session: 0 }];
    // A step that was decided before another one was applied, and comes late.
    expect(await room.apply({ calls, afterSecond: 0.5 })).toEqual(outranked);
    expect(await room.apply({ calls, term: 2 })).toEqual(outranked);
    expect(await room.apply({ calls, replicaId: "b2" })).toEqual(outranked);
    expect(await room.apply({ calls, lineId: 78 })).toEqual(outranked);
    room.clock.advance(5_000);
    expect(await room.apply({ calls })).toEqual(outranked);
    await room.beat({ replicaId: "b2" });
    expect(await room.apply({ calls, term: 1 })).toEqual(outranked);
    expect(await room.visit(0)).toEqual([waits]);
    expect(await room.apply({ calls, replicaId: "b2" })).toMatchObject({ kind: "applied" });
  });

  it("never moves the called place back, nor beyond the next number", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 5 });
    for (const [calledPlace, expected] of [
      [3, 3],
      [1, 3],
      [9, 5],
    ]) {
      await room.apply({ calledPlace: calledPlace ?? 0 });
      expect((await room.beat()).calledPlace).toBe(expected);
    }
  });

  it("refuses turns and steps that are larger than they may be", async () => {
    const room = await TestRoom.open(open());
    const visits = Array.from({ length: roomVisitsMax }, (_, i) => i);
    expect((await room.turn({ visits })).entries).toHaveLength(roomVisitsMax);
    for (const fields of [
      { visits, joinCount: 1 },
      { visits: [-1] },
      { visits: [2 ** 48] },
      { letIns: [0.5] },
      { leaves: [{ number: 0, session: 1_000_000 }] },
    ]) {
      await expect(room.turn(fields)).rejects.toThrow("assertion failed");
    }
    for (const fields of [
      { spareSessions: [3, 3] },
      { spareSessions: Array.from({ length: 5_000 }, (_, i) => i) },
      { published: Buffer.alloc(65_537) },
    ]) {
      await expect(room.apply(fields)).rejects.toThrow("assertion failed");
    }
  });
}

function describeClocks(open: () => RoomWorld): void {
  it("goes on from where it was when the clock steps back", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 2 });
    await room.pass(30);
    await room.turn({ visits: [1] });
    room.clock.stepEpoch(-3_600_000_000);
    expect((await room.turn()).second).toBe(30);
    const head = await room.beat();
    expect([head.second, head.term]).toEqual([30, 1]);
    expect(head.beganMs).toBe(room.clock.epochUs() / 1_000 - 30_000);
    await room.pass(31);
    expect(await room.visit(0, 1)).toEqual([gone, waits]);
    expect((await room.beat()).second).toBe(61);
  });

  it("counts a silence of all replicas, or a step ahead, as ten seconds", async () => {
    const room = await TestRoom.open(open());
    await room.turn({ joinCount: 1 });
    room.clock.advance(3_600_000);
    expect((await room.turn({ visits: [0] })).entries).toEqual([waits]);
    const head = await room.beat();
    expect([head.second, head.term]).toEqual([10, 2]);
    expect(head.beganMs).toBe(room.clock.epochUs() / 1_000 - 10_000);
    room.clock.advance(9_999);
    expect((await room.beat()).second).toBe(19.999);
  });
}
