import { describe, expect, it } from "vitest";
import { BudgetedRig, policyOf } from "../../../support/budgeted-rig.js";

/** A policy of one service that reports usage in headers, and of budgets. */
function policyText(budgets: string, usage = headersUsage): string {
  return `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  prices:
    currency: USD
    models:
      - {model: gpt-4o, input: 2, output: 10}
      - {model: mini*, input: 1, output: 1}
  budgets:
${budgets}
  services:
    - name: llm
      hosts: [llm.example.com]
      usage: ${usage}
`;
}

const headersUsage = `
        model: {header: x-model}
        declaredMax: {header: x-max-tokens}
        from: {headers: {inputTokens: x-inputtokens, outputTokens: x-outputtokens}}
        estimate: {initial: 100}`;

const perTeam = `
    - name: team
      per: [{header: x-team}]
      amount: 1000 outputTokens
      period: day
`;

async function rigOf(budgets: string, usage?: string): Promise<BudgetedRig> {
  return new BudgetedRig({ policy: await policyOf(policyText(budgets, usage)) });
}

const team = (name: string, headers: Readonly<Record<string, string>> = {}) => ({
  headers: { "x-team": name, ...headers },
});

describe("Budgets", () => {
  it("reserves the estimate, and settles to what a call used", async () => {
    const rig = await rigOf(perTeam);
    const call = await rig.ask(team("a"));
    expect(call.verdict).toBe("admitted");
    expect(call.terms[0]?.isFollowed).toBe(true);
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    await rig.complete(call, { inputTokens: 5, outputTokens: 42 });
    expect(await rig.account("team", "a")).toEqual({ spent: 42, reserved: 0 });
  });

  it("lets as many calls in as their reservations have room for, in parallel", async () => {
    const rig = await rigOf(perTeam);
    const calls = await Promise.all(Array.from({ length: 25 }, () => rig.ask(team("a"))));
    expect(calls.filter(({ verdict }) => verdict === "admitted")).toHaveLength(10);
    const [refused] = calls.filter(({ verdict }) => verdict === "budget");
    expect(refused?.refusals[0]?.status).toBe(429);
    expect((await rig.ask(team("b"))).verdict).toBe("admitted");
    expect(rig.counts("team").reservations).toMatchObject({ reserved: 11, refused: 15 });
  });

  it("says when a refused call fits by time, in seconds until the day's end", async () => {
    const rig = await rigOf(perTeam.replace("1000", "100"));
    await rig.complete(await rig.ask(team("a")), { outputTokens: 100 });
    const refused = await rig.ask(team("a"));
    const dayMs = 86_400_000;
    const leftSeconds = Math.ceil((dayMs - ((rig.clock.epochUs() / 1_000) % dayMs)) / 1_000);
    const retry = refused.refusals[0]?.headers.find(({ name }) => name === "retry-after");
    expect(Number(retry?.value)).toBeGreaterThanOrEqual(leftSeconds);
  });

  it.each([
    { how: "at its declared maximum", headers: { "x-max-tokens": "300" }, reserved: 300 },
    { how: "without one above the capacity", headers: { "x-max-tokens": "1001" }, reserved: 100 },
    { how: "by what is known before any call", headers: {}, reserved: 100 },
  ])("reserves a call $how", async ({ headers, reserved }) => {
    const rig = await rigOf(perTeam);
    await rig.ask(team("a", headers));
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved });
  });

  it("learns what calls use, by account and model", async () => {
    const rig = await rigOf(perTeam);
    for (let i = 0; i < 10; i += 1) {
      await rig.complete(await rig.ask(team("a", { "x-model": "mini" })), { outputTokens: 16 });
    }
    const { spent } = await rig.account("team", "a");
    await rig.ask(team("a", { "x-model": "mini" }));
    expect(await rig.account("team", "a")).toEqual({ spent, reserved: 20 });
    // Another team's calls of that model are expected to be alike; those of another model are not.
    await rig.ask(team("b", { "x-model": "mini" }));
    expect(await rig.account("team", "b")).toEqual({ spent: 0, reserved: 20 });
    await rig.ask(team("c", { "x-model": "gpt-4o" }));
    expect(await rig.account("team", "c")).toEqual({ spent: 0, reserved: 100 });
  });

  it("learns of each account what its own calls use, where they are not alike", async () => {
    const all = "    - {name: all, amount: 1_000_000 outputTokens, period: day}\n";
    const rig = await rigOf(`${all}${perTeam.replace("1000", "100000")}`);
    for (let i = 0; i < 20; i += 1) {
      await rig.complete(await rig.ask(team("a")), { outputTokens: 16 });
      await rig.complete(await rig.ask(team("b")), { outputTokens: 1_000 });
    }
    await rig.ask(team("a"));
    await rig.ask(team("b"));
    expect((await rig.account("team", "a")).reserved).toBe(20);
    expect((await rig.account("team", "b")).reserved).toBeGreaterThanOrEqual(1_000);
  });

  it("drains an account evenly over a period that no calendar has", async () => {
    const rig = await rigOf(perTeam.replace("day", "100s"));
    await rig.complete(await rig.ask(team("a")), { outputTokens: 1_000 });
    expect((await rig.ask(team("a"))).verdict).toBe("budget");
    // Ten tokens a second come back.
    await rig.advance(9_000);
    expect((await rig.ask(team("a"))).verdict).toBe("budget");
    await rig.advance(1_000);
    expect((await rig.ask(team("a"))).verdict).toBe("admitted");
    await rig.advance(50_000);
    expect((await rig.account("team", "a")).spent).toBe(400);
    rig.close();
  });

  it("charges a call more than was reserved, and counts by how much", async () => {
    const rig = await rigOf(perTeam);
    await rig.complete(await rig.ask(team("a")), { outputTokens: 950 });
    expect(await rig.account("team", "a")).toEqual({ spent: 950, reserved: 0 });
    expect(rig.counts("team").overshoot).toBe(850);
    expect((await rig.ask(team("a"))).verdict).toBe("budget");
  });

  it.each([
    { what: "one that left before a response", status: undefined, spent: 100 },
    { what: "an error that reports nothing", status: 500, spent: 0 },
    { what: "a response that reports nothing", status: 200, spent: 100 },
  ])("charges $what", async ({ status, spent }) => {
    const rig = await rigOf(perTeam);
    const call = await rig.ask(team("a"));
    if (status === undefined) call.leave();
    else call.complete(status);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent, reserved: 0 });
  });

  it("charges money by the price of the model, and unknown models as the dearest", async () => {
    const rig = await rigOf(
      `
    - name: spend
      per: [model]
      amount: 1 USD
      period: month
`,
    );
    const known = await rig.ask({ headers: { "x-model": "mini-2" } });
    await rig.complete(known, { inputTokens: 100, outputTokens: 50 });
    expect((await rig.account("spend", "mini-2")).spent).toBe(150_000);
    const unknown = await rig.ask({ headers: { "x-model": "other" } });
    await rig.complete(unknown, { inputTokens: 100, outputTokens: 50 });
    expect((await rig.account("spend", "other")).spent).toBe(700_000);
  });

  it("charges calls whose model nobody could read to budgets of any models", async () => {
    const rig = await rigOf(perTeam.replace("amount:", "models: [gpt-*]\n      amount:"));
    const other = await rig.ask(team("a", { "x-model": "mini-2" }));
    expect(other.verdict).toBe("admitted");
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 0 });
    await rig.ask(team("a"));
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
  });

  it("reserves at all budgets of a call or at none", async () => {
    const rig = await rigOf(`${perTeam}
    - name: all
      amount: 150 outputTokens
      period: day
`);
    expect((await rig.ask(team("a"))).verdict).toBe("admitted");
    expect((await rig.ask(team("b"))).verdict).toBe("budget");
    expect(await rig.account("team", "b")).toEqual({ spent: 0, reserved: 0 });
    expect(rig.counts("all").reservations.refused).toBe(1);
    expect(rig.counts("team").reservations.refused).toBe(0);
  });

  it("annotates, warns and falls back instead of refusing", async () => {
    const rig = await rigOf(`
    - name: soft
      amount: 100 outputTokens
      period: day
      over: {annotate: {headers: {x-over: "yes"}}}
      warnAt: 0.5
    - name: elsewhere
      amount: 199 outputTokens
      period: day
      over: {fallback: {cluster: cheap}}
`);
    const first = await rig.ask();
    expect(first.terms[0]?.setHeaders).toContainEqual({
      name: "x-headgate-budget-warning",
      value: "soft",
    });
    expect(first.terms[0]?.clearsRoute).toBeUndefined();
    const second = await rig.ask();
    expect(second.verdict).toBe("admitted");
    expect(second.terms[0]?.setHeaders).toContainEqual({ name: "x-over", value: "yes" });
    expect(second.terms[0]?.setHeaders).toContainEqual({
      name: "x-headgate-fallback",
      value: "cheap",
    });
    expect(second.terms[0]?.clearsRoute).toBe(true);
    expect(second.terms[0]?.removeHeaders).toEqual(
      expect.arrayContaining(["x-headgate-budget-warning", "x-over", "x-headgate-fallback"]),
    );
  });

  it("counts alone in a dry run, and for requests that are only observed", async () => {
    const rig = await rigOf(`
    - name: dry
      amount: 0 outputTokens
      period: day
      dryRun: true
`);
    expect((await rig.ask()).verdict).toBe("admitted");
    expect(rig.counts("dry").reservations.dryRun).toBe(1);
    const enforced = await rigOf(perTeam.replace("1000", "0"));
    expect((await enforced.ask({ ...team("a"), isObserved: true })).verdict).toBe("admitted");
  });

  it("gives back what was reserved for a request that is refused later", async () => {
    const policy = await policyOf(
      `${policyText(perTeam)}      admission: {maxInFlight: 1, queue: {size: 1, maxWait: 1s}}\n`,
    );
    const rig = new BudgetedRig({ policy });
    await rig.ask(team("a"));
    const waiting = await rig.ask(team("a"));
    expect(waiting.verdict).toBe("waiting");
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 200 });
    await rig.advance(1_500);
    expect(waiting.verdict).toBe("queue_timeout");
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    rig.close();
  });

  it("charges a call that lasts for too long what it was expected to use, once", async () => {
    const rig = await rigOf(perTeam, `${headersUsage}\n        maxDuration: 10s`);
    const call = await rig.ask(team("a"));
    await rig.advance(11_000);
    expect(await rig.account("team", "a")).toEqual({ spent: 100, reserved: 0 });
    await rig.complete(call, { outputTokens: 5 });
    expect(await rig.account("team", "a")).toEqual({ spent: 100, reserved: 0 });
    expect(rig.budgets.openCount).toBe(0);
  });

  it.each([
    { what: "has no answer", respond: false, account: { spent: 0, reserved: 100 } },
    { what: "was answered without a report", respond: true, account: { spent: 100, reserved: 0 } },
  ])("leaves a call that $what reserved, or charges it, where streams are cut", async (one) => {
    const rig = await rigOf(perTeam);
    const call = await rig.ask(team("a"));
    if (one.respond) call.respond(200);
    rig.budgets.cut();
    call.leave();
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual(one.account);
  });

  it("counts the usage of calls that no budget bounds, and charges nobody", async () => {
    const rig = await rigOf(perTeam.replace("amount:", "models: [gpt-*]\n      amount:"));
    const call = await rig.ask(team("a", { "x-model": "mini-2" }));
    await rig.complete(call, { inputTokens: 5, outputTokens: 42 });
    const usage = rig.budgets.usage.get("llm");
    expect(usage?.origins).toEqual({ reported: 1, partial: 0, estimated: 0, none: 0 });
    expect(usage?.byModel.get("mini*")?.get("outputTokens")).toBe(42);
    expect(rig.counts("team")).toMatchObject({ spent: 0, reserved: 0 });
    expect(rig.budgets.openCount).toBe(0);
  });

  it("names the budget to whoever asks only where the policy discloses it", async () => {
    const quiet = await rigOf(perTeam.replace("1000", "0"));
    const [refusal] = (await quiet.ask(team("a"))).refusals;
    expect(refusal?.body).not.toContain("team");
    expect(refusal?.metadata?.fields.get("budget")).toBe("team");
    const policy = await policyOf(
      `${policyText(perTeam.replace("1000", "0"))}
      admission: {reject: {tellRule: {header: true}}}
`,
    );
    const open = await new BudgetedRig({ policy }).ask(team("a"));
    expect(JSON.parse(open.refusals[0]?.body ?? "")).toMatchObject({
      cause: "budget",
      budget: "team",
    });
    expect(open.refusals[0]?.headers).toContainEqual({
      name: "x-headgate-rule",
      value: "llm/budget/team",
    });
  });

  it("keeps calls in flight, and their charges, when the policy changes", async () => {
    const rig = await rigOf(perTeam);
    const call = await rig.ask(team("a"));
    const next = await policyOf(policyText(perTeam.replace("1000", "500")));
    rig.policy = next;
    rig.admission.policy = next;
    await rig.complete(call, { outputTokens: 30 });
    expect(await rig.account("team", "a")).toEqual({ spent: 30, reserved: 0 });
    expect(rig.counts("team").spent).toBe(30);
  });
});
