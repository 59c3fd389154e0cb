import { beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../../../src/core/limits/limit.js";
import {
  type RateLimitAnswer,
  RateLimitAsker,
  rateLimitQuery,
} from "../../../../src/decide/admission/admission-rate-limit.js";
import {
  DelayedRequests,
  delayedRequestsMax,
} from "../../../../src/decide/admission/delayed-requests.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { LimitSwitches } from "../../../../src/decide/rate-limit/switches.js";
import { defaultSwitches } from "../../../../src/decide/rate-limit/switches.js";
import type { Policy } from "../../../../src/policy/policy.js";
import {
  askedOnce,
  type ServiceRateLimit,
} from "../../../../src/policy/services/service-rate-limit.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import {
  AdmissionRig,
  type AskingRequest,
  requestOf,
  servicesPolicy,
  type TestRequest,
  testService,
} from "../../../support/admission.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const byUser: ServiceRateLimit = {
  domain: "shop",
  inExtProc: true,
  descriptors: [askedOnce([{ kind: "header", header: "x-user", key: "user" }])],
};

/** Ten a second, one at once, held for up to 500 ms. */
const paced = tenPerSecond({ over: { kind: "delay", maxMs: 500 } });

function tenPerSecond(fields: Partial<Limit>): Limit {
  return testLimit(10, { unit: "second", periodUs: 1_000_000, burst: 1, ...fields });
}

interface World {
  readonly rig: AdmissionRig;
  readonly decider: Decider;
  readonly counters: DecisionCounters;
  readonly store: FaultyStore;
  readonly policy: Policy;
}

let clock = new FakeClock();

beforeEach(() => {
  clock = new FakeClock();
});

function createWorld(
  admission: Parameters<typeof testService>[0] = {},
  limits: readonly Limit[] = [paced],
  switches: Partial<LimitSwitches> = {},
): World {
  const policy = servicesPolicy(
    [testService(admission, { rateLimit: byUser })],
    testPolicy([{ path: ["user"], effect: limits }]),
  );
  const store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  const counters = new DecisionCounters();
  const policies = { current: () => policy };
  const own = { ...defaultSwitches, ...switches };
  const decider = createTestDecider({ clock, store, policies, counters, switches: own });
  return { rig: new AdmissionRig(policy, { clock, decider }), decider, counters, store, policy };
}

async function ask(
  rig: AdmissionRig,
  count: number,
  request: TestRequest = {},
): Promise<readonly AskingRequest[]> {
  const visits = rig.askMany(count, { user: "a", ...request });
  rig.clock.runTurns();
  await settlePromises();
  return visits;
}

function verdicts(visits: readonly AskingRequest[]): readonly string[] {
  return visits.map(({ verdict }) => verdict);
}

describe("requests over a limit that delays", () => {
  it("go in one after the other at the limit's rate; those beyond are refused", async () => {
    const { rig, counters, policy } = createWorld();
    const visits = await ask(rig, 8);
    const held = ["waiting", "waiting", "waiting", "waiting", "waiting"];
    expect(verdicts(visits)).toEqual(["admitted", ...held, "rate_limit", "rate_limit"]);
    expect(visits[3]?.waits).toEqual([300 + 200]);
    expect(rig.service().counts.delayedNow).toBe(5);
    clock.advance(99.9);
    expect(verdicts(visits).filter((one) => one === "admitted")).toHaveLength(1);
    clock.advance(0.2);
    expect(verdicts(visits).filter((one) => one === "admitted")).toHaveLength(2);
    clock.advance(400);
    expect(verdicts(visits).filter((one) => one === "admitted")).toHaveLength(6);
    const { counts } = rig.service();
    expect([counts.delayedNow, counts.delays.sum]).toEqual([0, 1_500]);
    const [rule] = counters.forPolicy(policy);
    expect(rule).toMatchObject({ ok: 1, delayed: 5, over: 2 });
    expect(rule?.hits).toMatchObject({ total: 8, within: 6, over: 2 });
  });

  it("say when a request that is refused fits, with its delay", async () => {
    const { rig } = createWorld({}, [
      tenPerSecond({ hits: 1, over: { kind: "delay", maxMs: 500 } }),
    ]);
    const [, refused] = await ask(rig, 2);
    expect(refused?.refusals[0]?.headers[0]).toEqual({ name: "retry-after", value: "1" });
    clock.advance(600);
    expect(verdicts(await ask(rig, 1))).toEqual(["waiting"]);
  });

  it("keep their turn, and what they were charged, when others leave", async () => {
    const { rig } = createWorld();
    const [, second, third] = await ask(rig, 3);
    second?.leave();
    expect(rig.service().counts).toMatchObject({ delayedNow: 1, leftCount: 1 });
    clock.advance(150);
    expect([second?.verdict, third?.verdict]).toEqual(["waiting", "waiting"]);
    clock.advance(50.1);
    expect(third?.verdict).toBe("admitted");
    expect(rig.service().counts.delays.sum).toBe(200);
  });

  it("wait for a permit afterwards, which Envoy was told at first", async () => {
    const queue = { sizeMax: 9, waitMsMax: 1_000, order: "fifo", codel: undefined } as const;
    const { rig } = createWorld({ maxInFlight: 1, queue });
    const [first] = await ask(rig, 1);
    const [second] = await ask(rig, 1);
    expect(second?.waits).toEqual([100 + 1_000 + 200]);
    clock.advance(101);
    expect([second?.verdict, second?.waits.length]).toEqual(["waiting", 1]);
    first?.complete();
    expect(second?.verdict).toBe("admitted");
    expect(rig.service().counts.admitted.normal).toBe(2);
  });

  it("are refused at once where their caller has less time left", async () => {
    const { rig } = createWorld();
    await ask(rig, 3);
    const hurried = { headers: { "grpc-timeout": "250m" } };
    expect(verdicts(await ask(rig, 1, hurried))).toEqual(["rate_limit"]);
    const patient = { headers: { "grpc-timeout": "350m" } };
    expect(verdicts(await ask(rig, 1, patient))).toEqual(["waiting"]);
  });

  it("are held by the longest of their delays, within the shortest bound", async () => {
    const slow = tenPerSecond({ name: "slow", hits: 5, over: { kind: "delay", maxMs: 5_000 } });
    const { rig } = createWorld({}, [paced, slow]);
    const visits = await ask(rig, 4);
    expect(visits.map(({ waits }) => waits[0])).toEqual([undefined, 400, 600, undefined]);
    expect(visits[3]?.verdict).toBe("rate_limit");
  });

  it("are refused by a limit that does not delay, and charged nothing", async () => {
    const strict = tenPerSecond({ name: "strict", hits: 1 });
    const { rig } = createWorld({}, [paced, strict]);
    expect(verdicts(await ask(rig, 2))).toEqual(["admitted", "rate_limit"]);
    clock.advance(1_000);
    expect(verdicts(await ask(rig, 1))).toEqual(["admitted"]);
  });

  it("go in at once in a dry run, and are counted", async () => {
    const { rig } = createWorld({ dryRun: new Set(["rateLimit"]) });
    expect(verdicts(await ask(rig, 3))).toEqual(["admitted", "admitted", "admitted"]);
    expect(rig.service().counts).toMatchObject({ dryDelayedCount: 2, delayedNow: 0 });
  });

  it("go in at once under a shadow limit, and where nothing is denied", async () => {
    const shadow = createWorld({}, [{ ...paced, role: "shadow" }]);
    expect(new Set(verdicts(await ask(shadow.rig, 9)))).toEqual(new Set(["admitted"]));
    const off = createWorld({}, [paced], { isShadow: true });
    expect(new Set(verdicts(await ask(off.rig, 9)))).toEqual(new Set(["admitted"]));
  });

  it("are held by this replica's share while the store is away", async () => {
    const { rig, store } = createWorld();
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect(verdicts(await ask(rig, 7)).slice(0, 6)).toEqual([
      "admitted",
      ...["waiting", "waiting", "waiting", "waiting", "waiting"],
    ]);
  });

  it("are no late requests of a service because they were held", async () => {
    const { rig } = createWorld({ lateAfterMs: 300 });
    const visits = await ask(rig, 6);
    clock.advance(501);
    visits.at(-1)?.complete();
    expect(rig.service().counts.outcomes).toMatchObject({ success: 1, dropped: 0 });
  });
});

describe("DelayedRequests", () => {
  it("holds no more than its bound, and refuses the others at once", async () => {
    const { decider } = createWorld();
    const delayed = new DelayedRequests(clock, 2);
    const asker = new RateLimitAsker(decider, (one) => rateLimitQuery(byUser, one), delayed);
    const answers: RateLimitAnswer["kind"][] = [];
    const request = requestOf({ user: "a" });
    const askOne = async (): Promise<void> => {
      asker.ask(request, Number.POSITIVE_INFINITY, ({ kind }) => answers.push(kind));
      clock.runTurns();
      await settlePromises();
    };
    for (let i = 0; i < 4; i += 1) await askOne();
    expect(answers).toEqual(["passes", "delayed", "delayed", "denied"]);
    delayed.hold(0.5, () => {});
    clock.advance(1);
    await askOne();
    expect(answers.at(-1)).toBe("delayed");
  });

  it("has places for as many as it says", () => {
    const delayed = new DelayedRequests(clock);
    let count = 0;
    while (delayed.reserve()) count += 1;
    expect(count).toBe(delayedRequestsMax);
    delayed.release();
    expect([delayed.reserve(), delayed.reserve()]).toEqual([true, false]);
  });

  it("calls nobody early whose timer fires early", () => {
    const delayed = new DelayedRequests(clock);
    const ends: number[] = [];
    delayed.hold(100.5, () => ends.push(clock.monotonicMs()));
    clock.advance(100.4);
    expect(ends).toEqual([]);
    clock.advance(10);
    expect(ends).toHaveLength(1);
  });

  it("leaves no timer behind", () => {
    const delayed = new DelayedRequests(clock);
    const cancel = delayed.hold(100, () => expect.fail("was let go of"));
    cancel();
    cancel();
    expect(clock.timerCount).toBe(0);
  });
});
