import { describe, expect, it } from "vitest";
import { expectUnharmed } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { FrameClient } from "../support/http2-frames.js";
import { rawField } from "../support/raw-field.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { rlsPath } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const descriptorCount = 12;

/** A megabyte of these values has 18,000 requests of 12: what is kept of each must have a bound. */
const valueLength = 58;

/** Requests in all, at least; `npm run soak` sends them for ten minutes. */
const requestCount = 15_000;
const sentMsMin = trueTimes ? 600_000 : 0;

/** Requests in flight at a time. */
const batchCount = 300;

const policy = edgePolicy(
  Array.from({ length: descriptorCount }, (_, i) => {
    return `\n  - key: k${i}\n    rate_limit: {unit: hour, requests_per_unit: 5}`;
  }).join(""),
);

/** A RateLimitRequest that is like no other, encoded by hand: that takes the client less time. */
function distinctRequest(number: number): Buffer {
  const value = Buffer.from(String(number).padStart(valueLength, "v"));
  const descriptors = Array.from({ length: descriptorCount }, (_, i) => {
    const entry = [rawField(0x0a, Buffer.from(`k${i}`)), rawField(0x12, value)];
    return rawField(0x12, rawField(0x0a, Buffer.concat(entry)));
  });
  return Buffer.concat([rawField(0x0a, Buffer.from("edge")), ...descriptors]);
}

describe("requests that are all different, at a heap of 96 MB", () => {
  it.each([{ store: "memory" }, { store: "redis" }] as const)(
    "are all answered, and the process lives ($store)",
    { timeout: 120_000 + sentMsMin },
    async ({ store }) => {
      const redis = store === "redis" ? await startRedis(stage) : undefined;
      const headgate = await HeadgateProcess.start(stage, {
        policy,
        env: {
          ...(redis === undefined ? {} : redisEnv(redis.port)),
          HEADGATE_NEW_KEYS_PER_SECOND_MAX: "1000000",
          NODE_OPTIONS: "--max-old-space-size=96",
        },
      });
      const client = await FrameClient.open(headgate.grpcPort);
      stage.atEnd(() => client.close());
      const endMs = performance.now() + sentMsMin;
      let sent = 0;
      while (sent < requestCount || performance.now() < endMs) {
        const first = sent;
        client.sendCalls(
          rlsPath,
          Array.from({ length: batchCount }, (_, i) => distinctRequest(first + i)),
        );
        sent += batchCount;
        await waitFor("all are answered", () => client.counts.ended === sent, {
          withinMs: 30_000,
          everyMs: 1,
        });
      }
      const { ended, reset, goaways } = client.counts;
      expect({ ended, reset, goaways }).toEqual({ ended: sent, reset: 0, goaways: 0 });
      expect(await headgate.metric("headgate_requests_total", { code: "ok" })).toBe(sent);
      expect(await headgate.metric("headgate_requests_total")).toBe(sent);
      await expectUnharmed(headgate);
    },
  );
});
