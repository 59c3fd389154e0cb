import { systemClock } from "../../src/host/clock.js";
import {
  lineWordsMax,
  numbersMax,
  type RoomTurn,
  roomVisitsMax,
  sessionsMax,
  stepEntriesMax,
} from "../../src/store/coordination/room-store.js";
import { RedisRooms } from "../../src/store/redis/coordination/redis-rooms.js";
import { testCharge } from "../support/charges.js";
import { FakeClock } from "../support/fake-clock.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, type TestRedisStore } from "../support/redis-store.js";
import { TestRoom } from "../support/rooms.js";
import { processCpuUs } from "./process-cpu.js";
import { layOut } from "./report.js";
import { type Cost, type CostWorld, measure } from "./room-cost.js";
import { tellRoomPath } from "./room-path.js";

/** Who waits while rows are measured. */
const waitingCount = 1_000_000;

/** Each of them asks once in it: as pages do by default. */
const refreshSeconds = 20;

/** Longer than all rows take. */
const [leaseMs, lostAfterSeconds] = [3_600_000, 3_600];

/** Keys of limits that the decisions beside are on. */
const keyCount = 20_000;

interface Bench extends CostWorld {
  readonly opened: TestRedisStore;
  readonly room: TestRoom;
  /** Nobody waits there: who joins enters. */
  readonly openRoom: TestRoom;
  nextVisit: number;
  nextSession: number;
  spareCount: number;
}

/**
 * What waiting rooms cost Redis and a replica, with a million visitors in one line: each row is
 * measured over the store's own connections, in this run. Decisions of rate limits stand beside.
 */
export async function tellRooms(measureMs: number): Promise<string> {
  const server = await RedisServer.start({ engine: "redis" });
  try {
    const opened = await openTestStore(server);
    const { decision: turns, fleet: heartbeats, background: bulk } = opened.connections;
    const store = new RedisRooms({ turns, heartbeats, bulk, keyPrefix: "headgate:" });
    const room = new TestRoom({ store, clock: new FakeClock() });
    const openRoom = new TestRoom({ store, clock: new FakeClock() }, "open");
    const counts = { nextVisit: 0, nextSession: 0, spareCount: 0 };
    const bench = { server, opened, room, openRoom, measureMs, ...counts };
    await room.beat({ leaseMs });
    await openRoom.beat({ leaseMs });
    const bytesBefore = await usedBytes(server, "*:line:*");
    await fill(room);
    const bytes = (await usedBytes(server, "*:line:*")) - bytesBefore;
    const rows = await tellRows(bench, bytes / waitingCount);
    const text = `${rows}\n\n${await tellRoomPath(bench, store)}`;
    await opened.store.close();
    return text;
  } finally {
    await server.stop();
  }
}

async function tellRows(bench: Bench, bytesPerVisitor: number): Promise<string> {
  const sizes = [1, 16, 256];
  const refreshes: Cost[] = [];
  const joins: Cost[] = [];
  const entrances: Cost[] = [];
  const decisions: Cost[] = [];
  for (const size of sizes) {
    refreshes.push(await measure(bench, size, () => refresh(bench, size)));
    joins.push(await measure(bench, size, () => join(bench, size)));
    entrances.push(await measure(bench, size, () => enter(bench, size)));
    decisions.push(await measure(bench, size, () => decide(bench, size)));
  }
  const us = ({ redisUs, ownUs }: Cost): readonly string[] => [
    redisUs.toFixed(2),
    ownUs.toFixed(2),
  ];
  const named = (name: string, costs: readonly Cost[]) =>
    costs.map((cost, i) => [`${name}, ${sizes[i]} in a turn`, ...us(cost)]);
  const header = [`${waitingCount.toLocaleString("en-US")} waiting`, "Redis us", "replica us"];
  const rows = [
    ...named("refresh", refreshes),
    ...named("join", joins),
    ...named("join and enter", entrances),
    ...named("rate-limit decision", decisions),
  ];
  const targets = tellTargets({ refreshes, joins, entrances, decisions, bytesPerVisitor });
  return [layOut([header, ...rows]), targets, await tellSteps(bench)].join("\n\n");
}

function tellTargets({
  refreshes,
  joins,
  entrances,
  decisions,
  bytesPerVisitor,
}: {
  readonly refreshes: readonly Cost[];
  readonly joins: readonly Cost[];
  readonly entrances: readonly Cost[];
  readonly decisions: readonly Cost[];
  readonly bytesPerVisitor: number;
}): string {
  const ratio = (costs: readonly Cost[], i: number): string => {
    const [one, other] = [costs[i], decisions[i]];
    if (one === undefined || other === undefined) return "";
    const part = (name: keyof Cost) => (one[name] / other[name]).toFixed(2);
    return `${part("redisUs")} in Redis, ${part("ownUs")} here`;
  };
  const [, by16, by256] = refreshes;
  const rateOf = (us = Number.NaN): string => Math.round(1e6 / us).toLocaleString("en-US");
  const asked = `at least ${(waitingCount / refreshSeconds).toLocaleString("en-US")}`;
  return layOut([
    ["", "target", "measured"],
    ["a join next to a decision, 1 in a turn", "at most 2", ratio(joins, 0)],
    ["a join next to a decision, 16 in a turn", "at most 2", ratio(joins, 1)],
    ["the same of a join that enters, 1 in a turn", "at most 2", ratio(entrances, 0)],
    ["the same of a join that enters, 16 in a turn", "at most 2", ratio(entrances, 1)],
    ["bytes in Redis for each who waits", "at most 100", bytesPerVisitor.toFixed(1)],
    ["refreshes/s of one Redis, 16 in a turn", asked, rateOf(by16?.redisUs)],
    ["refreshes/s of one Redis, 256 in a turn", asked, rateOf(by256?.redisUs)],
    ["refreshes/s of a replica's store, 16 in a turn", "", rateOf(by16?.ownUs)],
    ["refreshes/s of a replica's store, 256 in a turn", "", rateOf(by256?.ownUs)],
  ]);
}

/** Rounds of what a leader asks. */
const stepRounds = 20;

/** What a leader asks of Redis once a second or less. */
async function tellSteps({ room, server }: Bench): Promise<string> {
  const indices = Array.from({ length: stepEntriesMax }, (_, i) => i);
  const redisMs = async (run: () => Promise<unknown>): Promise<number> => {
    const beforeUs = processCpuUs(server.pid);
    await run();
    return (processCpuUs(server.pid) - beforeUs) / 1_000;
  };
  const sums = { called: 0, freed: 0, read: 0 };
  for (let round = 0; round < stepRounds; round += 1) {
    const first = round * stepEntriesMax;
    const calls = indices.map((i) => ({ number: first + i, place: first + i, session: i }));
    const calledPlace = first + stepEntriesMax;
    const step = { calledPlace, lostAfterSeconds };
    sums.called += await redisMs(() => room.apply({ ...step, calls }));
    const words = await room.sessions(0, stepEntriesMax);
    const frees = calls.map(({ number, session }) => {
      return { number, session, word: words[2 * session + 1] ?? 0 };
    });
    sums.freed += await redisMs(() => room.apply({ ...step, frees }));
    sums.read += await redisMs(() => room.line(0, lineWordsMax));
  }
  const count = stepEntriesMax.toLocaleString("en-US");
  const cell = (sum: number): string => (sum / stepRounds).toFixed(1);
  return layOut([
    ["a leader's call", "ms of Redis"],
    [`calls ${count} visitors`, cell(sums.called)],
    [`frees ${count} sessions`, cell(sums.freed)],
    [`reads ${lineWordsMax.toLocaleString("en-US")} words of the line`, cell(sums.read)],
  ]);
}

async function fill(room: TestRoom): Promise<void> {
  const most = { spanMax: 1e9 };
  for (let left = waitingCount; left > 0; left -= roomVisitsMax) {
    await room.turn({ joinCount: Math.min(left, roomVisitsMax), ...most });
  }
}

async function refresh(bench: Bench, size: number): Promise<void> {
  const visits = Array.from({ length: size }, () => {
    bench.nextVisit += 1;
    return (bench.nextVisit * 7_919) % waitingCount;
  });
  const turn: Partial<RoomTurn> = { visits, lostAfterSeconds };
  const { entries } = await bench.room.turn(turn);
  if (entries.some(({ kind }) => kind !== "waiting")) throw new Error("a place was lost");
}

async function join({ room }: Bench, size: number): Promise<void> {
  const { joinedCount } = await room.turn({ joinCount: size, spanMax: 1e9 });
  if (joinedCount !== size) throw new Error("the line was full");
}

/** With the leader's steps that it needs: they free sessions, and list them as spare. */
async function enter(bench: Bench, size: number): Promise<void> {
  if (bench.spareCount < size) {
    bench.spareCount += stepEntriesMax;
    const first = bench.nextSession % (sessionsMax - stepEntriesMax);
    bench.nextSession = first + stepEntriesMax;
    const spareSessions = Array.from({ length: stepEntriesMax }, (_, i) => first + i);
    // Those who entered before have gone by now.
    const words = await bench.openRoom.sessions(first, stepEntriesMax);
    const frees = spareSessions.map((session, i) => {
      return { session, number: words[2 * i] ?? 0, word: words[2 * i + 1] ?? 0 };
    });
    await bench.openRoom.apply({ frees, spareSessions, calledPlace: numbersMax });
  }
  bench.spareCount -= size;
  await bench.openRoom.turn({ joinCount: size, spanMax: 1e9 });
}

async function decide(bench: Bench, size: number): Promise<void> {
  const batch = Array.from({ length: size }, () => {
    bench.nextVisit += 1;
    const user = String((bench.nextVisit * 7_919) % keyCount).padStart(15, "0");
    const key = `2g5:bench4:user20:user-${user}n5:3600s`;
    const charge = testCharge({ key, hits: 1_000, burst: 1_000, periodUs: 3_600_000_000 });
    return { charges: [charge], multiplicity: 1 };
  });
  await bench.opened.store.take(batch, systemClock.monotonicMs() + 20_000);
}

/** Of the keys that match. Source: MEMORY USAGE. */
async function usedBytes(server: RedisServer, pattern: string): Promise<number> {
  const client = server.client();
  const keys = await client.keys(pattern);
  const sizes = await Promise.all(keys.map((key) => client.memory("USAGE", key)));
  return sizes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
}
