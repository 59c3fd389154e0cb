import { describe, expect, it } from "vitest";
import { defaultGateSettings } from "../../src/core/admission/gate.js";
import type { ShareSnapshot } from "../../src/core/feedback/feedback.js";
import { encodeSnapshot } from "../../src/fleet/loop/snapshot-codec.js";
import { snapshotAgeMsMax } from "../../src/fleet/loop/snapshot-holder.js";
import { allTurns } from "../support/all-turns.js";
import { enginesFor } from "../support/engines.js";
import { FakeRandom } from "../support/fake-random.js";
import { testFleetSnapshot, testPressure, testReport, withMaps } from "../support/fleet-reports.js";
import { LoopFleet, type LoopFleetParts, type LoopReplica } from "../support/loop-fleet.js";
import { shareTestStore } from "../support/redis-store.js";
import { runSeeds, seedsFrom } from "../support/seeds.js";
import type { CallFate } from "../support/wayward-connection.js";

const fates: readonly CallFate[] = [
  "answered",
  "answered",
  "answered",
  "lost",
  "unanswered",
  "late",
];
const leaseMs = 3_600_000;
const historySteps = 25;
/** One of the histories is longer. */
const longHistorySteps = 250;
const firstSeed = 20_261_121;

describe.each(enginesFor.behaviour)("SharedLoop on %s", (engine) => {
  const store = shareTestStore(engine);
  let fleetCount = 0;

  function createFleet(parts: Partial<LoopFleetParts> = {}) {
    fleetCount += 1;
    const keyPrefix = `headgate:${fleetCount}:`;
    const random = new FakeRandom(fleetCount);
    const connection = store.opened.connections.background;
    const fleet = new LoopFleet({ connection, random, keyPrefix, leaseMs, ...parts });
    const key = (name: string): string => `${keyPrefix}{fleet}:${name}`;
    /** As the store's clock would end it, of a leader that is dead or cut off. */
    const endLease = (): Promise<number> => store.control.del(key("lease"));
    return { fleet, key, endLease };
  }

  async function joinThree(fleet: LoopFleet): Promise<[LoopReplica, LoopReplica, LoopReplica]> {
    const replicas: [LoopReplica, LoopReplica, LoopReplica] = [
      await fleet.join(),
      await fleet.join(),
      await fleet.join(),
    ];
    await passAll(fleet, 1_000);
    return replicas;
  }

  async function passAll(fleet: LoopFleet, ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 250) {
      for (const replica of fleet.replicas) await replica.pass(250);
    }
  }

  it("has one leader, whose snapshots are made of what all have told, each time once", async () => {
    const { fleet } = createFleet();
    const replicas = await joinThree(fleet);
    expect(fleet.leaders).toEqual([replicas[0]]);
    const nodeIds = replicas.map(({ id }) => `node of ${id}`);
    for (let second = 1; second <= 3; second += 1) {
      for (const [i, replica] of replicas.entries()) {
        await replica.report([{ nodeId: nodeIds[i] ?? "" }], testReport);
      }
      await passAll(fleet, 1_000);
    }
    await passAll(fleet, 500);
    const [maker] = replicas[0].makers;
    expect(maker?.reports.map(({ nodeId }) => nodeId).toSorted()).toEqual(
      nodeIds.flatMap((nodeId) => [nodeId, nodeId, nodeId]).toSorted(),
    );
    for (const { loop } of replicas) {
      const snapshot = loop.current();
      expect(snapshot).toMatchObject({ term: 1, leaderId: replicas[0].id });
      expect([...(snapshot?.services.get("orders")?.shares.keys() ?? [])].toSorted()).toEqual(
        nodeIds.toSorted(),
      );
      expect(loop.counts).toMatchObject({ refused: 0, failed: 0, unreadable: 0, older: 0 });
    }
  });

  it("hands a new snapshot on to all replicas within a heartbeat", async () => {
    const { fleet } = createFleet();
    const [leader, ...others] = await joinThree(fleet);
    await leader.pass(1_000);
    for (const replica of others) await replica.pass(250);
    for (const { loop } of others) {
      expect(loop.current()?.version).toBe(leader.loop.current()?.version);
    }
  });

  it("goes on from the last snapshot at once when its leader says goodbye", async () => {
    const { fleet } = createFleet();
    const [leader, next] = await joinThree(fleet);
    await leader.report([{ nodeId: "node-1" }], testReport);
    await passAll(fleet, 1_250);
    const last = leader.loop.current();
    await leader.loop.stop();
    await next.pass(250);
    expect(next.loop.isLeading).toBe(true);
    const found = next.makers[0]?.start.lastSnapshot;
    expect(found && withMaps(found)).toEqual(last);
    expect(next.loop.current()).toMatchObject({ term: 2, leaderId: next.id, version: 1 });
  });

  it("begins with the last limits after an outage of a store that comes back empty", async () => {
    const { fleet, key } = createFleet();
    const [leader, next, third] = await joinThree(fleet);
    await leader.report([{ nodeId: "node-1" }], testReport);
    await passAll(fleet, 1_250);
    const limitOf = (snapshot: ShareSnapshot | undefined) =>
      snapshot?.services.get("orders")?.limit;
    const limit = limitOf(leader.loop.current());
    for (const { connection } of fleet.replicas) connection.fate = "lost";
    for (const replica of fleet.replicas) await replica.pass(snapshotAgeMsMax);
    expect(next.loop.current()).toBeUndefined();
    const keys = ["lease", "sheet", "rank", "epoch", "reports", "full-reports"];
    await store.control.del(keys.map(key));
    for (const { connection } of [next, third]) connection.fate = "answered";
    await next.pass(1_000);
    const lastSnapshot = next.makers[0]?.start.lastSnapshot;
    expect(limit).toBeGreaterThan(0);
    expect(limitOf(lastSnapshot)).toBe(limit);
    expect(lastSnapshot?.services.get("orders")?.shares.size).toBe(0);
  });

  it("begins with the last limits where all were gone", async () => {
    const { fleet, endLease } = createFleet();
    const replicas = await joinThree(fleet);
    await replicas[0].report([{ nodeId: "node-1" }], testReport);
    await passAll(fleet, 1_250);
    const limit = replicas[0].loop.current()?.services.get("orders")?.limit;
    for (const { loop } of replicas) await loop.stop();
    await endLease();
    const next = await fleet.join();
    await next.pass(250);
    expect(limit).toBeGreaterThan(0);
    expect(next.makers[0]?.start.lastSnapshot?.services.get("orders")?.limit).toBe(limit);
  });

  it("refuses the snapshot of a leader that was replaced while it stood still", async () => {
    const { fleet, endLease } = createFleet();
    const [leader, next] = await joinThree(fleet);
    await endLease();
    await next.pass(250);
    expect(next.loop.current()).toMatchObject({ term: 2, leaderId: next.id });
    // Its own clock has stood as still: it believes to lead, and has sent its snapshot already.
    expect(leader.loop.isLeading).toBe(true);
    const publishedCount = fleet.published.length;
    leader.clock.stall(1_000);
    await leader.pass(0, 1);
    leader.clock.advance(0);
    await leader.settle();
    expect(fleet.published.length).toBe(publishedCount);
    expect(leader.loop.isLeading).toBe(false);
    await leader.pass(250);
    expect(leader.loop.current()).toMatchObject({ term: 2, leaderId: next.id });
    expect(leader.events).toContainEqual({ kind: "leadingEnded", term: 1, cause: "outranked" });
  });

  it("writes nothing after a stall that was longer than its lease", async () => {
    const { fleet } = createFleet();
    const [leader] = await joinThree(fleet);
    const [maker] = leader.makers;
    if (maker === undefined) throw new Error("it leads");
    const sentCount = leader.sentEpochs.length;
    // Between what it read and what it would write.
    maker.onUpdate = () => leader.clock.stall(leaseMs);
    await leader.pass(1_250);
    // It leads again by now, in a term of its own.
    expect(leader.sentEpochs.slice(sentCount)).toEqual([2]);
    expect(leader.loop.counts.refused).toBe(1);
    expect(leader.events).toContainEqual({ kind: "leadingEnded", term: 1, cause: "lapsed" });
    expect(leader.makers[1]?.start.lastSnapshot).toMatchObject({ term: 1 });
    expect(leader.loop.current()).toMatchObject({ term: 2, leaderId: leader.id });
  });

  it("leaves aside a snapshot that arrives after the next term has begun", async () => {
    const { fleet, endLease } = createFleet();
    const [leader, next, third] = await joinThree(fleet);
    const [maker] = leader.makers;
    if (maker === undefined) throw new Error("it leads");
    maker.onUpdate = () => {
      leader.connection.fate = "late";
    };
    await leader.pass(1_000);
    leader.connection.fate = "lost";
    await endLease();
    await next.pass(250);
    for (let i = 0; i < 10; i += 1) await leader.connection.deliverOne();
    await third.pass(250);
    expect(third.loop.current()).toMatchObject({ term: 2, leaderId: next.id });
    expect(fleet.published.at(-1)).toMatchObject({ term: 2 });
  });

  it("goes on above all terms that anybody has seen when the store forgets", async () => {
    const { fleet, key, endLease } = createFleet();
    const [leader, next] = await joinThree(fleet);
    await endLease();
    await next.pass(250);
    await leader.pass(1_000);
    expect(leader.loop.current()).toMatchObject({ term: 2 });
    await store.control.del(key("lease"), key("epoch"), key("sheet"), key("rank"));
    fleet.published.length = 0;
    // One that has seen nothing is the first to ask: its term is below what the others know.
    const fresh = await fleet.join();
    await fresh.pass(250);
    expect(fresh.loop.current()).toMatchObject({ term: 1 });
    await leader.pass(250);
    expect(leader.loop.isLeading).toBe(true);
    await passAll(fleet, 1_250);
    expect(fleet.leaders).toEqual([leader]);
    for (const { loop } of fleet.replicas) {
      expect(loop.current()).toMatchObject({ term: 3, leaderId: leader.id });
    }
  });

  it("hands nothing out below a snapshot that it cannot read, as of a later version", async () => {
    const { fleet, key } = createFleet();
    const [leader, other] = await joinThree(fleet);
    const [seconds] = await store.control.time();
    const rank = `9 ff ${1}`;
    const place = async (bytes: Buffer): Promise<void> => {
      const head = Buffer.from(`${Number(seconds) * 1_000} ${rank}\n`);
      await store.control.set(key("sheet"), Buffer.concat([head, bytes]));
      await store.control.set(key("rank"), rank);
    };
    const { bytes } = allTurns(encodeSnapshot(testFleetSnapshot()));
    await place(Buffer.concat([Buffer.from([200]), bytes.subarray(1)]));
    await other.pass(250);
    expect(other.loop.counts.unreadable).toBe(1);
    expect(other.loop.current()).toBeUndefined();
    expect(other.events).toContainEqual({ kind: "snapshotLost", term: 1 });
    // It knows of term 9 now, and so ends the term of who does not.
    await other.pass(500);
    await leader.pass(250);
    expect(fleet.leaders).toEqual([other]);
    expect(other.loop.current()).toMatchObject({ term: 10 });
  });

  /** What each replica's Envoy has in work, second by second, and what the leader hears of it. */
  async function reportAll(fleet: LoopFleet, second: number): Promise<void> {
    for (const replica of fleet.replicas) {
      await replica.report([{ nodeId: `node of ${replica.id}`, inFlight: second }], testReport);
    }
  }

  function heardOf(leader: LoopReplica): Map<string, number> {
    const reports = leader.makers.at(-1)?.reports ?? [];
    return new Map(reports.map(({ nodeId, inFlight }) => [nodeId, inFlight]));
  }

  it("hears the newest numbers of all, though records were lost or overwritten", async () => {
    const { fleet } = createFleet();
    const [leader, other, third] = await joinThree(fleet);
    await reportAll(fleet, 1);
    await passAll(fleet, 1_000);
    for (let second = 2; second <= 4; second += 1) {
      // One's is lost, and another one's is overwritten before it is read.
      other.connection.fate = second === 3 ? "lost" : "answered";
      await reportAll(fleet, second);
      await passAll(fleet, 250);
    }
    await passAll(fleet, 1_000);
    expect([...heardOf(leader).values()]).toEqual([4, 4, 4]);
    expect(leader.loop.counts).toMatchObject({ unreadable: 0, leftOut: 0 });
    // Full records were written once: all others differ from them.
    const full = await store.control.hgetall(`headgate:${fleetCount}:{fleet}:full-reports`);
    expect(full[third.id]).toBe("1");
  });

  it.each([
    { lost: "the full records alone", names: ["full-reports"] },
    { lost: "the newest records alone", names: ["reports"] },
    { lost: "all of them", names: ["reports", "full-reports"] },
  ])("hears of all again within one interval when the store loses $lost", async ({ names }) => {
    const { fleet, key } = createFleet();
    const [leader] = await joinThree(fleet);
    await reportAll(fleet, 1);
    await passAll(fleet, 1_000);
    await reportAll(fleet, 2);
    await store.control.del(names.map(key));
    await passAll(fleet, 1_000);
    await reportAll(fleet, 3);
    await passAll(fleet, 1_000);
    expect([...heardOf(leader).values()]).toEqual([3, 3, 3]);
    expect(leader.loop.counts).toMatchObject({ unreadable: 0 });
  });

  it("hears of all at once as a new leader, which has read none of the full records", async () => {
    const { fleet } = createFleet();
    const [leader, next] = await joinThree(fleet);
    for (let second = 1; second <= 3; second += 1) {
      await reportAll(fleet, second);
      await passAll(fleet, 1_000);
    }
    await leader.loop.stop();
    await next.pass(250);
    const others = fleet.replicas.filter((replica) => replica !== leader);
    expect(next.loop.isLeading).toBe(true);
    expect(heardOf(next)).toEqual(new Map(others.map(({ id }) => [`node of ${id}`, 3])));
  });

  it("hears nothing of a replica of another version, and tells of it, likewise", async () => {
    const { fleet, key } = createFleet();
    const [leader] = await joinThree(fleet);
    const [seconds] = await store.control.time();
    // A record of the version before: its format, an empty table, and what is none of ours.
    const old = Buffer.concat([Buffer.from([2]), Buffer.alloc(20)]);
    const value = Buffer.concat([Buffer.from(`${Number(seconds) * 1_000} 1\n`), old]);
    await store.control.hset(key("reports"), "0a1b", value);
    await reportAll(fleet, 1);
    await passAll(fleet, 1_000);
    expect(leader.loop.counts.unreadable).toBe(1);
    expect(leader.events).toContainEqual({ kind: "fleetUnreadable", what: "report" });
    expect(heardOf(leader).size).toBe(3);
    // The version before reads its lines by the same words, and another format behind them.
    const own = await store.control.hgetBuffer(key("reports"), leader.id);
    expect(own?.toString("latin1")).toMatch(/^\d+ \d+\n/);
    expect(own?.[1 + own.indexOf("\n")]).toBe(3);
  });

  it("closes a gate everywhere by what all replicas see together", async () => {
    const gateSettings = new Map([["orders", defaultGateSettings]]);
    const { fleet } = createFleet({ gateSettings });
    const replicas = await joinThree(fleet);
    const ratios = [1, 1, 0.4];
    for (const [i, replica] of replicas.entries()) {
      replica.pressures = [
        testPressure({ rejectRatio: ratios[i] ?? 0, weight: 10, waitingCount: 5 }),
      ];
    }
    await passAll(fleet, 4_000);
    for (const { loop } of replicas) {
      expect(loop.board.verdict("orders")?.state).toBe("limiting");
      expect(loop.board.verdict("orders")?.rejectRatio).toBeCloseTo(0.8);
    }
    expect(replicas[0].makers[0]?.queues.get("orders")).toBe(15);
    // Who has more of the permits has more of the requests.
    replicas[0].pressures = [testPressure({ rejectRatio: 1, weight: 100 })];
    await passAll(fleet, 4_000);
    for (const { loop } of replicas) {
      expect(loop.board.verdict("orders")?.state).toBe("closed");
    }
  });

  it("keeps keys that go by themselves, and takes back what says goodbye", async () => {
    const { fleet, key } = createFleet();
    const replicas = await joinThree(fleet);
    await passAll(fleet, 2_000);
    for (const name of ["lease", "epoch", "sheet", "rank", "reports", "full-reports"]) {
      expect(await store.control.pttl(key(name)), name).toBeGreaterThan(0);
    }
    for (const { loop } of replicas) await loop.stop();
    expect(await store.control.exists(key("lease"), key("reports"), key("full-reports"))).toBe(0);
    for (const { clock, loop } of replicas) {
      loop.report([testReport()]);
      expect(clock.timerCount).toBe(0);
    }
  });

  const seeds = seedsFrom(firstSeed, 100);

  it(`never goes back, and is led again, in ${seeds.length} histories of losses and stalls`, () =>
    runSeeds(seeds, runHistory));

  async function runHistory(seed: number): Promise<void> {
    const random = new FakeRandom(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const { fleet, endLease } = createFleet({ random: new FakeRandom(seed + 1_000) });
    const replicas = await joinThree(fleet);
    const steps = seed === seeds[0] ? longHistorySteps : historySteps;
    for (let step = 0; step < steps; step += 1) {
      const replica = replicas[below(3)] ?? replicas[0];
      replica.connection.fate = fates[below(fates.length)] ?? "answered";
      if (random.next() < 0.3) replica.loop.report([testReport({ nodeId: replica.id })]);
      const maker = replica.makers.at(-1);
      const stallMs = random.next() < 0.1 ? leaseMs : 0;
      if (maker !== undefined) maker.onUpdate = () => replica.clock.stall(stallMs);
      await replica.pass(250 * (1 + below(4)));
      if (random.next() < 0.3) await replica.connection.deliverOne();
      if (random.next() < 0.05) await endLease();
    }
    for (const replica of replicas) {
      replica.connection.fate = "answered";
      const maker = replica.makers.at(-1);
      if (maker !== undefined) maker.onUpdate = () => {};
    }
    await passAll(fleet, 3_000);
    expect(fleet.leaders).toHaveLength(1);
    expect(fleet.published.length).toBeGreaterThan(4);
    const [leader] = fleet.leaders;
    for (const { loop } of replicas) {
      expect(loop.current()).toMatchObject({ leaderId: leader?.id });
    }
  }
});
