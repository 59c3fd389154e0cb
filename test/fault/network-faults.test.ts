import { describe, expect, it } from "vitest";
import { answerMsMax, hangMs } from "../support/failure-modes.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  expectUnharmed,
  faultOutcomes,
  startFaultRig,
  startModeTraffic,
  wellOutcomes,
} from "../support/fault-rig.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { type NetworkFault, TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 1_000_000);

const stage = useStage("test");

/** A Headgate that reaches its Redis through a network the test breaks. */
async function start() {
  const redis = await startRedis(stage);
  const random = new FakeRandom(seed);
  const proxy = await TcpFaultProxy.start(stage, { targetPort: redis.port, random });
  return { proxy, ...(await startFaultRig(stage, redisEnv(proxy.port))) };
}

/** Faults that no call to Redis survives; the store's budget is 250 ms here. */
const faults: readonly (readonly [string, NetworkFault])[] = [
  ["delays every answer by 400 ms", { kind: "slow", latencyMs: 400, jitterMs: 100 }],
  ["delays every answer by 800 ms", { kind: "slow", latencyMs: 800, jitterMs: 0 }],
  ["carries nothing and resets nothing", { kind: "partition" }],
  ["resets every connection", { kind: "reset" }],
];

describe(`a network to Redis (TEST_SEED=${seed}) that`, () => {
  it.each(faults)("%s: failure modes answer in time, then Redis again", async (_, fault) => {
    const { proxy, headgate, traffic } = await start();
    proxy.setFault(fault);
    await traffic.expectNothingBut(faultOutcomes);
    expect(await headgate.metric("headgate_store_circuit_open")).toBe(1);
    proxy.setFault({ kind: "none" });
    await traffic.expectFromNowOn(wellOutcomes);
    expect(await headgate.metric("headgate_store_circuit_open")).toBe(0);
    await expectUnharmed(headgate);
  });

  it("stalls now and then: only stalled calls fall back, no circuit opens", async () => {
    const { proxy, headgate, traffic, client } = await start();
    await traffic.stop();
    proxy.setFault({ kind: "stalls", stallMs: 400, stallRatio: 0.01 });
    let asked = 0;
    const call = async (): Promise<string> => {
      asked += 1;
      // A key of its own: one that is over would be refused from memory, and meet no stall.
      return outcomeOf(await client.ask({ descriptors: [[`deny=account-${asked}`]] }));
    };
    const jittery = Traffic.start(stage, { callersCount: 2, call });
    await waitFor("some calls met a stall", async () => (await storeFailures(headgate)) >= 3, {
      withinMs: 30_000,
    });
    const { slowestMs } = await jittery.stop();
    expect(slowestMs).toBeLessThan(hangMs);
    const error = "STORE_CIRCUIT_OPEN";
    expect(await headgate.metric("headgate_fallback_decisions_total", { error })).toBe(0);
    expect(await headgate.metric("headgate_store_circuit_open")).toBe(0);
  });

  it("forgets idle connections: first calls pay the budget, later ones reach Redis", async () => {
    const { proxy, headgate, traffic, client } = await start();
    await traffic.stop();
    proxy.dropLinksSilently();
    const first = await client.ask({ descriptors: [["error=one-account"]] });
    expect(outcomeOf(first)).toBe("UNAVAILABLE");
    expect(first.elapsedMs).toBeLessThan(answerMsMax);
    await startModeTraffic(stage, client).expectFromNowOn(wellOutcomes);
    await expectUnharmed(headgate);
  });
});

async function storeFailures(headgate: HeadgateProcess): Promise<number> {
  return headgate.metric("headgate_store_failures_total");
}
