import { describe, expect, it } from "vitest";
import { placeOf } from "../../../../src/core/waiting-room/places.js";
import {
  decodePublishedRoom,
  encodePublishedRoom,
  type PublishedRoom,
} from "../../../../src/core/waiting-room/published-room.js";
import {
  type LeaderDecision,
  type LeaderInput,
  RoomLeader,
} from "../../../../src/core/waiting-room/room-leader.js";
import { calledBit, type RoomOverride } from "../../../../src/core/waiting-room/room-line.js";
import type { EventRules, RoomRules } from "../../../../src/core/waiting-room/room-rules.js";
import { MemoryRooms } from "../../../../src/store/coordination/memory-rooms.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { TestRoom } from "../../../support/rooms.js";
import { runSeeds, seedsFrom } from "../../../support/seeds.js";

const rules: RoomRules = {
  name: "sale",
  activeUsersMax: 3,
  entriesPerMinuteMax: "auto",
  sessionMs: 60_000,
  order: "fifo",
  queueAll: false,
  waitingMax: 1_000,
  refreshMs: 20_000,
  missedRefreshesMax: 2,
  events: [],
  estimatedWait: undefined,
};

const wide = { lineWordsMax: 262_144, sessionsReadMax: 65_536, stepEntriesMax: 4_096 };

/** A room in memory with a leader that steps when it is told to. */
class LedRoom {
  readonly clock = new FakeClock();
  readonly room = new TestRoom({ store: new MemoryRooms(this.clock), clock: this.clock });
  rules: RoomRules;
  bounds = wide;
  seed = 99;
  load: LeaderInput["load"];
  published: PublishedRoom | undefined;
  leader: RoomLeader | undefined;

  constructor(change: Partial<RoomRules> = {}) {
    this.rules = { ...rules, ...change };
  }

  /** One step, a second after the last one. */
  async step(): Promise<LeaderDecision> {
    this.clock.advance(1_000);
    const head = await this.room.beat();
    if (this.leader?.isOf(head) !== true) {
      this.leader = new RoomLeader(head, this.published, this.bounds);
    }
    const { leader } = this;
    const input = { rules: this.rules, head, load: this.load, seed: this.seed };
    const reads = leader.reads(head);
    for (const range of reads.line) {
      const words = await this.room.store.readLine("sale", range, Number.POSITIVE_INFINITY);
      leader.readLine(range, words, input);
    }
    for (const range of reads.sessions) {
      const words = await this.room.store.readSessions("sale", range, Number.POSITIVE_INFINITY);
      leader.readSessions(range, words);
    }
    const decision = leader.decide(input);
    const { published, ...step } = decision;
    await this.room.apply({ ...step, published: Buffer.alloc(0) });
    this.published = decodePublishedRoom(encodePublishedRoom(published));
    expect(this.published).toEqual(published);
    return decision;
  }

  async steps(count: number): Promise<LeaderDecision> {
    for (let i = 1; i < count; i += 1) await this.step();
    return this.step();
  }

  join(joinCount: number) {
    return this.room.turn({ joinCount });
  }

  override(override: Partial<RoomOverride>): Promise<void> {
    const none = { activeUsersMax: undefined, entriesPerMinuteMax: undefined };
    const whole = { mode: "open" as const, ...none, openedEvent: undefined, ...override };
    return this.room.store.override("sale", whole, Number.POSITIVE_INFINITY);
  }
}

function calledNumbers({ calls }: LeaderDecision): readonly number[] {
  return calls.map(({ number }) => number);
}

describe("RoomLeader", () => {
  it("calls as many as there are sessions, in the order of joining", async () => {
    const led = new LedRoom();
    await led.room.beat();
    await led.join(5);
    expect(calledNumbers(await led.step())).toEqual([0, 1, 2]);
    expect(calledNumbers(await led.step())).toEqual([]);
    expect(led.published?.status).toMatchObject({
      waitingCount: 2,
      activeCount: 3,
      calledPlace: 3,
    });
    await led.room.turn({ leaves: [{ number: 1 }] });
    expect(calledNumbers(await led.step())).toEqual([3]);
  });

  it("expects sessions to last as long as those that have ended did", async () => {
    const led = new LedRoom({ queueAll: true, sessionMs: 600_000 });
    await led.room.beat();
    await led.join(10);
    let inside = calledNumbers(await led.step());
    // Until some have ended, as long as the policy says.
    expect(led.published?.status.entriesPerSecond).toBeCloseTo(3 / 600, 6);
    for (let round = 0; round < 10; round += 1) {
      await led.join(10);
      await led.steps(9);
      await led.room.turn({ leaves: inside.map((number) => ({ number })) });
      inside = calledNumbers(await led.step());
      expect(inside, `round ${round}`).toHaveLength(3);
    }
    // Thirty of ten seconds, beside two that are presumed to have been as the policy says.
    const meanSeconds = (30 * 10 + 2 * 600) / 32;
    expect(led.published?.status.entriesPerSecond).toBeCloseTo(3 / meanSeconds, 2);
  });

  it("offers spare sessions while nobody waits, but in its first step", async () => {
    const led = new LedRoom();
    expect((await led.step()).spareSessions).toEqual([]);
    expect((await led.step()).spareSessions).toHaveLength(3);
    const { enteredSessions, joinedCount } = await led.join(5);
    expect([joinedCount, enteredSessions.length]).toEqual([5, 3]);
    const full = await led.step();
    expect([full.calls, full.spareSessions]).toEqual([[], []]);
    expect(led.published?.status).toMatchObject({
      waitingCount: 2,
      activeCount: 3,
      calledPlace: 3,
    });
  });

  it.each([
    { name: "queueAll", queueAll: true, mode: "open" as const },
    { name: "a room that is drained", queueAll: false, mode: "draining" as const },
    { name: "a room that is paused", queueAll: false, mode: "paused" as const },
  ])("offers no spare sessions with $name", async ({ queueAll, mode }) => {
    const led = new LedRoom({ queueAll });
    await led.step();
    await led.override({ mode });
    expect((await led.step()).spareSessions).toEqual([]);
  });

  it("calls nobody while it is paused, and goes on then", async () => {
    const led = new LedRoom();
    await led.room.beat();
    await led.join(2);
    await led.override({ mode: "paused" });
    expect(calledNumbers(await led.step())).toEqual([]);
    expect(led.published?.status).toMatchObject({ mode: "paused", entriesPerSecond: undefined });
    await led.override({ mode: "draining" });
    expect(calledNumbers(await led.step())).toEqual([0, 1]);
  });

  it("takes sessions back from visitors who do not come, and from those who are over", async () => {
    const led = new LedRoom();
    await led.room.beat();
    await led.join(3);
    await led.step();
    await led.room.visit(0);
    // 60 seconds for three refreshes, and 3 for what is late.
    for (let second = 0; second < 62; second += 1) {
      expect((await led.step()).frees).toEqual([]);
    }
    const freed = await led.steps(2);
    expect(freed.frees.map(({ number }) => number)).toEqual([0, 1, 2]);
    expect((await led.step()).published.status.activeCount).toBe(0);
    expect(await led.room.visit(0, 1, 2)).toEqual(Array(3).fill({ kind: "gone" }));
  });

  it("keeps what was renewed while it decided, and calls nobody in its place", async () => {
    const led = new LedRoom({ activeUsersMax: 1 });
    await led.room.beat();
    await led.join(2);
    await led.step();
    await led.room.visit(0);
    for (let second = 0; second < 63; second += 1) {
      await led.room.visit(1);
      await led.step();
    }
    const head = await led.room.beat();
    led.clock.advance(1_000);
    const apply = led.room.store.apply.bind(led.room.store);
    led.room.store.apply = async (...args) => {
      await led.room.turn({ renewals: [{ session: 0, number: 0 }] });
      return apply(...args);
    };
    const decision = await led.step();
    expect([decision.frees.length, calledNumbers(decision)]).toEqual([1, [1]]);
    expect((await led.room.beat()).calledPlace).toBe(head.calledPlace);
    led.room.store.apply = apply;
    expect(calledNumbers(await led.step())).toEqual([]);
    await led.room.turn({ leaves: [{ number: 0 }] });
    expect(calledNumbers(await led.step())).toEqual([1]);
  });

  it("passes over visitors who are gone", async () => {
    const led = new LedRoom({ activeUsersMax: 1 });
    await led.room.beat();
    await led.join(5);
    await led.step();
    await led.room.turn({ leaves: [{ number: 1 }, { number: 2 }] });
    await led.step();
    expect(led.published?.status).toMatchObject({ waitingCount: 2, calledPlace: 3 });
    await led.room.turn({ leaves: [{ number: 0 }] });
    expect(calledNumbers(await led.step())).toEqual([3]);
  });

  it("lets as many in a minute as it may, in any minute", async () => {
    const patient = { refreshMs: 600_000 };
    const led = new LedRoom({ activeUsersMax: 1_000, entriesPerMinuteMax: 90, ...patient });
    await led.room.beat();
    await led.join(400);
    const perSecond: number[] = [];
    for (let second = 0; second < 240; second += 1) {
      if (second === 100) for (let i = 0; i < 20; i += 1) led.clock.advance(1_000);
      perSecond.push((await led.step()).calls.length);
    }
    for (let from = 0; from + 60 <= perSecond.length; from += 1) {
      const sum = perSecond.slice(from, from + 60).reduce((all, count) => all + count, 0);
      expect(sum).toBeLessThanOrEqual(90 + 3 + 1);
      expect(sum).toBeGreaterThanOrEqual(89);
    }
  });

  it("counts those who enter at once by the rate, too", async () => {
    const led = new LedRoom({ activeUsersMax: 1_000, entriesPerMinuteMax: 60 });
    let entered = 0;
    for (let second = 0; second < 60; second += 1) {
      entered += (await led.step()).calls.length;
      entered += (await led.join(1)).enteredSessions.length;
      await led.join(1);
    }
    expect(entered).toBeGreaterThanOrEqual(58);
    expect(entered).toBeLessThanOrEqual(63);
  });

  it("keeps within a bound that an operator lowers, as sessions end", async () => {
    const led = new LedRoom({ activeUsersMax: 10 });
    await led.room.beat();
    await led.join(20);
    await led.step();
    await led.override({ activeUsersMax: 4 });
    await led.room.turn({ leaves: [0, 1, 2, 3, 4, 5].map((number) => ({ number })) });
    expect(calledNumbers(await led.step())).toEqual([]);
    expect(led.published?.status).toMatchObject({ activeCount: 4, activeCountMax: 4 });
    await led.room.turn({ leaves: [{ number: 6 }] });
    expect(calledNumbers(await led.step())).toEqual([10]);
  });

  it("has sessions for those whom operators let in while it is full", async () => {
    const led = new LedRoom();
    await led.room.beat();
    await led.join(5);
    await led.step();
    const { letInEntries } = await led.room.turn({ letIns: [4] });
    expect(letInEntries).toMatchObject([{ kind: "entered" }]);
    await led.step();
    expect(led.published?.status).toMatchObject({ activeCount: 4, waitingCount: 1 });
  });
});

describe("RoomLeader at the opening of an event", () => {
  const startsAtMs = new FakeClock().epochUs() / 1_000 + 100_000;
  const event: EventRules = {
    name: "opening",
    startsAtMs,
    endsAtMs: startsAtMs + 60_000,
    preQueueMs: 50_000,
    shuffles: true,
    activeUsersMax: 8,
    entriesPerMinuteMax: undefined,
  };

  it("lets nobody in before, and shuffles those who wait, once", async () => {
    const led = new LedRoom({ events: [event] });
    await led.room.beat();
    await led.steps(49);
    expect(led.published?.status).toMatchObject({ phase: "none", opensSecond: 100 });
    await led.step();
    expect(led.published?.status).toMatchObject({ phase: "preQueue", shufflesNext: true });
    expect((await led.join(20)).enteredSessions).toEqual([]);
    for (let second = 0; second < 49; second += 1) {
      const { calls, spareSessions } = await led.step();
      expect([calls, spareSessions]).toEqual([[], []]);
    }
    await led.room.visit(...Array.from({ length: 20 }, (_, number) => number));
    const opening = await led.step();
    const { phase, shuffles, activeCountMax } = opening.published.status;
    expect([phase, activeCountMax]).toEqual(["open", 8]);
    expect(shuffles).toEqual([{ from: 0, count: 20, seed: 99 }]);
    const byPlace = Array.from({ length: 20 }, (_, number) => number).sort(
      (left, right) => placeOf(left, shuffles) - placeOf(right, shuffles),
    );
    // Nobody is called before the new places are published.
    expect([calledNumbers(opening), opening.calledPlace]).toEqual([[], 0]);
    expect(calledNumbers(await led.step())).toEqual(byPlace.slice(0, 8));
    expect(byPlace).not.toEqual(byPlace.toSorted((left, right) => left - right));
    // Another leader goes on with the same places, and who joins now waits behind.
    led.leader = undefined;
    led.seed = 5;
    await led.join(3);
    await led.room.turn({ leaves: byPlace.slice(0, 8).map((number) => ({ number })) });
    expect(calledNumbers(await led.step())).toEqual(byPlace.slice(8, 16));
    await led.room.turn({ leaves: byPlace.slice(8, 16).map((number) => ({ number })) });
    expect(calledNumbers(await led.step())).toEqual([...byPlace.slice(16), 20, 21, 22]);
    expect((await led.step()).published.status.shuffles).toEqual([]);
    await led.steps(60);
    expect(led.published?.status).toMatchObject({ phase: "none", activeCountMax: 3 });
  });

  it("opens one by hand, and does not shuffle it again at its time", async () => {
    const led = new LedRoom({ events: [event], activeUsersMax: 1 });
    await led.room.beat();
    await led.join(4);
    await led.step();
    await led.override({ openedEvent: "opening", activeUsersMax: 1 });
    await led.step();
    expect(led.published?.status.phase).toBe("open");
    expect(led.published?.status.shuffles).toEqual([{ from: 1, count: 3, seed: 99 }]);
    led.seed = 7;
    await led.override({ activeUsersMax: 1 });
    for (let second = 0; second < 110; second += 1) {
      await led.room.visit(0, 1, 2, 3);
      await led.step();
    }
    expect(led.published?.status.shuffles).toEqual([{ from: 1, count: 3, seed: 99 }]);
  });

  it("shuffles in a room of random order whatever the event says", async () => {
    const led = new LedRoom({ events: [{ ...event, shuffles: false }], order: "random" });
    await led.room.beat();
    await led.steps(60);
    await led.join(20);
    await led.steps(41);
    expect(led.published?.status.shuffles).toHaveLength(1);
  });
});

describe("RoomLeader with reads that answer little", () => {
  const tiny = { lineWordsMax: 16, sessionsReadMax: 4, stepEntriesMax: 4_096 };

  it("reads what it has not seen before it calls anybody", async () => {
    const led = new LedRoom({ activeUsersMax: 40 });
    led.bounds = tiny;
    await led.room.beat();
    await led.join(200);
    const called: number[] = [];
    for (let second = 0; second < 6; second += 1) called.push(...calledNumbers(await led.step()));
    expect(called).toEqual(Array.from({ length: 40 }, (_, number) => number));
    // A new leader finds each session, and each visitor.
    led.leader = undefined;
    await led.room.turn({ leaves: [{ number: 7 }, { number: 39 }] });
    expect(calledNumbers(await led.step())).toEqual([40, 41]);
    await led.steps(4);
    expect(led.published?.status).toMatchObject({ waitingCount: 158, activeCount: 40 });
  });

  it("is not wrong for long about who is present, or which session is free", async () => {
    await runSeeds(seedsFrom(1, 10), async (seed) => {
      const random = new FakeRandom(seed);
      const led = new LedRoom({ activeUsersMax: 30, sessionMs: 600_000 });
      led.bounds = tiny;
      await led.room.beat();
      const waiting = new Set<number>();
      const inside = new Set<number>();
      for (let second = 0; second < 150; second += 1) {
        const { firstNumber, joinedCount, enteredSessions } = await led.join(
          Math.floor(random.next() * 5),
        );
        for (let i = 0; i < joinedCount; i += 1) {
          (i < enteredSessions.length ? inside : waiting).add(firstNumber + i);
        }
        for (const number of calledNumbers(await led.step())) {
          // Who has left since its word was read is called in vain.
          if (waiting.delete(number)) inside.add(number);
        }
        expect(inside.size).toBeLessThanOrEqual(30);
        for (const group of [waiting, inside]) {
          const leaves = [...group].filter(() => random.next() < 0.05);
          for (const number of leaves) group.delete(number);
          await led.room.turn({ leaves: leaves.map((number) => ({ number })) });
        }
        await led.room.visit(...[...waiting, ...inside].slice(0, 500));
      }
      await led.steps(30);
      const { status } = led.published ?? expect.fail("a step was made");
      const presentCount = waiting.size + inside.size;
      expect(status.activeCount).toBe(Math.min(30, presentCount));
      expect(status.waitingCount).toBe(presentCount - status.activeCount);
      expect(status.waitingCount).toBe(status.liveByBlock.reduce((sum, count) => sum + count, 0));
    });
  });
});

describe("RoomLeader of a long line", () => {
  it("forgets words behind those who wait, but not of sessions in use", async () => {
    const led = new LedRoom({ activeUsersMax: 2 });
    await led.room.beat();
    await led.room.turn({ joinCount: 500, spanMax: 1e6 });
    await led.step();
    await led.room.turn({ leaves: [{ number: 1 }] });
    const { forgottenBelow } = await led.steps(3);
    expect(forgottenBelow).toBe(0);
    await led.room.turn({ leaves: [{ number: 0 }] });
    await led.step();
    expect((await led.step()).forgottenBelow).toBe(2);
    expect((await led.room.sessions(0, 1))[1]).toBeGreaterThan(calledBit);
  });
});
