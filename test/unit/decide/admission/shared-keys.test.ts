import { beforeEach, describe, expect, it } from "vitest";
import { LedgerKeyCounts } from "../../../../src/fleet/budgets/ledger-key-counts.js";
import { StoreBudgetLedger } from "../../../../src/fleet/budgets/store-budget-ledger.js";
import type { ServiceUsage } from "../../../../src/policy/budgets/budget-policy.js";
import type { AdmissionPolicy } from "../../../../src/policy/services/service-admission.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { MemoryBudgets } from "../../../../src/store/coordination/memory-budgets.js";
import {
  AdmissionRig,
  type AskingRequest,
  servicesPolicy,
  type TestRequest,
  testService,
} from "../../../support/admission.js";
import { BudgetLink } from "../../../support/budget-link.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";

const perUser = { per: { kind: "header", header: "x-user" }, max: 2, keysMax: 10 } as const;
const fifo = { sizeMax: 10, waitMsMax: 5_000, order: "fifo", codel: undefined } as const;

let clock: FakeClock;
let store: MemoryBudgets;
let replicaCount = 0;
let weather: { delayMs: number; lostRatio: number; isOut: boolean };

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryBudgets(clock);
  weather = { delayMs: 0, lostRatio: 0, isOut: false };
});

/** Replicas that count together. */
function replicas(
  count: number,
  admission: Partial<AdmissionPolicy> = {},
  fields: Partial<ServicePolicy> = {},
): readonly AdmissionRig[] {
  return Array.from({ length: count }, () => {
    replicaCount += 1;
    const random = new FakeRandom(replicaCount);
    const link = new BudgetLink({ inner: store, clock, random, weather });
    const parts = { store: link, clock, random, replicaCount: () => count };
    const sharedKeys = new LedgerKeyCounts(new StoreBudgetLedger(parts), String);
    const maxInFlightPer = { ...perUser, scope: "fleet" } as const;
    const service = testService({ maxInFlight: 100, maxInFlightPer, ...admission }, fields);
    return new AdmissionRig([service], { clock, sharedKeys });
  });
}

/** Asks, and waits until it is decided. */
async function ask(
  rig: AdmissionRig | undefined,
  request: TestRequest = { user: "ann" },
): Promise<AskingRequest> {
  if (rig === undefined) throw new Error("there is no such replica");
  const visit = rig.ask(request);
  await pass();
  return visit;
}

async function pass(): Promise<void> {
  await clock.advanceAsync(20, 4);
  await settlePromises();
}

async function inFlight(user = "ann"): Promise<number | undefined> {
  const { rows } = await store.list({
    budget: "inFlight:orders",
    law: { kind: "inFlight" },
    cursor: "",
  });
  return rows.find(({ account }) => account.endsWith(`/${user}`))?.reserved;
}

describe("maxInFlightPer in a fleet", () => {
  it("bounds a caller's requests over all replicas, and no other's", async () => {
    const [one, other] = replicas(2);
    const first = await ask(one);
    expect(first.verdict).toBe("admitted");
    expect((await ask(other)).verdict).toBe("admitted");
    expect((await ask(one)).verdict).toBe("concurrency");
    expect((await ask(other)).verdict).toBe("concurrency");
    expect((await ask(one, { user: "bob" })).verdict).toBe("admitted");
    first.complete();
    await pass();
    expect((await ask(other)).verdict).toBe("admitted");
    expect(one?.service().counts.refused.of("normal", "concurrency")).toBe(1);
  });

  it("refuses critical requests above it as well", async () => {
    const [one, other] = replicas(2);
    for (const rig of [one, other]) await ask(rig);
    expect((await ask(one, { user: "ann", priority: "critical" })).verdict).toBe("concurrency");
  });

  it("refuses at once what this replica alone has too many of", async () => {
    const [rig] = replicas(1);
    await ask(rig);
    await ask(rig);
    expect(rig?.ask({ user: "ann" }).verdict).toBe("concurrency");
    expect(await inFlight()).toBe(2);
  });

  it("gives back the count of who leaves while it is asked for", async () => {
    const [rig] = replicas(1);
    const visit = rig?.ask({ user: "ann" });
    expect(visit?.verdict).toBe("asking");
    visit?.leave();
    await pass();
    expect(visit?.verdict).toBe("asking");
    expect(await inFlight()).toBe(0);
    expect(rig?.service().blocks.admission?.keyed?.keyCount).toBe(0);
    expect(rig?.service().counts.leftCount).toBe(1);
  });

  it("keeps it from before a request waits until it is over", async () => {
    const [rig] = replicas(1, { maxInFlight: 1, queue: fifo });
    await ask(rig);
    const waiting = await ask(rig);
    expect(waiting.verdict).toBe("waiting");
    expect(await inFlight()).toBe(2);
    waiting.leave();
    await pass();
    expect(await inFlight()).toBe(1);
  });

  it("asks for none where there is no room", async () => {
    const [rig] = replicas(1, { maxInFlight: 1 });
    await ask(rig, { user: "bob" });
    expect(rig?.ask({ user: "ann" }).verdict).toBe("concurrency");
    expect(await inFlight()).toBeUndefined();
  });

  it("counts observed requests and dry runs, and never makes them wait", async () => {
    const [one, other] = replicas(2);
    for (const rig of [one, other]) await ask(rig);
    const observed = one?.ask({ user: "ann", isObserved: true });
    expect(observed?.verdict).toBe("admitted");
    await pass();
    expect(await inFlight()).toBe(3);
    expect(one?.service().counts.dryRefused.of("normal", "concurrency")).toBe(1);
    observed?.complete();
    await pass();
    expect(await inFlight()).toBe(2);
    const [dry] = replicas(1, { dryRun: new Set(["permits"] as const) });
    expect(dry?.ask({ user: "ann" }).verdict).toBe("admitted");
    await pass();
    expect(await inFlight()).toBe(3);
  });

  it("counts by itself while the store is away, up to its part", async () => {
    const [one, other] = replicas(2);
    weather.isOut = true;
    const first = await ask(one);
    expect([first.verdict, (await ask(one)).verdict]).toEqual(["admitted", "concurrency"]);
    expect((await ask(other)).verdict).toBe("admitted");
    weather.isOut = false;
    // In few steps: each is a turn of the real event loop.
    await clock.advanceAsync(10_000, 250);
    expect(await inFlight()).toBe(2);
    first.complete();
    await pass();
    expect(await inFlight()).toBe(1);
  });

  it("gives back what it has counted under a policy that is gone when it is decided", async () => {
    const [rig] = replicas(1);
    const visit = rig?.ask({ user: "ann" });
    if (rig !== undefined) rig.policy = servicesPolicy([testService(undefined)]);
    rig?.service();
    await pass();
    expect(visit?.verdict).toBe("admitted");
    await pass();
    expect(await inFlight()).toBe(0);
  });

  it("counts the calls of each model, and those without one together", async () => {
    const usage: ServiceUsage = {
      model: { kind: "header", header: "x-model" },
      source: { kind: "none" },
      declaredMax: undefined,
      requestBytesMax: 0,
      estimate: { quantile: 0.9, initial: 1 },
      callMsMax: 60_000,
    };
    const perModel = { ...perUser, per: { kind: "model" }, scope: "fleet" } as const;
    const [one, other] = replicas(2, { maxInFlightPer: perModel }, { usage });
    const verdicts = async (model: string | undefined) => {
      const headers = model === undefined ? {} : { "x-model": model };
      const visits = [await ask(one, { headers }), await ask(other, { headers })];
      visits.push(await ask(one, { headers }));
      return visits.map(({ verdict }) => verdict);
    };
    const twoOfThree = ["admitted", "admitted", "concurrency"];
    for (const model of ["gpt-4o", "gpt-4o-mini", undefined]) {
      expect(await verdicts(model)).toEqual(twoOfThree);
    }
    expect(await inFlight("gpt-4o")).toBe(2);
  });

  it("counts in each replica where the policy says so", async () => {
    const scoped = { maxInFlightPer: { ...perUser, scope: "replica" } as const };
    const [one, other] = replicas(2, scoped);
    const visits = [one, one, one, other].map((rig) => rig?.ask({ user: "ann" }).verdict);
    expect(visits).toEqual(["admitted", "admitted", "concurrency", "admitted"]);
    expect(await inFlight()).toBeUndefined();
  });
});
