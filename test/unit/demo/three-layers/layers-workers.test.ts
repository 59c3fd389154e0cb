import { describe, expect, it } from "vitest";
import { workerCount } from "../../../../src/demo/three-layers/layers-settings.js";
import { LayersWorkers } from "../../../../src/demo/three-layers/layers-workers.js";
import { FakeClock } from "../../../support/fake-clock.js";

function createWorkers() {
  const clock = new FakeClock();
  const workers = new LayersWorkers(clock);
  const ends: string[] = [];
  const enter = (name: string, workMs: number) =>
    workers.enter(workMs, (end) => void ends.push(`${name} ${end}`));
  /** As many as there are workers. */
  const fill = (workMs: number) =>
    Array.from({ length: workerCount }, (_, i) => enter(`fill ${i}`, workMs));
  return { clock, workers, ends, enter, fill };
}

describe("LayersWorkers", () => {
  it("work on as many requests as there are workers, and let others wait in turn", () => {
    const { clock, workers, ends, enter, fill } = createWorkers();
    const [, ...others] = fill(1_000);
    workers.setRatio(1 / workerCount);
    expect(ends).toHaveLength(others.length);
    enter("first", 50);
    enter("second", 70);
    expect(workers.queueCount).toBe(2);
    clock.advance(1_000);
    expect(ends.at(-1)).toBe("fill 0 done");
    clock.advance(50);
    expect(ends.at(-1)).toBe("first done");
    clock.advance(70);
    expect(ends.at(-1)).toBe("second done");
    const counts = { arrived: workerCount + 2, busyMs: 1_120, wastedMs: 0, capacityMs: 1_120 };
    expect(workers.counts).toEqual(counts);
  });

  it("work to the end for a caller that has left, and count it as wasted", () => {
    const { clock, workers, ends, enter } = createWorkers();
    const ticket = enter("left", 100);
    clock.advance(10);
    ticket.callerLeft();
    clock.advance(90);
    expect(ends).toEqual(["left done"]);
    expect(workers.counts).toMatchObject({ busyMs: 100, wastedMs: 100 });
  });

  it("let go of what is stopped, at a worker or in the queue", () => {
    const { clock, workers, ends, enter, fill } = createWorkers();
    const [working] = fill(100);
    const waiting = enter("waiting", 100);
    enter("next", 100);
    clock.advance(30);
    waiting.stop();
    working?.stop();
    expect(workers.queueCount).toBe(0);
    expect(workers.counts).toMatchObject({ busyMs: 30, wastedMs: 30 });
    clock.advance(100);
    expect(ends).toHaveLength(workerCount);
    expect(ends).toContain("next done");
    expect(ends).not.toContain("waiting done");
    working?.stop();
    expect(workers.counts).toMatchObject({ wastedMs: 30 });
  });

  it("do not begin what nobody waits for, once they are told so", () => {
    const { clock, workers, ends, enter, fill } = createWorkers();
    fill(100);
    enter("left", 100).callerLeft();
    enter("waits", 100);
    workers.skipsLeft = true;
    clock.advance(200);
    expect(ends.slice(workerCount)).toEqual(["waits done"]);
    expect(workers.counts.wastedMs).toBe(0);
  });

  it("lose what dead workers worked on, and take up again when they are back", () => {
    const { clock, workers, ends, enter, fill } = createWorkers();
    fill(100);
    clock.advance(40);
    workers.setRatio(0.5);
    expect(ends).toHaveLength(workerCount / 2);
    expect(ends.every((end) => end.endsWith("lost"))).toBe(true);
    workers.setRatio(0);
    enter("later", 10);
    clock.advance(1_000);
    expect(workers.queueCount).toBe(1);
    workers.setRatio(1);
    clock.advance(10);
    expect(ends.at(-1)).toBe("later done");
    expect(workers.counts.capacityMs).toBe(workerCount * 50);
    expect(workers.counts.busyMs).toBe(workerCount * 40 + 10);
  });
});
