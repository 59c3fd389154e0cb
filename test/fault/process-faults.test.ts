import { existsSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { failureModePolicy } from "../support/failure-modes.js";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { FrameClient } from "../support/http2-frames.js";
import { missingProgramMark } from "../support/programs.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { outcomeOf, type RlsClient, rlsPath } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor, within } from "../support/wait.js";

const limitHits = 2_000;

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: ${limitHits}}
`);

const stage = useStage("file");

/** So long that nobody here sees its end. */
const endlessDrain = { HEADGATE_DRAIN_DELAY_MS: "600000" } as const;

function trafficOf(client: RlsClient, callersCount: number, account = "shared"): Traffic {
  const call = async (): Promise<string> => {
    return outcomeOf(await client.ask({ descriptors: [[`account=${account}`]] }));
  };
  return Traffic.start(stage, { callersCount, call });
}

/** Three replicas on one Redis: one is killed, and each of the others gets a signal to stop. */
let victim: HeadgateProcess;
let survivors: readonly [HeadgateProcess, HeadgateProcess];

beforeAll(async () => {
  const redis = await startRedis(stage);
  const env = {
    ...redisEnv(redis.port),
    // Nobody may fall back to a share of its own here, however busy the machine is.
    HEADGATE_STORE_BUDGET_MS: "3000",
    HEADGATE_DRAIN_DELAY_MS: "1000",
  };
  const start = (): Promise<HeadgateProcess> => HeadgateProcess.start(stage, { policy, env });
  const [first, ...others] = await Promise.all([start(), start(), start()]);
  victim = first;
  survivors = others;
});

describe("one of three replicas killed under load", () => {
  it("costs only the calls it had, and no hit is admitted twice", async () => {
    const callersCount = 4;
    const startMs = performance.now();
    const lost = trafficOf(startClient(stage, victim), callersCount);
    const served = survivors.map((one) => trafficOf(startClient(stage, one), callersCount));
    await waitFor("all have admitted some", () => {
      return [lost, ...served].every((traffic) => traffic.count("OK") >= 50);
    });
    await victim.process.kill();
    await waitFor("the limit is spent", () => {
      return served.every((traffic) => traffic.count("OVER_LIMIT") >= 20);
    });
    const byVictim = await lost.stop();
    const byOthers = await Promise.all(served.map((traffic) => traffic.stop()));
    for (const { byOutcome, total } of byOthers) {
      const { OK = 0, OVER_LIMIT = 0 } = byOutcome;
      expect(OK + OVER_LIMIT).toBe(total);
    }
    const admitted = [byVictim, ...byOthers].reduce((sum, { byOutcome }) => {
      return sum + (byOutcome["OK"] ?? 0);
    }, 0);
    const elapsedHours = (performance.now() - startMs) / 3_600_000;
    const admittedMax = limitHits + Math.floor(elapsedHours * limitHits);
    expect(admitted).toBeLessThanOrEqual(admittedMax);
    // Charged and never answered: at most what was under way in the one that died.
    expect(admitted).toBeGreaterThanOrEqual(limitHits - callersCount);
  });
});

describe("a signal to stop", () => {
  it.each([["SIGTERM", () => survivors[0]] as const, ["SIGHUP", () => survivors[1]] as const])(
    "%s turns health off at once, answers meanwhile, ends with 0",
    async (signal, headgateOf) => {
      const headgate = headgateOf();
      const traffic = trafficOf(startClient(stage, headgate), 4, signal);
      traffic.pauseBetweenCalls(5);
      await waitFor("calls are answered", () => traffic.count("OK") >= 20);
      headgate.process.signal(signal);
      await waitFor("readiness is off", async () => (await headgate.get("/readyz")).status === 503);
      expect((await headgate.get("/healthcheck")).status).toBe(500);
      expect((await headgate.get("/livez")).status).toBe(200);
      expect(headgate.process.isRunning).toBe(true);
      traffic.beginPhase();
      await waitFor("calls are still answered", () => traffic.counts.total >= 20);
      const { byOutcome, total } = traffic.beginPhase();
      expect(byOutcome).toEqual({ OK: total });
      expect(await within("it ends", 20_000, headgate.process.exited)).toEqual({ code: 0 });
      await traffic.stop();
    },
  );

  it("cuts calls that never end when the grace is over, and not with 0", async () => {
    const env = { HEADGATE_DRAIN_DELAY_MS: "0", HEADGATE_DRAIN_GRACE_MS: "500" };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const stuck = await FrameClient.open(headgate.grpcPort);
    stage.atEnd(() => stuck.close());
    stuck.openStreams(rlsPath, 1);
    const client = startClient(stage, headgate);
    expect(outcomeOf(await client.ask({ descriptors: [["account=one"]] }))).toBe("OK");
    headgate.process.signal("SIGTERM");
    expect(await within("it ends", 20_000, headgate.process.exited)).toEqual({ code: 1 });
  });
});

describe("a process that takes a policy, and then a signal", () => {
  let headgate: HeadgateProcess;

  beforeAll(async () => {
    headgate = await HeadgateProcess.start(stage, { policy, env: endlessDrain });
  });

  it("refuses a file written in two halves as long as it is broken, then uses it", async () => {
    const traffic = trafficOf(startClient(stage, headgate), 2);
    traffic.pauseBetweenCalls(5);
    const half = policy.length - 20;
    const next = `${policy}        - {key: late, rate_limit: {unit: hour, requests_per_unit: 1}}\n`;
    await writeFile(headgate.policyPath, next.slice(0, half));
    await waitFor("the half is refused", async () => {
      return (await headgate.metric("headgate_policy_loads_total", { result: "refused" })) >= 1;
    });
    expect(headgate.process.output).toMatch(/policy-\d+\.yaml:\d+:\d+/);
    expect((await headgate.get("/readyz")).status).toBe(200);
    await appendFile(headgate.policyPath, next.slice(half));
    await waitFor("the whole is active", async () => {
      return (await headgate.metric("headgate_policy_rules")) === 2;
    });
    const { total, byOutcome } = await traffic.stop();
    const { OK = 0, OVER_LIMIT = 0 } = byOutcome;
    expect(OK + OVER_LIMIT).toBe(total);
    await expectUnharmed(headgate);
  });

  it("ends without the drain delay when a terminal says so: nobody has to notice", async () => {
    headgate.process.signal("SIGINT");
    expect(await within("it ends", 20_000, headgate.process.exited)).toEqual({ code: 0 });
  });
});

describe("a process whose callers wait for 5 ms only", () => {
  let redis: RedisServer;
  let headgate: HeadgateProcess;

  beforeAll(async () => {
    redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), ...endlessDrain };
    headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
  });

  it("answers them or meets their deadline, and has nothing left behind", async () => {
    const client = startClient(stage, headgate);
    const call = async (): Promise<string> => {
      return outcomeOf(await client.ask({ descriptors: [["error=one"]], timeoutMs: 5 }));
    };
    const hasty = Traffic.start(stage, { callersCount: 32, call });
    redis.pause();
    // Giving up resets a stream, and Node's HTTP/2 ends a connection after about 1000 resets.
    await waitFor("many have given up", () => hasty.counts.total >= 600, { withinMs: 30_000 });
    const { byOutcome } = await hasty.stop();
    const expected = ["OK", "UNAVAILABLE", "DEADLINE_EXCEEDED"];
    for (const outcome of Object.keys(byOutcome)) expect(expected).toContain(outcome);
    redis.resume();
    await waitFor("a patient caller is served", async () => {
      return outcomeOf(await client.ask({ descriptors: [["error=two"]] })) === "OK";
    });
    await expectUnharmed(headgate);
  });

  it("ends at once, and not with 0, when the signal to stop comes twice", async () => {
    headgate.process.signal("SIGTERM");
    await waitFor("it drains", async () => (await headgate.get("/readyz")).status === 503);
    headgate.process.signal("SIGTERM");
    expect(await within("it ends", 20_000, headgate.process.exited)).toEqual({ code: 1 });
  });
});

describe("a log that has no room left", () => {
  it("costs its lines, and nothing else", async () => {
    const fullDisk = "/dev/full";
    if (!existsSync(fullDisk)) throw new Error(`${missingProgramMark} ${fullDisk}: run on Linux`);
    const env = { HEADGATE_DRAIN_DELAY_MS: "0" };
    const headgate = await HeadgateProcess.start(stage, { policy, env, logFile: fullDisk });
    const client = startClient(stage, headgate);
    await writeFile(headgate.policyPath, "broken: [");
    await waitFor("a line was lost", async () => {
      return (await headgate.metric("headgate_policy_loads_total", { result: "refused" })) === 1;
    });
    expect(outcomeOf(await client.ask({ descriptors: [["account=one"]] }))).toBe("OK");
    expect(await headgate.terminate()).toEqual({ code: 0 });
  });
});
