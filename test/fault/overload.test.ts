import { describe, expect, it } from "vitest";
import {
  type FailureModeName,
  failureModePolicy,
  failureModes,
  recoveryMsMax,
} from "../support/failure-modes.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  expectUnharmed,
  startClient,
  startModeTraffic,
  wellOutcomes,
} from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf, type RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { Traffic } from "../support/traffic.js";
import { timingsEnv } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const limitHits = 100_000;

/**
 * What the store does not answer fails, so that an OK is a hit there and the other way round. A
 * year, so that no hit drains meanwhile.
 */
const oneLimit = edgePolicy(`
  - key: account
    rate_limit: {unit: year, requests_per_unit: ${limitHits}}
    on_store_failure: error
`);

/** Memory that a flood may cost for good, in bytes: buffers and caches, not what it asked. */
const memoryGrowthBytesMax = 64 * 1_048_576;

/** How late answers of Redis are in a flood: long, yet no reason to give the connection up. */
const answerLatencyMs = 300;

const requestsInFlightMax = 40;

/** Callers of a process that stands still. */
const callersCount = 16;

/** Floods, and calls of each failure mode in one. */
const floodCount = 10;
const floodCallsByMode = 200;

const stage = useStage("test");
let accountsUsed = 0;

async function hitsLeft(client: RlsClient): Promise<number> {
  const look = { entries: ["account=shared"], hits: 0n };
  const answer = await client.ask({ descriptors: [look] });
  if (answer.kind === "failed") throw new Error(answer.statusName);
  return answer.response.statuses[0]?.limitRemaining ?? 0;
}

describe("a process that stands still for longer than its callers wait", () => {
  it.each(["redis", "memory"] as const)(
    "drops what came meanwhile, charges nobody for it, and is well again: %s",
    async (storeKind) => {
      const { headgate, client } = await startWith(storeKind);
      const ask = { descriptors: [["account=shared"]] };
      const hasty = Traffic.start(stage, {
        callersCount,
        call: async () => outcomeOf(await client.ask({ ...ask, timeoutMs: 400 })),
      });
      await waitFor("calls are answered", () => hasty.count("OK") >= 100);
      headgate.process.signal("SIGSTOP");
      // On a machine that is busy some may have given up before.
      const givenUpBefore = hasty.count("DEADLINE_EXCEEDED");
      await waitFor("callers have given up, four times each", () => {
        return hasty.count("DEADLINE_EXCEEDED") >= givenUpBefore + 4 * callersCount;
      });
      const before = await hasty.stop();
      headgate.process.signal("SIGCONT");
      const patient = Traffic.start(stage, {
        callersCount,
        call: async () => outcomeOf(await client.ask(ask)),
      });
      await waitFor("calls are answered again", () => patient.count("OK") >= 100, {
        withinMs: recoveryMsMax,
      });
      const after = await patient.stop();

      for (const outcome of Object.keys({ ...before.byOutcome, ...after.byOutcome })) {
        expect(["OK", "DEADLINE_EXCEEDED", "UNAVAILABLE"]).toContain(outcome);
      }
      // Of four calls that a caller gave up, one was under way and three came meanwhile.
      const dropped = { error: "DEADLINE_PASSED" };
      const droppedCount = await headgate.metric("headgate_failed_requests_total", dropped);
      expect(droppedCount).toBeGreaterThanOrEqual(2 * callersCount);
      const okCount = (before.byOutcome["OK"] ?? 0) + (after.byOutcome["OK"] ?? 0);
      const chargedCount = await waitFor("the limit is shown", async () => {
        return limitHits - (await hitsLeft(client));
      });
      // Charged and never answered: what was under way, of callers some of whom had just been
      // answered and did not know yet; not what came meanwhile, three calls of each.
      expect(chargedCount).toBeGreaterThanOrEqual(okCount);
      const unansweredCount = (after.byOutcome["DEADLINE_EXCEEDED"] ?? 0) + givenUpBefore;
      expect(chargedCount - okCount).toBeLessThanOrEqual(2 * callersCount + unansweredCount);
      // A stall that is over is no overload.
      expect(headgate.process.output).not.toContain('"event":"overloadBegan","cause":"loopDelay"');
      expect(headgate.process.output).toContain('"event":"loopStalled"');
      await waitFor("it is not overloaded", async () => {
        return (await headgate.metric("headgate_overloaded")) === 0;
      });
      expect(await headgate.metric("headgate_requests_in_flight")).toBe(0);
      await expectUnharmed(headgate);
    },
  );
});

async function startWith(storeKind: "redis" | "memory") {
  const { port } = await startRedis(stage);
  const storeEnv = storeKind === "redis" ? redisEnv(port) : {};
  const env = { ...storeEnv, HEADGATE_LOOP_DELAY_MS_MAX: "100" };
  const headgate = await HeadgateProcess.start(stage, { policy: oneLimit, env });
  return { headgate, client: startClient(stage, headgate) };
}

describe("a Headgate at the bounds that users have", () => {
  it("decides by Redis, with time to spare", async () => {
    const { port } = await startRedis(stage);
    const usual = { HEADGATE_STORE_BUDGET_MS: "10", HEADGATE_LOOP_DELAY_MS_MAX: "100" };
    const env = { ...redisEnv(port), ...usual };
    const headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
    const client = startClient(stage, headgate);
    const callCount = 500;
    const timesMs: number[] = [];
    for (let call = 0; call < callCount; call += 1) {
      const startMs = performance.now();
      const answer = await client.ask({ descriptors: [[`local=account-${call}`]] });
      timesMs.push(performance.now() - startMs);
      expect(outcomeOf(answer)).toBe("OK");
    }
    const [medianMs = 0] = timesMs.toSorted((a, b) => a - b).slice(callCount / 2);
    expect(medianMs).toBeLessThan(10);
    // However busy the machine is: most are not kept waiting.
    const fallbackCount = await headgate.metric("headgate_fallback_decisions_total");
    expect(fallbackCount).toBeLessThan(callCount / 4);
  });
});

describe("a flood of more requests than may be in work", () => {
  it("is answered by failure mode at once, in constant memory, and leaves nothing", async () => {
    const { headgate, proxy, clients } = await startSlowRedis();
    // The first flood makes the buffers that later ones use again.
    await sendFlood(clients);
    const residentBytes = await headgate.residentBytes();
    const before = await countsOf(headgate);
    const startMs = performance.now();
    const seen: Record<FailureModeName, Record<string, number>> = {
      local: {},
      allow: {},
      deny: {},
      error: {},
    };
    for (let flood = 0; flood < floodCount; flood += 1) {
      for (const [mode, outcome] of await sendFlood(clients)) {
        seen[mode][outcome] = (seen[mode][outcome] ?? 0) + 1;
      }
    }
    const elapsedMs = performance.now() - startMs;
    const after = await countsOf(headgate);
    const count = floodCount * floodCallsByMode;
    const overloaded = (mode: FailureModeName) => after.byMode[mode] - before.byMode[mode];
    expect(seen).toEqual({
      local: { OK: count },
      allow: { OK: count },
      deny: { OK: count - overloaded("deny"), OVER_LIMIT: overloaded("deny") },
      error: { OK: count - overloaded("error"), UNAVAILABLE: overloaded("error") },
    });
    const overloadedCount = failureModes.reduce((sum, mode) => sum + overloaded(mode), 0);
    const askedCount = after.asked - before.asked;
    expect(askedCount).toBe(4 * count - overloadedCount);
    // Each of those has waited for the slow network, and there were never more at a time.
    const asksMax = requestsInFlightMax * (elapsedMs / answerLatencyMs + 1);
    expect(askedCount).toBeLessThanOrEqual(asksMax);
    expect((await headgate.residentBytes()) - residentBytes).toBeLessThan(memoryGrowthBytesMax);

    proxy.setFault({ kind: "none" });
    await startModeTraffic(stage, headgate).expectFromNowOn(wellOutcomes);
    expect(await headgate.metric("headgate_overloaded")).toBe(0);
    expect(headgate.process.output).toContain('"event":"overloadBegan","cause":"inFlight"');
    await expectUnharmed(headgate);
  });
});

/** A Headgate with few requests in work at a time, and a Redis that is slow and never fails. */
async function startSlowRedis() {
  const redis = await startRedis(stage);
  const random = new FakeRandom(1);
  const proxy = await TcpFaultProxy.start(stage, { targetPort: redis.port, random });
  const env = {
    ...redisEnv(proxy.port),
    // However busy the machine is, it is not taken for a Redis that fails.
    HEADGATE_STORE_BUDGET_MS: "10000",
    ...timingsEnv({ redisSilenceMsMax: 30_000 }),
    HEADGATE_REQUESTS_IN_FLIGHT_MAX: String(requestsInFlightMax),
  };
  const headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
  const clients = Array.from({ length: 8 }, () => startClient(stage, headgate));
  const traffic = startModeTraffic(stage, headgate);
  await traffic.expectFromNowOn(wellOutcomes);
  await traffic.stop();
  proxy.setFault({ kind: "slow", latencyMs: answerLatencyMs, jitterMs: 0 });
  return { headgate, proxy, clients };
}

/** Asks for every mode at once, each call for an account of its own. */
function sendFlood(clients: readonly RlsClient[]) {
  const calls: Promise<readonly [FailureModeName, string]>[] = [];
  for (let i = 0; i < floodCallsByMode; i += 1) {
    for (const mode of failureModes) {
      accountsUsed += 1;
      const ask = { descriptors: [[`${mode}=flood-${accountsUsed}`]], timeoutMs: 60_000 };
      const client = clients[i % clients.length];
      if (client === undefined) throw new Error("no client");
      calls.push(client.ask(ask).then((answer) => [mode, outcomeOf(answer)]));
    }
  }
  return Promise.all(calls);
}

async function countsOf(headgate: HeadgateProcess) {
  const name = "headgate_fallback_decisions_total";
  const count = (mode: FailureModeName) => headgate.metric(name, { mode, error: "OVERLOADED" });
  const [local, allow, deny, error] = await Promise.all([
    count("local"),
    count("allow"),
    count("deny"),
    count("error"),
  ]);
  const asked = await headgate.metric("headgate_store_batch_requests_total");
  return { byMode: { local, allow, deny, error }, asked };
}
