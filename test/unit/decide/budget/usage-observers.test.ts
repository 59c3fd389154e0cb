import { describe, expect, it } from "vitest";
import { earlyMsMax } from "../../../../src/fleet/budgets/early-settlements.js";
import { MemoryBudgets } from "../../../../src/store/coordination/memory-budgets.js";
import type { AskingRequest } from "../../../support/admission.js";
import { BudgetedRig, policyOf } from "../../../support/budgeted-rig.js";
import { FakeClock } from "../../../support/fake-clock.js";

const policyText = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
    - name: team
      per: [{header: x-team}]
      amount: 1000 outputTokens
      period: day
  services:
    - name: llm
      hosts: [llm.example.com]
      usage: {model: {fixed: gpt-4o}, from: body, estimate: {initial: 100}}
`;

/** Two replicas over one store. */
async function openReplicas() {
  const clock = new FakeClock();
  const policy = await policyOf(policyText);
  const store = new MemoryBudgets(clock);
  return [new BudgetedRig({ policy, clock, store }), new BudgetedRig({ policy, clock, store })];
}

/** Shows a response to a replica, with the metadata that the stream which asked has set. */
function show(rig: BudgetedRig, call: AskingRequest, { status = "200" } = {}) {
  const fields = call.terms[0]?.metadata ?? new Map();
  const observer = rig.budgets.observers.open(fields, "envoy");
  if (observer === undefined) throw new Error("nobody looks at the response");
  observer.responded(
    new Map([
      [":status", status],
      ["content-type", "application/json"],
    ]),
  );
  return observer;
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const body = bytesOf('{"usage": {"prompt_tokens": 7, "completion_tokens": 42}}');

const team = { headers: { "x-team": "a" } };

describe("BodyObservers", () => {
  it.each([
    { where: "the replica that admitted the call", shownTo: 0 },
    { where: "another replica", shownTo: 1 },
  ])("settles by the body of the response at $where, once", async ({ shownTo }) => {
    const rigs = await openReplicas();
    const [rig, shown] = [rigs[0], rigs[shownTo]];
    if (rig === undefined || shown === undefined) throw new Error("two replicas");
    const call = await rig.ask(team);
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    const observer = show(shown, call);
    observer.body(body.subarray(0, 20));
    call.complete();
    observer.body(body.subarray(20));
    observer.end(true);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 42, reserved: 0 });
    await rig.advance(10_000);
    expect(await rig.account("team", "a")).toEqual({ spent: 42, reserved: 0 });
    expect(rig.budgets.openCount).toBe(0);
    expect(shown.counts("team").settlements.settled).toBe(1);
  });

  it("charges what the stream has seen that ends first, where two show a response", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("two replicas");
    const call = await rig.ask(team);
    const [one, other] = [show(rig, call), show(rig, call)];
    one.body(body);
    one.end(true);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 42, reserved: 0 });
    other.end(true);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 42, reserved: 0 });
  });

  it("charges the price of the model that has answered, where the table knows it", async () => {
    const prices = `prices:
    currency: USD
    models:
      - {model: gpt-4o, input: 2, output: 10}
      - {model: mini*, input: 1, output: 1}
  budgets:`;
    const text = policyText.replace("budgets:", prices).replace("1000 outputTokens", "1 USD");
    const rig = new BudgetedRig({ policy: await policyOf(text), clock: new FakeClock() });
    const spent: number[] = [];
    for (const model of ["mini-2", "gpt-4o", "unheard-of"]) {
      const call = await rig.ask({ headers: { "x-team": model } });
      const observer = show(rig, call);
      const usage = { prompt_tokens: 100, completion_tokens: 50 };
      observer.body(bytesOf(JSON.stringify({ model, usage })));
      observer.end(true);
      await rig.turn();
      spent.push((await rig.account("team", model)).spent);
    }
    expect(spent).toEqual([150_000, 700_000, 700_000]);
  });

  it("charges the estimate where nobody has shown the response in time", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("a replica");
    (await rig.ask(team)).complete();
    await rig.advance(4_000);
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    await rig.advance(2_500);
    expect(await rig.account("team", "a")).toEqual({ spent: 100, reserved: 0 });
  });

  it("charges a response that was cut off what it has sent", async () => {
    const rigs = await openReplicas();
    for (const [i, shown] of rigs.entries()) {
      const [rig] = rigs;
      if (rig === undefined) throw new Error("a replica");
      const call = await rig.ask({ headers: { "x-team": `t${i}` } });
      const observer = show(shown, call);
      observer.body(bytesOf('{"choices": [{"message": {"content": "'));
      observer.body(bytesOf("word ".repeat(16)));
      call.respond(200);
      call.leave();
      observer.end(false);
      await rig.turn();
      const { spent, reserved } = await rig.account("team", `t${i}`);
      expect(reserved).toBe(0);
      expect(spent).toBeGreaterThanOrEqual(10);
      expect(spent).toBeLessThanOrEqual(30);
    }
  });

  it("waits for the call's own end where its stream breaks", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("a replica");
    const call = await rig.ask(team);
    const observer = show(rig, call);
    observer.end(false);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    call.complete();
    await rig.advance(6_000);
    expect((await rig.account("team", "a")).reserved).toBe(0);
  });

  it("settles at its close calls that have ended, and leaves others to their leases", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("a replica");
    (await rig.ask({ headers: { "x-team": "ended" } })).complete();
    await rig.ask({ headers: { "x-team": "open" } });
    rig.close();
    await rig.turn();
    expect(await rig.account("team", "ended")).toEqual({ spent: 100, reserved: 0 });
    expect(await rig.account("team", "open")).toEqual({ spent: 0, reserved: 100 });
    expect(rig.budgets.openCount).toBe(1);
  });

  it("waits no longer for usage than a call may last", async () => {
    const text = policyText.replace("from: body", "from: body, maxDuration: 10s");
    const rig = new BudgetedRig({ policy: await policyOf(text), clock: new FakeClock() });
    const call = await rig.ask(team);
    await rig.advance(8_000);
    call.complete();
    await rig.advance(1_000);
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 100 });
    await rig.advance(2_000);
    expect(await rig.account("team", "a")).toEqual({ spent: 100, reserved: 0 });
  });

  it("counts by bytes where the form is unknown, and says so", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("a replica");
    const call = await rig.ask(team);
    const observer = show(rig, call);
    observer.body(bytesOf("x".repeat(400)));
    call.complete();
    observer.end(true);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 100, reserved: 0 });
    expect(rig.events).toEqual([
      { kind: "usageUnrecognised", service: "llm", reason: "unknownForm" },
    ]);
  });

  it("charges nothing for an error", async () => {
    const [rig] = await openReplicas();
    if (rig === undefined) throw new Error("a replica");
    const call = await rig.ask(team);
    const observer = show(rig, call, { status: "500" });
    observer.body(bytesOf("no"));
    observer.end(true);
    await rig.turn();
    expect(await rig.account("team", "a")).toEqual({ spent: 0, reserved: 0 });
  });

  it.each([
    { what: "no fields", fields: {} },
    { what: "another service", fields: { service: "other" } },
    {
      what: "accounts of another budget",
      fields: { service: "llm", reservation: "r.1", accounts: "x/a" },
    },
    { what: "what is no account", fields: { service: "llm", reservation: "r.1", accounts: "a%" } },
    { what: "accounts without a reservation", fields: { service: "llm", accounts: "team/a" } },
  ])("does not look at a response with $what", async ({ fields }) => {
    const [rig] = await openReplicas();
    const metadata = new Map(Object.entries(fields));
    expect(rig?.budgets.observers.open(metadata, "envoy")).toBeUndefined();
  });

  it("charges nothing for a reservation that nobody has made", async () => {
    const [rig] = await openReplicas();
    const fields = { service: "llm", reservation: "nobody.1", accounts: "team/a" };
    const observer = rig?.budgets.observers.open(new Map(Object.entries(fields)), "envoy");
    observer?.responded(new Map([[":status", "200"]]));
    observer?.body(body);
    observer?.end(true);
    // It is repeated for as long as the replica that asked may still reserve it.
    for (let ms = 0; ms < earlyMsMax + 2_000; ms += 500) await rig?.advance(500);
    expect(await rig?.account("team", "a")).toEqual({ spent: 0, reserved: 0 });
    expect(rig?.counts("team").settlements.unknown).toBe(1);
  });
});
