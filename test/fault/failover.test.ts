import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerMsMax, hangMs, recoveryMsMax } from "../support/failure-modes.js";
import { FakeRandom } from "../support/fake-random.js";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { outcomeOf, type RlsAnswer, type RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";
import { timed, type WithheldTime, withheldTime } from "../support/withheld-time.js";

/** So slow that hardly anything drains during a test. */
const limit = { perHour: 100, burst: 100 };

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: ${limit.perHour}}
    on_store_failure: error`);

const stage = useStage("file");
const random = new FakeRandom(1);

/** One Headgate sees all failovers, behind an address that leads to a new pair for each test. */
let address: TcpFaultProxy;
let headgate: HostedHeadgate;
let client: RlsClient;
let withheldMs: WithheldTime;

let primary: RedisServer;
let replica: RedisServer;
let replication: TcpFaultProxy;

beforeAll(async () => {
  const { port } = await startRedis(stage);
  address = await TcpFaultProxy.start(stage, { targetPort: port, random });
  const env = redisEnv(address.port);
  headgate = await HostedHeadgate.start(stage, { policy, env });
  client = startClient(stage, headgate);
  withheldMs = withheldTime(stage, headgate.pid);
});

beforeEach(async () => {
  ({ primary, replica, replication } = await startPair());
  address.retarget(primary.port);
  address.setFault({ kind: "reset" });
  address.setFault({ kind: "none" });
  await waitFor("the pair is used", async () => outcomeOf(await ask("before")) === "OK");
});

/** Asks once for an account of the test's own. */
function ask(account: string): Promise<RlsAnswer> {
  return client.ask({ descriptors: [[`account=${account}`]] });
}

/** Callers of an account. */
function startLoad(account: string, callersCount: number): Traffic {
  const call = async (): Promise<string> => outcomeOf(await ask(account));
  const load = Traffic.start(stage, { callersCount, call, withheldMs });
  load.pauseBetweenCalls(5);
  return load;
}

/** The most that one key may be admitted over so long a time. */
function promisedHits(elapsedMs: number): number {
  return limit.burst + Math.floor((limit.perHour * elapsedMs) / 3_600_000);
}

/** A primary and its replica, whose link a test can cut. */
async function startPair() {
  const primary = await startRedis(stage);
  const replication = await TcpFaultProxy.start(stage, { targetPort: primary.port, random });
  const follow = ["--replicaof", "127.0.0.1", String(replication.port)];
  const replica = await startRedis(stage, { args: follow });
  await waitFor("the replica follows", () => isFollowing(replica));
  return { primary, replica, replication };
}

async function isFollowing(replica: RedisServer): Promise<boolean> {
  return (await replica.client().info("replication")).includes("master_link_status:up");
}

/** Waits until the replica has all that the primary has written so far. */
async function replicate(primary: RedisServer): Promise<void> {
  expect(await primary.client().wait(1, recoveryMsMax)).toBe(1);
}

describe("a failover that loses writes", () => {
  it("admits what the promise says and what was lost, and decides well again", async () => {
    const startMs = performance.now();
    let keptCount = 0;
    while (keptCount < 30) if (outcomeOf(await ask("one")) === "OK") keptCount += 1;
    await replicate(primary);

    replication.setFault({ kind: "partition" });
    const load = startLoad("one", 8);
    await waitFor("the burst is used up", () => load.count("OVER_LIMIT") > 100);
    const lostCount = load.count("OK");
    expect(keptCount + lostCount).toBeLessThanOrEqual(promisedHits(performance.now() - startMs));

    await primary.kill();
    await waitFor("the loss is seen", () => load.count("UNAVAILABLE") > 0);
    expect(await replica.client().replicaof("NO", "ONE")).toBe("OK");
    address.retarget(replica.port);
    load.beginPhase();
    const promotedMs = performance.now();
    await waitFor("the replica decides", () => load.count("OK") + load.count("OVER_LIMIT") > 0, {
      withinMs: recoveryMsMax,
    });
    await waitFor("the burst is used up again", () => load.count("OVER_LIMIT") > 100);
    expect(performance.now() - promotedMs).toBeLessThan(recoveryMsMax);

    const { byOutcome, slowestMs } = await load.stop();
    const admittedCount = keptCount + lostCount + (byOutcome["OK"] ?? 0);
    const promised = promisedHits(performance.now() - startMs);
    expect(admittedCount).toBeLessThanOrEqual(promised + lostCount);
    // The writes were lost: without that there would be nothing to see here.
    expect(admittedCount).toBeGreaterThan(promised);
    expect(slowestMs).toBeLessThan(hangMs);
    await expectUnharmed(headgate);
  });

  it("asks only the new primary, although the old one still takes itself for one", async () => {
    for (let i = 0; i < 20; i += 1) expect(outcomeOf(await ask("two"))).toBe("OK");
    await replicate(primary);

    replication.setFault({ kind: "partition" });
    address.setFault({ kind: "partition" });
    const { ownMs } = await timed(withheldMs, () => ask("two"));
    expect(ownMs).toBeLessThan(answerMsMax);
    expect(await replica.client().replicaof("NO", "ONE")).toBe("OK");
    address.retarget(replica.port);
    // What was held up on the way to the old primary never arrives there.
    address.dropLinksSilently();
    address.setFault({ kind: "none" });
    await waitFor("the replica decides", async () => outcomeOf(await ask("two")) === "OK", {
      withinMs: recoveryMsMax,
    });
    const before = await primary.client().info("commandstats");
    const load = startLoad("two", 4);
    await waitFor("the burst is used up", () => load.count("OVER_LIMIT") > 20);
    await load.stop();
    expect(scriptRuns(await primary.client().info("commandstats"))).toBe(scriptRuns(before));
    await expectUnharmed(headgate);
  });
});

describe("a primary that becomes a replica, with its connections open", () => {
  it("is left for the server that its address leads to now, and nothing is lost", async () => {
    const error = "STORE_READ_ONLY";
    const failuresBefore = await headgate.metric("headgate_store_failures_total", { error });
    const startMs = performance.now();
    let admittedCount = 0;
    while (admittedCount < 40) if (outcomeOf(await ask("three")) === "OK") admittedCount += 1;
    await replicate(primary);
    address.retarget(replica.port);
    expect(await replica.client().replicaof("NO", "ONE")).toBe("OK");
    expect(await primary.client().replicaof("127.0.0.1", replica.port)).toBe("OK");
    const load = startLoad("three", 4);
    await waitFor("the other one decides", () => load.count("OK") > 0, {
      withinMs: recoveryMsMax,
    });
    await waitFor("the burst is used up", () => load.count("OVER_LIMIT") > 20);
    const { byOutcome } = await load.stop();
    admittedCount += byOutcome["OK"] ?? 0;
    expect(admittedCount).toBeLessThanOrEqual(promisedHits(performance.now() - startMs));
    const failures = await headgate.metric("headgate_store_failures_total", { error });
    expect(failures).toBeGreaterThan(failuresBefore);
    await expectUnharmed(headgate);
  });
});

/** Scripts that a server has run. */
function scriptRuns(stats: string): number {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}
