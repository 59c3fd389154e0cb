import { describe, expect, it } from "vitest";
import { defaultGateSettings } from "../../../../src/core/settings/gate.js";
import { InProcessLoop, waitingMax } from "../../../../src/fleet/loop/in-process-loop.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { TestMaker, testPressure, testReport } from "../../../support/fleet-reports.js";

function createLoop() {
  const clock = new FakeClock();
  const bugs: unknown[] = [];
  const makers: TestMaker[] = [];
  const loop = new InProcessLoop({
    clock,
    id: "a1",
    createMaker: (start) => {
      const maker = new TestMaker(start);
      makers.push(maker);
      return maker;
    },
    pressures: () => [testPressure({ rejectRatio: 0.9 })],
    gateSettings: () => new Map([["orders", defaultGateSettings]]),
    onBug: (thrown) => bugs.push(thrown),
  });
  const [maker] = makers;
  if (maker === undefined) throw new Error("it leads from the first");
  return { clock, bugs, maker, loop };
}

describe("InProcessLoop", () => {
  it("leads itself: a snapshot each second, of what was told meanwhile", async () => {
    const { clock, maker, loop } = createLoop();
    expect(loop.isLeading).toBe(true);
    expect(loop.current()).toBeUndefined();
    loop.report([testReport()]);
    clock.advance(1_000);
    expect(loop.current()).toMatchObject({ term: 1, leaderId: "a1", version: 1 });
    expect([...(loop.current()?.services.keys() ?? [])]).toEqual(["orders"]);
    clock.advance(2_000);
    expect(maker.reports).toHaveLength(1);
    expect(loop.counts.published).toBe(3);
    expect(loop.board.verdict("orders")?.state).toBe("open");
    await loop.stop();
    expect(clock.timerCount).toBe(0);
  });

  it("keeps the last reports that wait, up to a bound", () => {
    const { clock, maker, loop } = createLoop();
    for (let i = 0; i < waitingMax + 2; i += 1) loop.report([testReport({ nodeId: `node-${i}` })]);
    clock.advance(1_000);
    expect(maker.reports.map(({ nodeId }) => nodeId)).toEqual(["node-2", "node-3", "node-4"]);
  });

  it("goes on after a fault of ours, and the snapshot before grows old", () => {
    const { clock, bugs, maker, loop } = createLoop();
    clock.advance(1_000);
    maker.onUpdate = () => {
      throw new Error("a bug");
    };
    clock.advance(10_000);
    expect(bugs).toHaveLength(10);
    expect(loop.current()).toMatchObject({ version: 1 });
    clock.advance(5_000);
    expect(loop.current()).toBeUndefined();
    maker.onUpdate = () => {};
    clock.advance(1_000);
    expect(loop.current()).toBeDefined();
  });
});
