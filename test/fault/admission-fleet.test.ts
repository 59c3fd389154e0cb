import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { type ExchangeClient, openExchange, requestHeaders } from "../support/ext-proc.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { RedisServer } from "../support/redis-server.js";
import { type Stage, useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const maxInFlight = 12;
/** How long a dead holder keeps its share. */
const leaseMs = 3_000;

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
  const env = { REDIS_TYPE: "single", REDIS_URL: `redis://127.0.0.1:${redis.port}` };
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
    const redis = await RedisServer.start({ engine: "redis" });
    stage.atEnd(() => redis.stop());
    const replicas = [
      await startReplica(stage, redis),
      await startReplica(stage, redis),
      await startReplica(stage, redis),
    ] as const;
    const [killed, ...others] = replicas;
    const openOf = (some: readonly Replica[]): number =>
      some.reduce((sum, { open }) => sum + open.length, 0);
    await waitFor("all is in use", async () => {
      for (const replica of replicas) await ask(replica);
      expect(openOf(replicas)).toBeLessThanOrEqual(maxInFlight);
      return openOf(replicas) === maxInFlight && killed.open.length > 0;
    });
    const heldByKilled = killed.open.length;
    killed.headgate.process.signal("SIGKILL");
    await killed.headgate.process.exited;
    const killedMs = performance.now();
    // What it let in may still be at the service: until its lease ends nobody else has its share.
    let firstMs: number | undefined;
    await waitFor(
      "the others have its share",
      async () => {
        for (const replica of others) await ask(replica);
        const extraCount = openOf(others) - (maxInFlight - heldByKilled);
        if (extraCount > 0) firstMs ??= performance.now();
        expect(openOf(others)).toBeLessThanOrEqual(maxInFlight);
        return extraCount === heldByKilled;
      },
      { withinMs: 20_000, everyMs: 50 },
    );
    // Its last heartbeat was at most a quarter of a second before its end, and leases begin there.
    expect((firstMs ?? 0) - killedMs).toBeGreaterThan(leaseMs - 500);
    for (const { open } of others) for (const exchange of open) exchange.end();
  }, 90_000);
});
