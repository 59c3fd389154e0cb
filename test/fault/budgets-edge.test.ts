import { describe, expect, it } from "vitest";
import { BudgetEdge, type ModelAsk, type ModelCall } from "../support/budget-edge.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

const budgets = "- {name: tokens, per: [{header: x-team}], amount: 1_000_000 tokens, period: day}";
const team = { "x-team": "web" };

/** A stream of 400 tokens, which takes two seconds. */
const long = {
  headers: team,
  body: { stream: true, stream_options: { include_usage: true }, max_tokens: 400 },
};
const pace = { outputTokens: 400, everyMs: 5 };

/** Begins so many calls, and waits until all of them stream. */
async function openAll(edge: BudgetEdge, count: number): Promise<readonly ModelCall[]> {
  const calls = Array.from({ length: count }, () => edge.open(long));
  await waitFor("all calls stream", () => calls.every(({ text }) => text.length > 1_000));
  return calls;
}

/** What a whole call costs, as it says itself. */
async function costOf(
  edge: BudgetEdge,
  ask: ModelAsk = { ...long, headers: { "x-team": "measured" } },
): Promise<number> {
  const { text } = await edge.call(ask);
  const [, input, output] = /"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(text) ?? [];
  return Number(input) + Number(output);
}

// Each waits for streams and leases most of the time, at an edge of its own.
describe.concurrent("budgets while something dies", () => {
  it("streams every byte while the replica that is shown responses has stopped", async () => {
    const edge = await BudgetEdge.startProcesses(stage, {
      budgets,
      // The replica that asks charges what was reserved 5 s after a call, if it hears of no usage.
      pace: { ...pace, everyMs: 2 },
      headgateCount: 2,
      observesElsewhere: true,
    });
    const whole = await edge.call(long);
    // The other replica has seen the response, and has charged it.
    expect((await edge.settled("tokens", ["web"])).spent).toBe(await costOf(edge));
    const [, observer] = edge.headgates;
    process.kill(observer?.pid ?? 0, "SIGSTOP");
    const short = { headers: { "x-team": "short" }, body: { ...long.body, max_tokens: 50 } };
    try {
      // The buffers of the observer's socket hold it, however slowly they grow.
      expect((await edge.call(short)).isWhole).toBe(true);
      const stopped = await edge.call({ ...long, headers: { "x-team": "stopped" } });
      expect(stopped.isWhole).toBe(true);
      expect(stopped.text.length).toBe(whole.text.length);
    } finally {
      process.kill(observer?.pid ?? 0, "SIGCONT");
    }
    const { spent } = await edge.settled("tokens", ["short"]);
    expect(spent).toBe(await costOf(edge, { ...short, headers: { "x-team": "measured short" } }));
    // Of a response that they do not hold, Envoy drops the rest when it ends the stream.
    expect((await edge.settled("tokens", ["stopped"])).spent).toBeGreaterThan(spent);
  });

  it("gives back what calls had reserved whose Envoy is killed", async () => {
    const edge = await BudgetEdge.startProcesses(stage, { budgets, pace });
    const cost = await costOf(edge);
    const calls = await openAll(edge, 10);
    expect((await edge.account("tokens", ["web"])).reserved).toBeGreaterThan(4_000);
    await edge.envoy.kill();
    for (const call of calls) expect((await call.ended).isWhole).toBe(false);
    const { spent, reserved } = await edge.settled("tokens", ["web"]);
    expect(reserved).toBe(0);
    // They cannot have cost more than whole ones.
    expect(spent).toBeLessThanOrEqual(10 * (cost + 10));
    await edge.envoy.restart();
    await waitFor("calls pass again", async () => (await edge.call(long)).status === 200);
  });

  it("gives back what a killed replica held, while another one serves", async () => {
    const edge = await BudgetEdge.startProcesses(stage, { budgets, pace, headgateCount: 2 });
    const cost = await costOf(edge);
    const calls = await openAll(edge, 20);
    const [first] = edge.headgates;
    await first?.process.kill();
    for (const call of calls) expect((await call.ended).isWhole).toBe(true);
    const { spent, reserved, lost } = await edge.settled("tokens", ["web"], 1);
    expect(reserved).toBe(0);
    expect(lost).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(20 * (cost + 10));
    const before = spent;
    expect((await edge.call(long)).status).toBe(200);
    await waitFor("the other replica charges", async () => {
      return (await edge.account("tokens", ["web"], 1)).spent === before + cost;
    });
  });

  it("charges calls once that end while Redis stands still", async () => {
    const edge = await BudgetEdge.startProcesses(stage, { budgets, pace });
    const cost = await costOf(edge);
    const calls = await openAll(edge, 10);
    edge.redis.pause();
    for (const call of calls) expect((await call.ended).isWhole).toBe(true);
    edge.redis.resume();
    await waitFor("all is charged", async () => {
      const { spent, reserved } = await edge.account("tokens", ["web"]);
      return reserved === 0 && spent === 10 * cost;
    });
  });

  it("charges calls once that end while Redis is dead", async () => {
    const redisArgs = ["--appendonly", "yes", "--appendfsync", "always"];
    const edge = await BudgetEdge.startProcesses(stage, { budgets, pace, redisArgs });
    const cost = await costOf(edge);
    const calls = await openAll(edge, 10);
    await edge.redis.kill();
    for (const call of calls) expect((await call.ended).isWhole).toBe(true);
    await edge.redis.restart();
    await waitFor("all is charged", async () => {
      const { spent, reserved } = await edge.account("tokens", ["web"]);
      return reserved === 0 && spent === 10 * cost;
    });
  });
});
