import type {
  RoomBeat,
  RoomHead,
  RoomStep,
  RoomStepAnswer,
  RoomStore,
  RoomTurn,
  RoomTurnAnswer,
} from "../../src/store/coordination/room-store.js";
import type { RedisConnections } from "../../src/store/redis/connections.js";
import { RedisRooms } from "../../src/store/redis/coordination/redis-rooms.js";
import { ClockedConnection } from "./clocked-connection.js";
import type { FakeClock } from "./fake-clock.js";
import { soon } from "./redis-store.js";

/** A store of rooms that goes by a clock of the test. */
export interface RoomWorld {
  readonly store: RoomStore;
  readonly clock: FakeClock;
}

/** Rooms in a real Redis that go by a clock of the test. */
export function openClockedRooms({
  connections,
  clock,
  keyPrefix = "headgate:",
}: {
  readonly connections: Pick<RedisConnections, "decision" | "fleet" | "background">;
  readonly clock: FakeClock;
  readonly keyPrefix?: string;
}): RedisRooms {
  return new RedisRooms({
    turns: new ClockedConnection(connections.decision, clock),
    heartbeats: new ClockedConnection(connections.fleet, clock),
    bulk: new ClockedConnection(connections.background, clock),
    keyPrefix,
  });
}

/** One room of a store, with calls that say only what a test is about. */
export class TestRoom {
  readonly store: RoomStore;
  readonly clock: FakeClock;
  readonly name: string;
  lineId = 0;
  term = 0;
  /** When a leader published last, as far as this room has been told. */
  publishedSecond: number | undefined;

  constructor({ store, clock }: RoomWorld, name = "sale") {
    this.store = store;
    this.clock = clock;
    this.name = name;
  }

  /** Beats once for `a1`, who leads from now on. */
  static async open(world: RoomWorld, name?: string): Promise<TestRoom> {
    const room = new TestRoom(world, name);
    await room.beat();
    return room;
  }

  async beat(fields: Partial<RoomBeat> = {}): Promise<RoomHead> {
    const head = await this.store.beat(
      {
        room: this.name,
        replicaId: "a1",
        leaseMs: 5_000,
        freshLineId: 77,
        freshSecret: Buffer.alloc(32, 0xf1),
        waits: { endedCount: 0, heldCount: 0 },
        ...fields,
      },
      soon(),
    );
    this.lineId = head.lineId;
    if (head.term > 0) this.term = head.term;
    this.publishedSecond = head.published?.second;
    return head;
  }

  turn(fields: Partial<RoomTurn> = {}): Promise<RoomTurnAnswer> {
    const empty = { joinCount: 0, visits: [], renewals: [], letIns: [], leaves: [] };
    const own = { room: this.name, lineId: this.lineId, spanMax: 1_000, lostAfterSeconds: 60 };
    return this.store.turn({ ...own, ...empty, ...fields }, soon());
  }

  async visit(...visits: readonly number[]): Promise<RoomTurnAnswer["entries"]> {
    return (await this.turn({ visits })).entries;
  }

  async apply(fields: Partial<RoomStep> = {}): Promise<RoomStepAnswer> {
    const own = { room: this.name, lineId: this.lineId, term: this.term, replicaId: "a1" };
    const afterSecond = this.publishedSecond;
    const empty = { frees: [], calls: [], spareSessions: [], extraSessions: [] };
    const step = { lostAfterSeconds: 60, calledPlace: 0, forgottenBelow: 0 };
    const answer = await this.store.apply(
      { ...own, ...empty, ...step, afterSecond, published: Buffer.alloc(0), ...fields },
      soon(),
    );
    if (answer.kind === "applied") this.publishedSecond = answer.second;
    return answer;
  }

  /** Calls numbers whose places are the same, the first with session `from`. */
  async call(numbers: readonly number[], from = 0): Promise<RoomStepAnswer> {
    const calls = numbers.map((number, i) => ({ number, place: number, session: from + i }));
    return this.apply({ calls, calledPlace: Math.max(...numbers) + 1 });
  }

  async line(from: number, count: number): Promise<readonly number[]> {
    return [...(await this.store.readLine(this.name, { from, count }, soon()))];
  }

  async sessions(from: number, count: number): Promise<readonly number[]> {
    return [...(await this.store.readSessions(this.name, { from, count }, soon()))];
  }

  /** Lets time pass as it does while replicas beat. */
  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i += 1) {
      this.clock.advance(1_000);
      await this.beat();
    }
  }
}
