import { describe, expect, it } from "vitest";
import { expectUnharmed } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf, RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { trueTimes } from "../support/true-times.js";

const stage = useStage("test");

const descriptorCount = 12;

/** A megabyte of these values has 18,000 requests of 12: what is kept of each must have a bound. */
const valueLength = 58;

/** Requests in all, at least; `npm run soak` sends them for ten minutes. */
const requestCount = 15_000;
const sentMsMin = trueTimes ? 600_000 : 0;

const policy = edgePolicy(
  Array.from({ length: descriptorCount }, (_, i) => {
    return `\n  - key: k${i}\n    rate_limit: {unit: hour, requests_per_unit: 5}`;
  }).join(""),
);

describe("requests that are all different, at a heap of 96 MB", () => {
  it.each([
    { transport: "native", store: "memory" },
    { transport: "native", store: "redis" },
    { transport: "grpc-js", store: "memory" },
    { transport: "grpc-js", store: "redis" },
  ] as const)(
    "are all answered, and the process lives ($transport, $store)",
    { timeout: 120_000 + sentMsMin },
    async ({ transport, store }) => {
      const redis = store === "redis" ? await startRedis(stage) : undefined;
      const headgate = await HeadgateProcess.start(stage, {
        policy,
        env: {
          ...(redis === undefined ? {} : redisEnv(redis.port)),
          HEADGATE_TRANSPORT: transport,
          HEADGATE_NEW_KEYS_PER_SECOND_MAX: "1000000",
          NODE_OPTIONS: "--max-old-space-size=96",
        },
      });
      const client = new RlsClient(headgate.grpcPort);
      stage.atEnd(() => client.close());
      const outcomes = new Map<string, number>();
      const endMs = performance.now() + sentMsMin;
      let sent = 0;
      const caller = async (): Promise<void> => {
        while (sent < requestCount || performance.now() < endMs) {
          sent += 1;
          const value = String(sent).padStart(valueLength, "v");
          const descriptors = Array.from({ length: descriptorCount }, (_, i) => [`k${i}=${value}`]);
          const outcome = outcomeOf(await client.ask({ descriptors, timeoutMs: 30_000 }));
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: 32 }, caller));
      expect([...outcomes]).toEqual([["OK", sent]]);
      await expectUnharmed(headgate);
    },
  );
});
