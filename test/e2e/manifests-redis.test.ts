import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { redisUserCommand } from "../../src/generate/kubernetes/kubernetes.js";
import { policyNeeds } from "../../src/generate/kubernetes/policy-needs.js";
import { adminClients } from "../support/admin.js";
import { markedBlock, signalKeyRights } from "../support/docs.js";
import { openExchange, requestHeaders } from "../support/ext-proc.js";
import { freePort } from "../support/free-port.js";
import { policyOf } from "../support/generated.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { startRedis, userPassword, withPassword } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/**
 * Everything that replicas keep in Redis: limits, permits, one loop for a fleet, a reading, a
 * waiting room.
 */
const policyText = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: rights}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limits:
            - {unit: minute, requests_per_unit: 5}
            - {unit: day, requests_per_unit: 100, algorithm: fixed_window}
  services:
    - name: orders
      admission: {maxInFlight: 100}
      concurrency:
        law: gradient
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
    - name: indexer
      concurrency:
        law: signal
        limits: {min: 10, max: 1000}
        signal: {redis: "lag:in?dexer", target: 10, critical: 100, every: 1s}
    - name: mailer
      concurrency:
        law: signal
        limits: {min: 10, max: 1000}
        signal: {redis: "lag list", target: 10, critical: 100, every: 1s}
    - name: linearizer
      concurrency:
        law: signal
        limits: {min: 10, max: 1000}
        signal: {redis: "lag-hash", target: 10, critical: 100, every: 1s}
        per: {header: x-database, names: [orders]}
  waitingRooms:
    - {name: lobby, service: orders, capacity: {activeUsers: 1}, queueAll: true}
`;

/** A text, a list and a hash; the first would mean more keys if it were a pattern. */
const readings = ["lag:in?dexer", "lag list", "lag-hash"];

/** What the user may do and this test does not make it do, and what for. */
const unseen = [
  // A connection that was idle is asked whether it still lives.
  "ping",
  // Which of ten thousand records that were taken away was so first.
  "zrange",
  // Parts of a line, after millions of visitors.
  "unlink",
];

/** What the test itself sends, and every login. */
const ofTheTest = ["acl|log", "acl|setuser", "auth", "config|resetstat", "hello", "info"];

/** An operator freezes a key, thinks better of it, and looks at what was done. */
async function overrideOnce(adminPort: number): Promise<void> {
  const { limits, fleet } = adminClients(adminPort);
  const { override } = await limits.setOverride({
    override: {
      domain: "shop",
      entries: [{ key: "user", value: "other" }],
      effect: { case: "isFrozen", value: true },
      reason: "a test",
    },
  });
  const { id = "", version: expectedVersion = 0n } = override ?? {};
  await limits.deleteOverride({ id, domain: "shop", expectedVersion, reason: "a test" });
  expect((await fleet.listAudit({})).entries).toHaveLength(2);
}

/** A visitor comes to the waiting room, and asks once more. */
async function waitInRoom({ grpcPort }: HostedHeadgate): Promise<void> {
  const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  stage.atEnd(() => client.close());
  const visit = async (cookie: string): Promise<string> => {
    const exchange = openExchange({ client }, { "x-headgate-service": "orders" });
    const browser = { ":path": "/", ":method": "GET", accept: "text/html" };
    exchange.send(requestHeaders({ ...browser, cookie }));
    const [answer] = await exchange.answered(1);
    exchange.end();
    // On a slow machine it is let in meanwhile.
    if (answer?.response.case !== "immediateResponse") return "";
    const set = answer.response.value.headers?.setHeaders ?? [];
    const found = set.find(({ header }) => header?.key === "set-cookie")?.header?.rawValue;
    return Buffer.from(found ?? []).toString();
  };
  const [ticket = ""] = await waitFor("a visitor gets a ticket", async () => {
    const cookie = await visit("");
    return cookie === "" ? undefined : cookie.split(";");
  });
  await visit(ticket);
}

describe("the user of Redis in redis-user.txt", () => {
  it("has the rights that replicas use, and no others", async () => {
    const server = await startRedis(stage, { engine: "redis" });
    const control = server.client();
    const policy = policyOf([{ file: "policy.yaml", text: policyText }]);
    const { signalKeys } = policyNeeds(policy);
    expect(signalKeys).toEqual(readings);
    const [acl, ...words] = withPassword(redisUserCommand("headgate", signalKeys));
    await control.call(acl, ...words);
    await control.set("lag:in?dexer", "7");
    await control.rpush("lag list", "a");
    await control.hset("lag-hash", { orders: "1" });
    await control.call("config", "resetstat");
    const env = {
      REDIS_URL: `127.0.0.1:${server.port}`,
      REDIS_AUTH: `headgate:${userPassword}`,
      HEADGATE_DRAIN_DELAY_MS: "0",
    };
    const adminPort = await freePort();
    const HEADGATE_ADMIN_ADDR = `127.0.0.1:${adminPort}`;
    const open = { ...env, HEADGATE_ADMIN_ADDR, HEADGATE_ADMIN_OPEN: "true" };
    const replicas = await Promise.all([
      HostedHeadgate.start(stage, { policy: policyText, env: open }),
      HostedHeadgate.start(stage, { policy: policyText, env }),
    ]);
    await overrideOnce(adminPort);
    for (const replica of replicas) {
      const entries = [{ key: "user", value: "me" }];
      const answer = await replica.postJson({ domain: "shop", descriptors: [{ entries }] });
      expect(answer.status).toBe(200);
    }
    await waitFor("both are in one fleet", async () => {
      const seen = await Promise.all(replicas.map((one) => one.metric("headgate_live_replicas")));
      return seen.every((count) => count === 2);
    });
    for (const replica of replicas) await waitInRoom(replica);
    await waitFor("readings of each kind are there", async () => {
      const commands = await used(control);
      return ["get", "llen", "hlen"].every((name) => commands.has(name));
    });
    for (const replica of replicas) await replica.terminate();
    expect(await control.call("acl", "log")).toEqual([]);
    expect(await control.info("commandstats")).not.toMatch(/rejected_calls=[1-9]/);
    const commands = [...(await used(control))].filter((name) => !ofTheTest.includes(name));
    const granted = words.filter((word) => word.startsWith("+")).map((word) => word.slice(1));
    expect([...commands, ...unseen].sort()).toEqual([...granted].sort());
    for (const key of ["lag:inXdexer", "other"]) {
      expect(await control.call("acl", "dryrun", "headgate", "get", key)).not.toBe("OK");
    }
  });

  it("is the documented one, by another name", () => {
    const command = markedBlock("acl");
    expect(redisUserCommand("gate", [])).toBe(command);
    const more = signalKeyRights();
    const rights = (text: string) => text.split(" ").filter((word) => word.startsWith("+"));
    const all = new Set([...rights(command), ...rights(more)]);
    expect(new Set(rights(redisUserCommand("gate", ["lag"])))).toEqual(all);
  });
});

/** Commands that the server has run since its counts were reset. */
async function used(control: { info(part: string): Promise<string> }): Promise<Set<string>> {
  const info = await control.info("commandstats");
  return new Set([...info.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name = ""]) => name));
}
