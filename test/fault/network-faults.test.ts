import { beforeAll, describe, expect, it } from "vitest";
import { answerMsMax, hangMs } from "../support/failure-modes.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  expectUnharmed,
  type FaultRig,
  faultOutcomes,
  startFaultRig,
  startModeTraffic,
  wellOutcomes,
} from "../support/fault-rig.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf } from "../support/rls-client.js";
import { firstSeed, seedsFirstName } from "../support/seeds.js";
import { useStage } from "../support/stage.js";
import { type NetworkFault, TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";
import { timed, type WithheldTime, withheldTime } from "../support/withheld-time.js";

const seed = firstSeed(Date.now() % 1_000_000);

const stage = useStage("file");
let proxy: TcpFaultProxy;
let rig: FaultRig;
let withheldMs: WithheldTime;

// One Headgate reaches its Redis through a network that each test breaks, and heals again.
beforeAll(async () => {
  const redis = await startRedis(stage);
  const random = new FakeRandom(seed);
  proxy = await TcpFaultProxy.start(stage, { targetPort: redis.port, random });
  rig = await startFaultRig(stage, redisEnv(proxy.port));
  withheldMs = withheldTime(stage, rig.headgate.process.pid);
});

/** Faults that no call to Redis survives; the store's budget is half a second here. */
const faults: readonly (readonly [string, NetworkFault])[] = [
  ["delays every answer by 600 ms or more", { kind: "slow", latencyMs: 600, jitterMs: 100 }],
  ["delays every answer by 850 ms", { kind: "slow", latencyMs: 850, jitterMs: 0 }],
  ["carries nothing and resets nothing", { kind: "partition" }],
  ["resets every connection", { kind: "reset" }],
];

describe(`a network to Redis (${seedsFirstName}=${seed}) that`, () => {
  it.each(faults)("%s: failure modes answer in time, then Redis again", async (_, fault) => {
    const { headgate, traffic } = rig;
    proxy.setFault(fault);
    try {
      await traffic.expectNothingBut(faultOutcomes);
      expect(await headgate.metric("headgate_store_circuit_open")).toBe(1);
    } finally {
      proxy.setFault({ kind: "none" });
    }
    await traffic.expectFromNowOn(wellOutcomes);
    expect(await headgate.metric("headgate_store_circuit_open")).toBe(0);
    await expectUnharmed(headgate);
  });

  it("stalls now and then: only stalled calls fall back, no circuit opens", async () => {
    const { headgate, client, traffic } = rig;
    await traffic.stop();
    const before = await failuresOf(rig);
    proxy.setFault({ kind: "stalls", stallMs: 700, stallRatio: 0.01 });
    let asked = 0;
    const call = async (): Promise<string> => {
      asked += 1;
      // A key of its own: one that is over would be refused from memory, and meet no stall.
      return outcomeOf(await client.ask({ descriptors: [[`deny=stalled-${asked}`]] }));
    };
    const jittery = Traffic.start(stage, { callersCount: 2, call, withheldMs });
    await waitFor(
      "some calls met a stall",
      async () => (await failuresOf(rig)).ofStore >= before.ofStore + 3,
      { withinMs: 60_000 },
    );
    const { slowestMs } = await jittery.stop();
    proxy.setFault({ kind: "none" });
    expect(slowestMs).toBeLessThan(hangMs);
    expect((await failuresOf(rig)).byOpenCircuit).toBe(before.byOpenCircuit);
    expect(await headgate.metric("headgate_store_circuit_open")).toBe(0);
  });

  it("forgets idle connections: first calls pay the budget, later ones reach Redis", async () => {
    const { headgate, client } = rig;
    proxy.dropLinksSilently();
    const ask = () => client.ask({ descriptors: [["error=one-account"]] });
    const { result: first, ownMs } = await timed(withheldMs, ask);
    expect(outcomeOf(first)).toBe("UNAVAILABLE");
    expect(ownMs).toBeLessThan(answerMsMax);
    await startModeTraffic(stage, headgate, client).expectFromNowOn(wellOutcomes);
    await expectUnharmed(headgate);
  });
});

async function failuresOf({ headgate }: FaultRig) {
  const name = "headgate_fallback_decisions_total";
  return {
    ofStore: await headgate.metric("headgate_store_failures_total"),
    byOpenCircuit: await headgate.metric(name, { error: "STORE_CIRCUIT_OPEN" }),
  };
}
