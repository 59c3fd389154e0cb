import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { defaultTimings } from "../../src/app/options/test-timings.js";
import { type ExchangeClient, openExchange, requestHeaders } from "../support/ext-proc.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { type Stage, useStage } from "../support/stage.js";
import { timingsEnv, trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const maxInFlight = 12;

/** How long a dead holder keeps its share, and how often a live one says that it lives. */
const short = { permitLeaseMs: 1_500, permitHeartbeatMs: 125 };
const { permitLeaseMs: leaseMs } = trueTimes ? defaultTimings : short;

/** Where Redis has what each replica holds, and until when. */
const recordsKey = "headgate:{permits}:6:orders";

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: fleet}
spec:
  services:
    - name: orders
      admission: {maxInFlight: ${maxInFlight}, shedAt: off}
`;

interface Replica {
  readonly headgate: HeadgateProcess;
  readonly client: Client;
  /** Exchanges that were admitted and are open. */
  readonly open: ExchangeClient[];
}

async function startReplica(on: Stage, redis: RedisServer): Promise<Replica> {
  const env = { ...redisEnv(redis.port), ...timingsEnv(short) };
  const headgate = await HeadgateProcess.start(on, { policy, env });
  const client = new Client(`127.0.0.1:${headgate.grpcPort}`, credentials.createInsecure());
  on.atEnd(() => client.close());
  return { headgate, client, open: [] };
}

/** Asks for one more place. */
async function ask(replica: Replica): Promise<void> {
  const exchange = openExchange(replica, { "x-headgate-service": "orders" });
  exchange.send(requestHeaders());
  const [answer] = await exchange.answered(1);
  if (answer?.response.case === "requestHeaders") replica.open.push(exchange);
  else exchange.end();
}

describe("three replicas with one limit", () => {
  it("never admit more than it, and have a killed one's share back after its lease", async () => {
    const redis = await startRedis(stage);
    const records = redis.client();
    const killed = await startReplica(stage, redis);
    const [id = "", ...more] = await records.hkeys(recordsKey);
    expect({ id, more }).toEqual({ id: expect.stringMatching(/./), more: [] });
    const others = await Promise.all([startReplica(stage, redis), startReplica(stage, redis)]);
    const replicas = [killed, ...others];
    const openOf = (some: readonly Replica[]): number =>
      some.reduce((sum, { open }) => sum + open.length, 0);
    await waitFor("all is in use", async () => {
      for (const replica of replicas) await ask(replica);
      expect(openOf(replicas)).toBeLessThanOrEqual(maxInFlight);
      return openOf(replicas) === maxInFlight && killed.open.length > 0;
    });
    const heldByKilled = killed.open.length;
    await killed.headgate.process.kill();
    const killedMs = Date.now();
    // Its lease began with its last heartbeat, by the clock that Redis and this process share.
    const untilMs = Number((await records.hget(recordsKey, id))?.split(" ").at(-1));
    expect(untilMs).toBeGreaterThan(killedMs);
    expect(untilMs).toBeLessThanOrEqual(killedMs + leaseMs);
    // What it let in may still be at the service: until its lease ends nobody else has its share.
    let firstMs = 0;
    await waitFor(
      "the others have its share",
      async () => {
        for (const replica of others) await ask(replica);
        const extraCount = openOf(others) - (maxInFlight - heldByKilled);
        if (extraCount > 0 && firstMs === 0) firstMs = Date.now();
        expect(openOf(others)).toBeLessThanOrEqual(maxInFlight);
        return extraCount === heldByKilled;
      },
      { withinMs: 10 * leaseMs, everyMs: 50 },
    );
    expect(firstMs).toBeGreaterThanOrEqual(untilMs);
    for (const { open } of others) for (const exchange of open) exchange.end();
  });
});
