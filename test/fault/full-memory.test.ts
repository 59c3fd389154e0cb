import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { FakeRandom } from "../support/fake-random.js";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { FrameClient } from "../support/http2-frames.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf, rlsPath } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { timingsEnv } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const descriptorCount = 12;

/** Fewer calls than may be in work, `HEADGATE_REQUESTS_IN_FLIGHT_MAX`; half of them fill a heap. */
const connectionCount = 8;
const callsPerConnection = 900;

const policy = edgePolicy(
  Array.from({ length: descriptorCount }, (_, i) => {
    return `\n  - key: k${i}\n    rate_limit: {unit: hour, requests_per_unit: 5}`;
  }).join(""),
);

/** A request of 3 KB that is like no other. */
function distinctRequest(number: number): Uint8Array {
  const value = String(number).padStart(240, "v");
  const descriptors = Array.from({ length: descriptorCount }, (_, i) => {
    return { entries: [{ key: `k${i}`, value }] };
  });
  return toBinary(
    RateLimitRequestSchema,
    create(RateLimitRequestSchema, { domain: "edge", descriptors }),
  );
}

/** A heap of 96 MB before a Redis that answers too late: calls stay in work, all they hold too. */
async function startBeforeSlowRedis() {
  const redis = await startRedis(stage);
  const random = new FakeRandom(1);
  const proxy = await TcpFaultProxy.start(stage, { targetPort: redis.port, random });
  const headgate = await HeadgateProcess.start(stage, {
    policy,
    env: {
      ...redisEnv(proxy.port),
      ...timingsEnv({ redisSilenceMsMax: 60_000 }),
      HEADGATE_STORE_BUDGET_MS: "10000",
      HEADGATE_NEW_KEYS_PER_SECOND_MAX: "1000000",
      NODE_OPTIONS: "--max-old-space-size=96",
    },
  });
  return { headgate, proxy };
}

describe("a process whose memory fills", () => {
  it("works on what its heap bears, and answers the other calls by failure mode", async () => {
    const { headgate, proxy } = await startBeforeSlowRedis();
    proxy.setFault({ kind: "slow", latencyMs: 30_000, jitterMs: 0 });
    const clients: FrameClient[] = [];
    for (let i = 0; i < connectionCount; i += 1) {
      const client = await FrameClient.open(headgate.grpcPort);
      stage.atEnd(() => client.close());
      clients.push(client);
    }
    for (const [i, client] of clients.entries()) {
      const first = i * callsPerConnection;
      const numbers = Array.from({ length: callsPerConnection }, (_, j) => first + j);
      client.sendCalls(rlsPath, numbers.map(distinctRequest));
    }
    const callCount = connectionCount * callsPerConnection;
    await waitFor(
      "all are answered",
      () => clients.reduce((sum, { counts }) => sum + counts.ended, 0) === callCount,
      { withinMs: 90_000 },
    );
    for (const { counts, isClosed } of clients) {
      const { ended, reset, goaways } = counts;
      expect({ ended, reset, goaways, isClosed }).toEqual({
        ended: callsPerConnection,
        reset: 0,
        goaways: 0,
        isClosed: false,
      });
    }
    expect(await headgate.metric("headgate_requests_total")).toBe(callCount);
    // Which of the two bounds comes first depends on how much is read in one turn.
    expect(headgate.process.output).toMatch(/"event":"overloadBegan","cause":"(inFlight|heap)"/);
    proxy.setFault({ kind: "none" });
    const client = startClient(stage, headgate);
    await waitFor("it decides again", async () => {
      return outcomeOf(await client.ask({ descriptors: [["k0=after"]] })) === "OK";
    });
    await expectUnharmed(headgate);
  }, 240_000);

  it("reads nothing any more when it is full, and answers by failure mode", async () => {
    const headgate = await HeadgateProcess.start(stage, {
      policy,
      env: { HEADGATE_MEMORY_BYTES_MAX: "1000000" },
    });
    const client = startClient(stage, headgate);
    const noMessage = Buffer.from([0xff]);
    expect(outcomeOf(await client.ask({ descriptors: [["k0=a"]] }))).toBe("OVER_LIMIT");
    expect(outcomeOf(await client.sendBytes(noMessage))).toBe("OVER_LIMIT");
    const { status, body } = await headgate.postJson("no message");
    expect({ status, body: JSON.parse(body) }).toEqual({
      status: 429,
      body: { overallCode: "OVER_LIMIT" },
    });
    const unread = { mode: "deny", error: "MEMORY_FULL" };
    expect(await headgate.metric("headgate_fallback_decisions_total", unread)).toBe(3);
    expect(await headgate.metric("headgate_requests_total", { code: "over_limit" })).toBe(3);
    const full = { cause: "resident_memory" };
    expect(await headgate.metric("headgate_overloaded", full)).toBe(1);
    await expectUnharmed(headgate);
  });
});
