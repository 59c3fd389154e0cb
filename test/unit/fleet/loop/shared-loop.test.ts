import { describe, expect, it } from "vitest";
import { defaultLeaderLeaseMs } from "../../../../src/fleet/loop/leader.js";
import { recordRowsMax } from "../../../../src/fleet/loop/report-format.js";
import {
  type LoopEvent,
  quietReportMs,
  SharedLoop,
  snapshotEveryMs,
} from "../../../../src/fleet/loop/shared-loop.js";
import { encodeSnapshot, snapshotBytesMax } from "../../../../src/fleet/loop/snapshot-codec.js";
import type {
  ScriptCall,
  ScriptReply,
  StoreConnection,
} from "../../../../src/store/redis/scripts/connection.js";
import { allTurns } from "../../../support/all-turns.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import {
  fullRecord,
  TestMaker,
  testFleetSnapshot,
  testReport,
  testShares,
} from "../../../support/fleet-reports.js";
import { redisLoop } from "../../../support/redis-loop.js";

/** Answers as a test says, by script; what it says nothing of is answered with nothing. */
class ScriptedConnection implements StoreConnection {
  readonly calls: ScriptCall[] = [];
  readonly answers = new Map<string, () => ScriptReply | Promise<ScriptReply>>();

  async run(call: ScriptCall): Promise<ScriptReply> {
    this.calls.push(call);
    return this.answers.get(call.script.name)?.();
  }

  countOf(script: string): number {
    return this.calls.filter((call) => call.script.name === script).length;
  }
}

function createLoop() {
  const clock = new FakeClock();
  const connection = new ScriptedConnection();
  connection.answers.set("fleet-lease", () => Buffer.from("0 "));
  connection.answers.set("fleet-tell", () => 1);
  connection.answers.set("fleet-publish", () => 1);
  const events: LoopEvent[] = [];
  const bugs: unknown[] = [];
  const makers: TestMaker[] = [];
  const loop = new SharedLoop({
    clock,
    id: "a1",
    store: redisLoop(connection, clock),
    createMaker: (start) => {
      const maker = new TestMaker(start);
      makers.push(maker);
      return maker;
    },
    pressures: () => [],
    gateSettings: () => new Map(),
    onEvent: (event) => events.push(event),
    onBug: (thrown) => bugs.push(thrown),
  });
  const says = (script: string, answer: () => ScriptReply | Promise<ScriptReply>): void => {
    connection.answers.set(script, answer);
  };
  return { clock, connection, events, bugs, makers, loop, says };
}

const lead = (): Buffer => Buffer.from("7 ");

describe("SharedLoop", () => {
  it("tells what it is told at once, and that it is there when nothing is", async () => {
    const { clock, connection, loop } = createLoop();
    await settlePromises();
    loop.report([testReport()]);
    await settlePromises();
    expect(connection.countOf("fleet-tell")).toBe(1);
    await clock.advanceAsync(3 * quietReportMs, 250);
    expect(connection.countOf("fleet-tell")).toBe(4);
    const numbers = connection.calls.filter((call) => call.script.name === "fleet-tell");
    expect(numbers.map(({ args }) => args[1])).toEqual(["1", "2", "3", "4"]);
    await loop.stop();
  });

  it("never has two reports under way: the newest waits, and goes next", async () => {
    const { connection, loop, says } = createLoop();
    let release = (): void => {};
    says("fleet-tell", () => new Promise((resolve) => (release = () => resolve(1))));
    for (let i = 1; i <= 4; i += 1) loop.report([testReport({ nodeId: `node-${i}` })]);
    await settlePromises();
    expect(connection.countOf("fleet-tell")).toBe(1);
    release();
    await settlePromises();
    const last = connection.calls.filter((call) => call.script.name === "fleet-tell").at(-1);
    expect(String(last?.args[3])).toContain("node-4");
    expect(connection.countOf("fleet-tell")).toBe(2);
    release();
    await loop.stop();
  });

  it("publishes at once when it is elected, and then each second, while it leads", async () => {
    const { clock, connection, makers, loop, says } = createLoop();
    await settlePromises();
    says("fleet-lease", lead);
    await clock.advanceAsync(250);
    await clock.advanceAsync(0, 1);
    clock.advance(0);
    await settlePromises();
    expect(connection.countOf("fleet-publish")).toBe(1);
    await clock.advanceAsync(10 * snapshotEveryMs, 50);
    expect(connection.countOf("fleet-publish")).toBe(11);
    expect(makers).toHaveLength(1);
    expect(loop.current()).toMatchObject({ term: 7, leaderId: "a1", version: 11 });
    says("fleet-lease", () => Buffer.from("0 8 b2 1"));
    await clock.advanceAsync(5 * snapshotEveryMs, 50);
    expect(connection.countOf("fleet-publish")).toBe(11);
    await loop.stop();
  });

  it("gives a publication up when the term ends, by the deadline of its call", async () => {
    const { clock, connection, loop, says } = createLoop();
    await settlePromises();
    says("fleet-lease", lead);
    await clock.advanceAsync(1_000, 250);
    const renewedMs = clock.monotonicMs();
    says("fleet-lease", () => new Promise(() => {}));
    await clock.advanceAsync(5_000, 250);
    const deadlines = connection.calls
      .filter((call) => call.script.name === "fleet-publish")
      .map(({ deadlineMs }) => deadlineMs);
    expect(Math.max(...deadlines)).toBe(renewedMs + defaultLeaderLeaseMs);
    void loop.stop();
  });

  it("hands out its last snapshot while the store is away, until that is too old", async () => {
    const { clock, events, loop, says } = createLoop();
    says("fleet-lease", lead);
    await clock.advanceAsync(3_000, 250);
    const fails = (): never => {
      throw Object.assign(new Error("away"), {
        name: "ServiceError",
        code: "STORE_UNAVAILABLE",
        transient: true,
      });
    };
    for (const script of ["lease", "tell", "gather", "fetch", "publish"]) {
      says(`fleet-${script}`, fails);
    }
    await clock.advanceAsync(12_000, 250);
    expect(loop.isLeading).toBe(false);
    expect(loop.current()).toMatchObject({ term: 7 });
    await clock.advanceAsync(4_000, 250);
    expect(loop.current()).toBeUndefined();
    expect(loop.counts.failed).toBeGreaterThan(1);
    expect(events.map(({ kind }) => kind)).toEqual([
      "leadingBegan",
      "leaderChanged",
      "leaseLost",
      "leadingEnded",
      "snapshotLost",
    ]);
    await loop.stop();
  });

  it("tells of a fault of ours, and goes on", async () => {
    const { clock, bugs, makers, loop, says } = createLoop();
    says("fleet-lease", lead);
    await clock.advanceAsync(2_000, 250);
    const [maker] = makers;
    if (maker === undefined) throw new Error("it leads");
    maker.onUpdate = () => {
      throw new Error("a bug");
    };
    await clock.advanceAsync(2_000, 250);
    expect(bugs).toHaveLength(2);
    maker.onUpdate = () => {};
    await clock.advanceAsync(1_000, 250);
    expect(loop.current()?.version).toBe(5);
    await loop.stop();
  });

  it("counts a report or snapshot that is none, and goes on with the others", async () => {
    const { clock, events, makers, loop, says } = createLoop();
    says("fleet-lease", lead);
    const { bytes } = fullRecord({ nodes: [testReport({ atMs: 0 })] });
    says("fleet-gather", () =>
      Buffer.concat([
        Buffer.from("b2 1 10 3 0 0\nxyz"),
        Buffer.from(`c3 1 10 ${bytes.length} 1 0\n`),
        bytes,
        Buffer.from("d4 1 10 0 0 0\n"),
      ]),
    );
    await clock.advanceAsync(3_000, 250);
    expect(makers[0]?.reports).toHaveLength(1);
    expect(loop.counts).toMatchObject({ unreadable: 1, leftOut: 1, failed: 0 });
    says("fleet-gather", () => Buffer.from("b2 2 10 3 0 0\nxyz"));
    await clock.advanceAsync(1_000, 250);
    expect(loop.counts.unreadable).toBe(2);
    const reported = events.filter(({ kind }) => kind === "fleetUnreadable");
    expect(reported).toEqual([{ kind: "fleetUnreadable", what: "report" }]);
    for (const reply of ["b2 1 10 9 0 0\nxyz", "no report", "B2 1 10 0 0 0\n", "b2 1 10 0 0 0"]) {
      says("fleet-gather", () => Buffer.from(reply));
      await clock.advanceAsync(1_000, 250);
    }
    expect(loop.counts.failed).toBe(4);
    await loop.stop();
  });

  it("reads a large snapshot and large reports in turns, with other work in between", async () => {
    const { clock, makers, loop, says } = createLoop();
    const shares = new Map(
      Array.from({ length: 20_000 }, (_, i) => [`node-${i}`, { default: 1, high: 0 }]),
    );
    const large = testFleetSnapshot({ services: new Map([["orders", testShares({ shares })]]) });
    const { bytes } = allTurns(encodeSnapshot(large));
    says("fleet-lease", () => Buffer.from("0 9 b2 1"));
    says("fleet-fetch", () => Buffer.concat([Buffer.from("10 9 b2 1\n"), bytes]));
    const turnCount = Math.floor(bytes.length / 16_500);
    await clock.advanceAsync(2_000, 1_000);
    expect(loop.current()).toBeUndefined();
    for (let turn = 0; turn < turnCount - 5; turn += 1) {
      clock.runTurns();
      await settlePromises();
    }
    expect(loop.current()).toBeUndefined();
    for (let turn = 0; turn < 20; turn += 1) {
      clock.runTurns();
      await settlePromises();
    }
    expect(loop.current()?.services.get("orders")?.shares.size).toBe(20_000);
    says("fleet-lease", () => Buffer.from("10 9 b2 1"));
    const nodes = Array.from({ length: 200 }, (_, i) => testReport({ nodeId: `n${i}`, atMs: 0 }));
    const report = fullRecord({ nodes }).bytes;
    // Each is shorter than a turn.
    const small = Array.from({ length: 20 }, (_, i) =>
      Buffer.concat([Buffer.from(`c${i} 1 10 ${report.length} 1 0\n`), report]),
    );
    says("fleet-gather", () => Buffer.concat(small));
    await clock.advanceAsync(1_000, 1_000);
    for (let turn = 0; turn < 10; turn += 1) {
      expect(makers[0]?.reports ?? []).toEqual([]);
      clock.runTurns();
      await settlePromises();
    }
    await clock.advanceAsync(1_000, 10);
    expect(makers[0]?.reports).toHaveLength(4_000);
    says("fleet-gather", () => Buffer.alloc(0));
    await clock.advanceAsync(1_000, 10);
    await loop.stop();
  });

  it("leaves out what is beyond the bounds of reports and snapshots, and counts it", async () => {
    const { clock, makers, loop, says } = createLoop();
    const rowCount = recordRowsMax + 1_000;
    const rowOf = (i: number) => ({ nodeId: `n${i >> 6}`, service: `s${i & 63}` });
    loop.report(Array.from({ length: rowCount }, (_, i) => testReport(rowOf(i))));
    for (let turn = 0; turn < rowCount / 200; turn += 1) {
      clock.runTurns();
      await settlePromises();
    }
    const leftOut = loop.counts.leftOut;
    expect(leftOut).toBeGreaterThanOrEqual(1_000);
    says("fleet-lease", lead);
    const shares = new Map(
      Array.from({ length: snapshotBytesMax / 12 }, (_, i) => [`n${i}`, { default: 1, high: 0 }]),
    );
    const large = testFleetSnapshot({ services: new Map([["orders", testShares({ shares })]]) });
    expect(allTurns(encodeSnapshot(large)).leftOutCount).toBe(1);
    await clock.advanceAsync(1_000, 250);
    const [maker] = makers;
    if (maker === undefined) throw new Error("it leads");
    maker.update = function* () {
      yield;
      return { ...large.snapshot, term: 7, leaderId: "a1", version: 100 };
    };
    await clock.advanceAsync(1_000, 250);
    expect(loop.counts.leftOut).toBe(leftOut + 1);
    await loop.stop();
  });
});
