import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import type { RoomStore } from "../../src/store/coordination/room-store.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { shareTestStore, soon } from "../support/redis-store.js";
import { openClockedRooms, TestRoom } from "../support/rooms.js";
import { metCount, propertyRuns } from "../support/seeds.js";

/** What a history asks of a store, with all that the store answers. */
type Call = (room: TestRoom) => Promise<unknown>;

const sessionCount = 6;
const numberMax = 40;

const numbers = fc.nat(numberMax);
const sessions = fc.nat(sessionCount - 1);
const key = fc.record({ session: sessions, number: numbers });
const few = { maxLength: 6 };
const distinct = fc.uniqueArray(sessions, { maxLength: sessionCount });
const lineIds = fc.constantFrom(77, 77, 77, 77, 5);
const lostAfterSeconds = fc.constantFrom(0, 2, 5, 60);

const turns = fc
  .record({
    lineId: lineIds,
    joinCount: fc.nat(6),
    spanMax: fc.constantFrom(0, 3, 10, 1_000),
    lostAfterSeconds,
    visits: fc.array(numbers, { maxLength: 12 }),
    renewals: fc.array(key, few),
    letIns: fc.array(numbers, { maxLength: 3 }),
    leaves: fc.array(
      fc.record({ number: numbers, session: sessions }, { requiredKeys: ["number"] }),
      { maxLength: 3 },
    ),
  })
  .map(
    (turn): Call =>
      (room) =>
        room.turn(turn),
  );

const beats = fc
  .record({
    replicaId: fc.constantFrom("a1", "b2"),
    leaseMs: fc.constantFrom(0, 500, 5_000),
    waits: fc.record({ endedCount: fc.nat(9), heldCount: fc.nat(9) }),
  })
  .map(
    (beat): Call =>
      (room) =>
        room.beat(beat),
  );

/** A leader's step by what it reads: it frees, calls and lists some sessions, and some in vain. */
const steps = fc
  .record({
    replicaId: fc.constantFrom("a1", "a1", "b2"),
    termsAgo: fc.constantFrom(0, 0, 0, 1),
    lineId: lineIds,
    lostAfterSeconds,
    freed: distinct,
    wrongWord: fc.constantFrom(0, 0, 0, 1),
    called: fc.array(key, few),
    spareSessions: distinct,
    extraSessions: distinct,
    ahead: fc.nat(8),
    published: fc.uint8Array({ maxLength: 8 }),
  })
  .map(({ freed, wrongWord, called, ahead, termsAgo, published, ...step }): Call => {
    return async (room) => {
      const words = await room.sessions(0, sessionCount);
      const head = await room.beat({ replicaId: "c3", leaseMs: 0 });
      const frees = freed.map((session) => ({
        session,
        number: words[2 * session] ?? 0,
        word: (words[2 * session + 1] ?? 0) + wrongWord,
      }));
      const calls = called.map((one, i) => ({ ...one, place: head.calledPlace + i }));
      const calledPlace = head.calledPlace + ahead;
      const term = Math.max(0, room.term - termsAgo);
      const fields = { ...step, term, frees, calls, calledPlace };
      return room.apply({ ...fields, published: Buffer.from(published) });
    };
  });

const passings = fc
  .oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 3_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 3_000, max: 40_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -40_000, max: -1 }) },
  )
  .map((ms): Call => {
    return async ({ clock }) => clock.stepEpoch(1_000 * ms);
  });

const overrides = fc
  .constantFrom(undefined, {
    mode: "draining" as const,
    activeUsersMax: 3,
    entriesPerMinuteMax: undefined,
    openedEvent: undefined,
  })
  .map(
    (override): Call =>
      ({ store, name }) =>
        store.override(name, override, soon()),
  );

const histories = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: turns },
    { weight: 4, arbitrary: steps },
    { weight: 3, arbitrary: passings },
    { weight: 2, arbitrary: beats },
    { weight: 1, arbitrary: overrides },
  ),
  { minLength: 5, maxLength: 40 },
);

/** What there is to see of a room. */
async function look(room: TestRoom): Promise<unknown> {
  const head = await room.beat({ replicaId: "c3", leaseMs: 0 });
  return { head, line: await room.line(0, numberMax), sessions: await room.sessions(0, 8) };
}

describe.each(enginesFor.scripts)("waiting rooms over %s and in memory", (engine) => {
  const shared = shareTestStore(engine);
  const runs = propertyRuns(historiesOn(engine, 400));

  it("answer the same to any history", async () => {
    let roomCount = 0;
    const met = { entered: 0, gone: 0, outranked: 0, called: 0 };
    const property = fc.asyncProperty(histories, async (history) => {
      roomCount += 1;
      const open = (createStore: (clock: FakeClock) => RoomStore) => {
        const clock = new FakeClock();
        return TestRoom.open({ store: createStore(clock), clock }, `room ${roomCount}`);
      };
      const own = await open((clock) => new MemoryRooms(clock));
      const { connections } = shared.opened;
      const other = await open((clock) => openClockedRooms({ connections, clock }));
      for (const call of history) {
        const [expected, answer] = [await call(own), await call(other)];
        expect(answer).toEqual(expected);
        const text = JSON.stringify(answer) ?? "";
        if (text.includes('"entered"')) met.entered += 1;
        if (text.includes('"gone"')) met.gone += 1;
        if (text.includes('"outranked"')) met.outranked += 1;
        if (/"calledCount":[1-9]/.test(text)) met.called += 1;
        expect(await look(other)).toEqual(await look(own));
      }
      await other.store.forget(other.name, soon());
    });
    await fc.assert(property, runs);
    for (const count of Object.values(met)) {
      expect(count).toBeGreaterThan(metCount(historiesOn(engine, 20)));
    }
    expect(await shared.control.dbsize()).toBe(0);
  });
});
