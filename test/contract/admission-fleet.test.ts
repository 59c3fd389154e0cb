import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { startTestApp } from "../support/app.js";
import { type ExchangeClient, openExchange, requestHeaders } from "../support/ext-proc.js";
import { startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const maxInFlight = 12;

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: orders
      admission: {maxInFlight: ${maxInFlight}, shedAt: {low: 1, normal: 1, high: 1}}
`;

interface Replica {
  readonly client: Client;
  /** Exchanges that were admitted and are open. */
  readonly open: ExchangeClient[];
}

async function startReplica(redis: RedisServer): Promise<Replica> {
  const REDIS_URL = `redis://127.0.0.1:${redis.port}`;
  const { grpcPort } = await startTestApp(stage, policyText, { REDIS_URL });
  const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  stage.atEnd(() => client.close());
  return { client, open: [] };
}

/** Asks for one more place. */
async function ask(replica: Replica): Promise<boolean> {
  const exchange = openExchange(replica, { "x-headgate-service": "orders" });
  exchange.send(requestHeaders());
  const [answer] = await exchange.answered(1);
  const isAdmitted = answer?.response.case === "requestHeaders";
  if (isAdmitted) replica.open.push(exchange);
  else exchange.end();
  return isAdmitted;
}

describe("a fleet of three", () => {
  it("admits no more than the limit together, by need, and gives back who leaves", async () => {
    const redis = await startRedis(stage);
    const replicas = await Promise.all([1, 2, 3].map(() => startReplica(redis)));
    const openCount = (): number => replicas.reduce((sum, { open }) => sum + open.length, 0);
    const [first, second, last] = replicas;
    if (first === undefined || second === undefined || last === undefined) throw new Error("three");
    await waitFor("one replica has what the others do not need", async () => {
      await ask(first);
      expect(openCount()).toBeLessThanOrEqual(maxInFlight);
      return first.open.length >= maxInFlight - 2;
    });
    await waitFor("all is in use", async () => {
      for (const replica of replicas) await ask(replica);
      expect(openCount()).toBeLessThanOrEqual(maxInFlight);
      return openCount() === maxInFlight;
    });
    for (const exchange of first.open.splice(0)) exchange.end();
    await waitFor("the others have what it gave back", async () => {
      await ask(second);
      await ask(last);
      expect(openCount()).toBeLessThanOrEqual(maxInFlight);
      return second.open.length + last.open.length >= maxInFlight - 1;
    });
    // Or the replicas would wait for them when they stop.
    for (const { open } of replicas) for (const exchange of open) exchange.end();
  });
});
