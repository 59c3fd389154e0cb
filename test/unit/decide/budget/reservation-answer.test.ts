import { describe, expect, it } from "vitest";
import { MemoryBudgets } from "../../../../src/store/coordination/memory-budgets.js";
import type { AskingRequest } from "../../../support/admission.js";
import { BudgetLink } from "../../../support/budget-link.js";
import { BudgetedRig, policyOf } from "../../../support/budgeted-rig.js";
import { FakeClock } from "../../../support/fake-clock.js";

/** A policy of one service, whose calls reserve 100 output tokens. */
function policyText(budgets: string): string {
  return `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
${budgets}
  services:
    - name: llm
      hosts: [llm.example.com]
      usage:
        model: {fixed: m}
        from: {headers: {outputTokens: x-outputtokens}}
        estimate: {initial: 100}
`;
}

async function rigOf(budgets: string): Promise<BudgetedRig> {
  return new BudgetedRig({ policy: await policyOf(policyText(budgets)) });
}

/** With a share by chance, so that not all come back at once. */
function retrySecondsOf({ refusals }: AskingRequest): number {
  return Number(refusals[0]?.headers.find(({ name }) => name === "retry-after")?.value);
}

const setHeaders = (call: AskingRequest) => call.terms[0]?.setHeaders.map(({ value }) => value);

describe("a call that budgets refuse", () => {
  const drains = (name: string, seconds: number): string => `
    - {name: ${name}, amount: 100 outputTokens, period: ${seconds}s}`;

  it.each([
    { first: 50, second: 200 },
    { first: 200, second: 50 },
  ])("is told when all of them have room: $first s and $second s", async ({ first, second }) => {
    const rig = await rigOf(drains("one", first) + drains("other", second));
    await rig.complete(await rig.ask(), { outputTokens: 100 });
    const refused = await rig.ask();
    expect(refused.refusals[0]?.metadata?.fields.get("budget")).toBe("one");
    expect(retrySecondsOf(refused)).toBeGreaterThanOrEqual(200);
    expect(rig.counts("one").reservations.refused).toBe(1);
    expect(rig.counts("other").reservations.refused).toBe(1);
  });

  it("is told no time where only the ends of other calls make room in one of them", async () => {
    const rig = await rigOf(`${drains("slow", 200)}
    - {name: room, amount: 100 outputTokens, period: day}`);
    await rig.ask();
    expect(retrySecondsOf(await rig.ask())).toBeLessThan(10);
  });

  it("is refused by no budget that only counts or marks", async () => {
    const rig = await rigOf(`
    - {name: dry, amount: 0 outputTokens, period: day, dryRun: true}
    - name: soft
      amount: 0 outputTokens
      period: day
      over: {annotate: {headers: {x-over: soft}}}
    - {name: hard, amount: 0 outputTokens, period: day}`);
    const refused = await rig.ask();
    expect(refused.refusals[0]?.metadata?.fields.get("budget")).toBe("hard");
    for (const name of ["dry", "soft"]) expect(rig.counts(name).reservations.refused).toBe(0);
  });
});

describe("a call that budgets let pass", () => {
  const soft = (name: string, amount: number): string => `
    - name: ${name}
      amount: ${amount} outputTokens
      period: day
      over: {annotate: {headers: {x-over: ${name}}}}`;

  it("has of several fields of one name that of the most used budget last", async () => {
    for (const budgets of [
      soft("full", 10) + soft("near", 50),
      soft("near", 50) + soft("full", 10),
    ]) {
      const rig = await rigOf(budgets);
      await rig.complete(await rig.ask(), { outputTokens: 100 });
      expect(setHeaders(await rig.ask())?.slice(-2)).toEqual(["near", "full"]);
      expect(rig.counts("near").reservations).toMatchObject({ annotated: 1, reserved: 1 });
    }
  });

  it("goes where the first budget over sends it", async () => {
    const elsewhere = (name: string): string => `
    - name: ${name}
      amount: 0 outputTokens
      period: day
      over: {fallback: {cluster: ${name}}}`;
    const rig = await rigOf(elsewhere("first") + elsewhere("second"));
    expect((await rig.ask()).terms[0]?.metadata?.get("fallback")).toBe("first");
    expect(rig.counts("second").reservations.fallback).toBe(1);
  });

  it("is warned from the ratio on, itself included, and by no dry run", async () => {
    const warns = (name: string, more = ""): string => `
    - {name: ${name}, amount: 400 outputTokens, period: day, warnAt: 0.5${more}}`;
    const rig = await rigOf(warns("told") + warns("dry", ", dryRun: true"));
    expect(setHeaders(await rig.ask())).not.toContain("told");
    const warned = await rig.ask();
    expect(setHeaders(warned)).toContain("told");
    expect(setHeaders(warned)).not.toContain("dry");
    expect([rig.counts("told").warnedCount, rig.counts("dry").warnedCount]).toEqual([1, 0]);
  });
});

describe("what metrics say of budgets", () => {
  it("is the highest used part of an account of the last minute or two", async () => {
    const rig = await rigOf(`
    - {name: team, per: [{header: x-team}], amount: 1_000 outputTokens, period: day}`);
    const ask = (team: string) => rig.ask({ headers: { "x-team": team } });
    await ask("a");
    await ask("a");
    await ask("b");
    expect(rig.counts("team").usedRatio).toBe(0.2);
    await rig.advance(60_000);
    expect(rig.counts("team").usedRatio).toBe(0.2);
    await ask("c");
    await rig.advance(60_000);
    expect(rig.counts("team").usedRatio).toBe(0.1);
    await rig.advance(60_000);
    expect(rig.counts("team").usedRatio).toBe(0);
    rig.close();
  });

  it("is how usage was found, by the way in which calls have ended", async () => {
    const rig = await rigOf("    - {name: all, amount: 1_000 outputTokens, period: day}");
    await rig.complete(await rig.ask(), { outputTokens: 5 });
    (await rig.ask()).complete(200);
    (await rig.ask()).complete(400);
    await rig.turn();
    const origins = { reported: 1, partial: 0, estimated: 1, none: 1 };
    expect(rig.budgets.usage.get("llm")?.origins).toEqual(origins);
    expect(rig.counts("all")).toMatchObject({ spent: 105, reserved: 0 });
  });

  it("counts calls that were decided without the store", async () => {
    const clock = new FakeClock();
    const weather = { delayMs: 0, lostRatio: 0, isOut: false };
    const random = { next: () => 0.5, id: () => "r1" };
    const store = new BudgetLink({ inner: new MemoryBudgets(clock), clock, random, weather });
    const text = policyText("    - {name: all, amount: 1_000 outputTokens, period: day}");
    const rig = new BudgetedRig({ policy: await policyOf(text), clock, store });
    await rig.ask();
    for (let i = 0; i < 4; i += 1) await rig.advance(1);
    expect(rig.counts("all").withoutStoreCount).toBe(0);
    weather.isOut = true;
    const call = await rig.ask();
    await rig.advance(1_000);
    expect([call.verdict, rig.counts("all").withoutStoreCount]).toEqual(["admitted", 1]);
    rig.close();
  });
});
