import { describe, expect, it } from "vitest";
import { LayersCaller } from "../../../../src/demo/three-layers/layers-caller.js";
import {
  initialSettings,
  type LayersSettings,
  patienceMs,
} from "../../../../src/demo/three-layers/layers-settings.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";

const bare: LayersSettings = {
  ...initialSettings,
  layers: { client: false, proxy: false, server: false },
  loadRatio: 0.1,
};

/** A caller without the library, whose requests `answer` answers. */
function createCaller(answer: typeof fetch, settings = bare) {
  const clock = new FakeClock();
  const caller = new LayersCaller(
    {
      clock,
      arrivals: new FakeRandom(1),
      retries: new FakeRandom(2),
      send: answer,
      createClient: () => () => Promise.resolve("refusedHere"),
    },
    settings,
  );
  /** Step by step, so that what an answer leads to comes in its time. */
  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 10) {
      clock.advance(10);
      await new Promise(setImmediate);
    }
  };
  return { caller, clock, pass };
}

const respond = (status: number): typeof fetch => {
  return () => Promise.resolve(new Response(undefined, { status }));
};

/** Answers never; gives up as `fetch` does. */
const silent: typeof fetch = (_input, init) =>
  new Promise((_, reject) => {
    init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
  });

describe("LayersCaller", () => {
  it("sends as many requests as the load says, and counts what is served", async () => {
    const { caller, pass } = createCaller(respond(200));
    await pass(100_000);
    const { requests, served, attempts, workMs, servedWorkMs } = caller.counts;
    // 10 a second in the mean: four standard deviations of it.
    expect(requests).toBeGreaterThan(870);
    expect(requests).toBeLessThan(1_130);
    expect([served, attempts, servedWorkMs]).toEqual([requests, requests, workMs]);
  });

  it("tries what is refused twice more, whatever it is told", async () => {
    const { caller, pass } = createCaller(respond(503));
    await pass(10_000);
    caller.settings = { ...bare, loadRatio: 0 };
    await pass(patienceMs);
    const { requests, attempts, refused, served } = caller.counts;
    expect(requests).toBeGreaterThan(50);
    expect([attempts, refused, served]).toEqual([3 * requests, requests, 0]);
  });

  it("waits no longer than its patience, a second for each attempt", async () => {
    const { caller, pass } = createCaller(silent);
    await pass(10_000);
    caller.settings = { ...bare, loadRatio: 0 };
    await pass(patienceMs + 100);
    const { requests, attempts, late } = caller.counts;
    expect(late).toBe(requests);
    expect(attempts).toBe(2 * requests);
  });

  it("goes on when there is load again, and ends when it is stopped", async () => {
    const { caller, clock, pass } = createCaller(respond(200), { ...bare, loadRatio: 0 });
    await pass(1_000);
    expect(caller.counts.requests).toBe(0);
    caller.settings = { ...bare, layers: { ...bare.layers, client: true } };
    await pass(5_000);
    const { requests, refusedHere } = caller.counts;
    expect(requests).toBeGreaterThan(0);
    expect(refusedHere).toBe(requests);
    caller.stop();
    await pass(1_000);
    expect(caller.counts.requests).toBe(requests);
    expect(clock.timerCount).toBe(0);
  });
});
