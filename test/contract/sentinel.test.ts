import { describe, expect, it } from "vitest";
import { isServiceError } from "../../src/core/base/errors.js";
import { type Charge, unitsPerHit } from "../../src/core/limits/bucket.js";
import { openRedisSentinel } from "../../src/store/redis/cluster/sentinel.js";
import { openRedis, type RedisConnections } from "../../src/store/redis/connections.js";
import type { RedisEvent } from "../../src/store/redis/redis-connection.js";
import { RedisLimitStore } from "../../src/store/redis/redis-limit-store.js";
import { parseSentinelTarget, type SentinelTargetText } from "../../src/store/redis/target.js";
import { once, testCharge, testKey } from "../support/charges.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { startRedis } from "../support/redis.js";
import {
  RedisSentinel,
  RedisSentinels,
  type RedisSentinelsOptions,
  sentinelPrimaryName,
} from "../support/redis-sentinels.js";
import { loopbackTarget, soon } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

// Each has servers of its own, and waits for them more than it works: they run side by side.
const stage = useStage("file");

async function startGroup(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
  const group = await RedisSentinels.start(options);
  stage.atEnd(() => group.stop());
  return group;
}

interface Opened {
  readonly store: RedisLimitStore;
  readonly events: RedisEvent[];
}

function openOver(connections: RedisConnections, events: RedisEvent[]): Opened {
  const store = new RedisLimitStore({ connections });
  stage.atEnd(() => store.close());
  return { store, events };
}

function open(text: SentinelTargetText): Opened {
  const parsed = parseSentinelTarget(text);
  if (parsed.kind === "problem") throw new Error(parsed.message);
  const events: RedisEvent[] = [];
  const connections = openRedisSentinel({
    target: parsed.target,
    clock: realClock,
    random: realRandom,
    onEvent: (event) => events.push(event),
  });
  return openOver(connections, events);
}

/** A year for a million: nothing drains while the test looks. */
function slow(key: string): Charge {
  return testCharge({ key, hits: 1_000_000, periodUs: 31_536_000_000_000, burst: 1_000_000 });
}

/** "none" when the charge was decided, else why not. */
async function codeOf(store: RedisLimitStore, key = "any"): Promise<string> {
  return store.take([once(slow(key))], soon()).then(
    () => "none",
    (error: unknown) => (isServiceError(error) ? error.code : "not a ServiceError"),
  );
}

async function levelOf(store: RedisLimitStore, key: string): Promise<number> {
  const peeked = await store.peek(testKey(key), soon());
  return Math.ceil((peeked?.bucket.level ?? 0) / unitsPerHit);
}

const failoverMsMax = 30_000;

describe.concurrent("openRedisSentinel()", () => {
  it("decides on the primary, and on the next one after a crash, without a restart", async () => {
    const group = await startGroup();
    const { store } = open({ url: group.url });
    await store.verify(soon());
    await store.take([once(slow("before"))], soon());
    const first = await group.primary();
    expect(await first.client().exists("headgate:before")).toBe(1);
    // What is lost at a failover is another test's business.
    await first.client().wait(2, 5_000);
    await first.kill();
    await waitFor("it is well again", async () => (await codeOf(store)) === "none", {
      withinMs: failoverMsMax,
    });
    const second = await group.primary();
    expect(second.port).not.toBe(first.port);
    expect(await second.client().exists("headgate:any")).toBe(1);
    expect(await levelOf(store, "before")).toBe(1);
    // For a while it takes itself for a primary; nobody sends us there.
    await first.restart();
    expect(await codeOf(store, "after")).toBe("none");
    expect(await second.client().exists("headgate:after")).toBe(1);
  });

  it("leaves a primary that hung, was replaced and is back, as soon as it is told", async () => {
    const group = await startGroup();
    const { store } = open({ url: group.url });
    await store.verify(soon());
    const first = await group.primary();
    first.pause();
    await waitFor("another one is primary", async () => (await group.primary()) !== first, {
      withinMs: failoverMsMax,
    });
    first.resume();
    const second = await group.primary();
    const control = second.client();
    await waitFor("decisions go there", async () => {
      return (await codeOf(store)) === "none" && (await control.exists("headgate:any")) === 1;
    });
    expect(await codeOf(store, "later")).toBe("none");
    expect(await control.exists("headgate:later")).toBe(1);
  });

  it("moves although the old primary is well, when the sentinels name another one", async () => {
    const group = await startGroup();
    const { store, events } = open({ url: group.url });
    await store.verify(soon());
    const first = await group.primary();
    await group.sentinels[0]?.failover();
    await waitFor("another one is primary", async () => (await group.primary()) !== first, {
      withinMs: failoverMsMax,
    });
    const second = await group.primary();
    const control = second.client();
    await waitFor("decisions go there", async () => {
      return (await codeOf(store)) === "none" && (await control.exists("headgate:any")) === 1;
    });
    expect(events.some(({ kind }) => kind === "redisLost")).toBe(true);
  });

  it("leaves a primary that is well and knows of nothing, when it is told of another", async () => {
    const group = await startGroup();
    const { store } = open({ url: group.url });
    await store.verify(soon());
    const other = await startRedis(stage);
    for (const sentinel of group.sentinels) {
      await sentinel.forget();
      await sentinel.monitor(sentinelPrimaryName, other.port);
    }
    const control = other.client();
    await waitFor("decisions go there", async () => {
      return (await codeOf(store)) === "none" && (await control.exists("headgate:any")) === 1;
    });
  });

  it("does not use what the sentinels name when that calls itself a replica", async () => {
    const server = await startRedis(stage);
    const control = server.client();
    await control.config("SET", "replica-read-only", "no");
    await control.replicaof("127.0.0.1", "1");
    const sentinel = await RedisSentinel.start(server.port, {});
    stage.atEnd(() => sentinel.stop());
    const { store, events } = open({ url: `${sentinelPrimaryName},127.0.0.1:${sentinel.port}` });
    await waitFor("it is left", () =>
      events.some((event) => event.kind === "redisFailed" && event.code === "STORE_READ_ONLY"),
    );
    expect(await codeOf(store)).toMatch(/STORE_UNAVAILABLE|STORE_READ_ONLY/);
    expect(await control.dbsize()).toBe(0);
  });

  it("needs one sentinel of several, and none that answers late", async () => {
    const group = await startGroup();
    group.sentinels[0]?.pause();
    await group.sentinels[1]?.stop();
    const { store } = open({ url: group.url });
    await store.verify(soon());
    expect(await codeOf(store)).toBe("none");
    group.sentinels[0]?.resume();
  });

  it("has a password for the sentinels and another one for the servers", async () => {
    const secrets = { password: "hunter-1", sentinelPassword: "hunter-2" };
    const group = await startGroup(secrets);
    const { url } = group;
    const { store } = open({ url, auth: "hunter-1", sentinelAuth: "hunter-2" });
    await store.verify(soon());
    const strangers = [
      open({ url, auth: "hunter-1", sentinelAuth: "hunter-0" }),
      open({ url, auth: "hunter-1" }),
      open({ url, auth: "hunter-0", sentinelAuth: "hunter-2" }),
    ];
    const errors = await Promise.all(
      strangers.map((one) => one.store.verify(soon()).catch(reported)),
    );
    expect(errors).toEqual([
      expect.stringMatching(/^STORE_UNAUTHENTICATED.*REDIS_SENTINEL_AUTH/),
      expect.stringMatching(/^STORE_UNAUTHENTICATED.*REDIS_SENTINEL_AUTH/),
      expect.stringMatching(/^STORE_UNAUTHENTICATED (?!.*SENTINEL)/),
    ]);
    const said = JSON.stringify([errors, strangers.map((one) => one.events)]);
    expect(said).not.toContain("hunter");
  });

  it("fails calls, and says why, where no sentinel knows the name, until one does", async () => {
    const group = await startGroup();
    const { store, events } = open({ url: group.url.replace("gate-1", "gate-2") });
    await waitFor("it tells", () =>
      events.some((event) => event.kind === "redisFailed" && event.role === "decision"),
    );
    expect(JSON.stringify(events)).toContain("know no primary of this name");
    expect(await codeOf(store)).toBe("STORE_UNAVAILABLE");
    const { port } = await group.primary();
    for (const sentinel of group.sentinels) await sentinel.monitor("gate-2.limits", port);
    await waitFor("it is well", async () => (await codeOf(store)) === "none");
  });
});

describe.concurrent("openRedis()", () => {
  it("does not use a replica where only a primary will do, though it takes writes", async () => {
    const server = await startRedis(stage);
    const control = server.client();
    await control.config("SET", "replica-read-only", "no");
    await control.replicaof("127.0.0.1", "1");
    const events: RedisEvent[] = [];
    const connections = openRedis({
      target: loopbackTarget(server.port),
      isPrimaryOnly: true,
      clock: realClock,
      random: realRandom,
      onEvent: (event) => events.push(event),
    });
    const { store } = openOver(connections, events);
    await waitFor("it is left twice", () => {
      return (
        events.filter((event) => event.kind === "redisFailed" && event.code === "STORE_READ_ONLY")
          .length >= 6
      );
    });
    expect(await codeOf(store)).toBe("STORE_UNAVAILABLE");
    expect(events.some(({ kind }) => kind === "redisConnected")).toBe(false);
    await control.replicaof("NO", "ONE");
    await waitFor("it is used", async () => (await codeOf(store)) === "none");
    expect(await control.dbsize()).toBe(1);
  });

  it("takes a server for a primary where its user may not ask", async () => {
    const server = await startRedis(stage);
    await server.client().call("acl", "setuser", "default", "-role");
    const connections = openRedis({
      target: loopbackTarget(server.port),
      isPrimaryOnly: true,
      clock: realClock,
      random: realRandom,
      onEvent: () => {},
    });
    const { store } = openOver(connections, []);
    await store.verify(soon());
    expect(await codeOf(store)).toBe("none");
  });
});

function reported(error: unknown): string {
  return isServiceError(error) ? `${error.code} ${error.message}` : String(error);
}
