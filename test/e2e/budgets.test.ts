import { describe, expect, it } from "vitest";
import { BudgetEdge } from "../support/budget-edge.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** What a stream of OpenAI's says of its usage, where its caller wants it. */
const streamed = { stream: true, stream_options: { include_usage: true } };

/** Counts of usage in a text of OpenAI's form. */
function usageOf(text: string): number {
  const [, input, output] = /"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(text) ?? [];
  return Number(input) + Number(output);
}

describe("budgets in front of a model", () => {
  it("lets ten of a hundred parallel streams through a budget of ten", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: `
        - {name: calls, per: [{header: x-team}], amount: 10 calls, period: day}
        - {name: tokens, per: [{header: x-team}], amount: 1_000_000 tokens, period: day}
      `,
      pace: { outputTokens: 50, everyMs: 5 },
    });
    const team = { "x-team": "web" };
    const asks = Array.from({ length: 100 }, () => edge.call({ headers: team, body: streamed }));
    const answers = await Promise.all(asks);
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(90);
    expect(passed.every(({ isWhole }) => isWhole)).toBe(true);
    expect(await edge.settled("calls", ["web"])).toEqual({ spent: 10, reserved: 0, lost: 0 });
    // What was refused has cost nothing, and what passed what it says.
    const { spent } = await edge.settled("tokens", ["web"]);
    expect(spent).toBe(passed.reduce((sum, { text }) => sum + usageOf(text), 0));
    expect((await edge.call({ headers: { "x-team": "other" } })).status).toBe(200);
  });

  it("never admits more tokens than a budget has, as far as calls declare them", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: "- {name: tokens, per: [{header: x-team}], amount: 1_000 tokens, period: day}",
      pace: { outputTokens: 500, everyMs: 1 },
    });
    const ask = { headers: { "x-team": "web" }, body: { ...streamed, max_tokens: 60 } };
    const answers = await Promise.all(Array.from({ length: 100 }, () => edge.call(ask)));
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed.length).toBeGreaterThan(5);
    expect(passed.length).toBeLessThan(17);
    const { spent } = await edge.settled("tokens", ["web"]);
    expect(spent).toBeLessThanOrEqual(1_000);
  });

  it("charges a caller who leaves what it was sent", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: "- {name: tokens, per: [{header: x-team}], amount: 100_000 tokens, period: day}",
      pace: { outputTokens: 2_000, everyMs: 5 },
    });
    const call = edge.open({
      headers: { "x-team": "web" },
      body: { ...streamed, max_tokens: 2_000 },
    });
    const tokensIn = (text: string): number => text.split('"delta":{"content":"').length - 1;
    await waitFor("some of it has come", () => tokensIn(call.text) > 50);
    expect((await edge.account("tokens", ["web"])).reserved).toBeGreaterThan(2_000);
    call.abort();
    const { spent } = await edge.settled("tokens", ["web"]);
    expect(spent).toBeGreaterThanOrEqual(50);
    expect(spent).toBeLessThan(1_000);
  });

  it("reads usage of whole bodies, Anthropic's streams, headers and trailers", async () => {
    const budgets = `
      - {name: tokens, per: [{header: x-team}], amount: 100_000 tokens, period: day}
      - {name: output, per: [{header: x-team}], amount: 100_000 outputTokens, period: day}
    `;
    const edge = await BudgetEdge.start(stage, { budgets });
    const { text } = await edge.call({ headers: { "x-team": "json" } });
    expect((await edge.settled("tokens", ["json"])).spent).toBe(usageOf(text));
    const path = "/v1/messages";
    const headers = { "x-team": "anthropic" };
    const body = { stream: true, max_tokens: 30 };
    expect((await edge.call({ path, headers, body })).status).toBe(200);
    expect((await edge.settled("output", ["anthropic"])).spent).toBe(20);
    const other = await BudgetEdge.start(stage, {
      budgets,
      usage: "{model: body, from: {headers: {outputTokens: x-usage-output-tokens}}}",
    });
    expect((await other.call({ headers: { "x-team": "headers" } })).status).toBe(200);
    expect((await other.settled("output", ["headers"])).spent).toBe(20);
    await other.call({ headers: { "x-team": "trailers" }, body: { stream: true } });
    expect((await other.settled("output", ["trailers"])).spent).toBe(20);
  });
});

describe("bodies of requests", () => {
  it("are read up to the bytes that the policy reads, and refused beyond", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: "- {name: tokens, per: [model], amount: 10_000_000 tokens, period: day}",
    });
    const asked = (bytes: number) => edge.call({ body: { pad: "x".repeat(bytes) } });
    const large = await asked(1_000_000);
    expect(large.status).toBe(200);
    expect((await edge.settled("tokens", ["large-1"])).spent).toBe(usageOf(large.text));
    expect((await asked(1_100_000)).status).toBe(413);
  });
});

describe("softer answers", () => {
  it("sends calls to the cheaper model, and no caller there by a header", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: `
        - name: calls
          per: [{header: x-team}]
          amount: 1 calls
          period: day
          over: {fallback: {cluster: cheaper}}
      `,
    });
    const headers = { "x-team": "web", "x-headgate-fallback": "cheaper" };
    const modelOf = async (): Promise<unknown> =>
      JSON.parse((await edge.call({ headers })).text).model;
    expect(await modelOf()).toBe("large-1");
    expect(await modelOf()).toBe("small-1");
    expect(await modelOf()).toBe("small-1");
  });

  it("holds parallel calls of a user over all replicas", async () => {
    const edge = await BudgetEdge.start(stage, {
      budgets: "- {name: calls, amount: 1_000 calls, period: day}",
      service: "admission: {maxInFlight: 100, maxInFlightPer: {per: {header: x-user}, max: 4}}",
      headgateCount: 2,
      pace: { outputTokens: 100, everyMs: 10 },
    });
    const ask = { headers: { "x-user": "ada" }, body: streamed };
    const answers = await Promise.all(Array.from({ length: 40 }, () => edge.call(ask)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
    await waitFor("there is room again", async () => (await edge.call(ask)).status === 200);
  });
});
