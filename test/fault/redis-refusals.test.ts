import { describe, expect, it } from "vitest";
import { failureModePolicy } from "../support/failure-modes.js";
import {
  expectUnharmed,
  faultOutcomes,
  startFaultRig,
  wellOutcomes,
} from "../support/fault-rig.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor, within } from "../support/wait.js";

/** Holds what a URL gives a meaning to. */
const password = "pa:ss@wo/rd-of-redis";
const wrongPassword = "wr:ong@wo/rd-of-nobody";

const stage = useStage("test");

/** No part of a password, as it is or as a URL writes it, may be read anywhere. */
function expectNoSecret(output: string): void {
  for (const secret of [password, wrongPassword]) {
    for (const text of [secret, encodeURIComponent(secret), secret.split("@")[1] ?? secret]) {
      expect(output).not.toContain(text);
    }
  }
}

function urlWith(secret: string, port: number): string {
  return `redis://:${encodeURIComponent(secret)}@127.0.0.1:${port}`;
}

describe("a Redis that refuses us at start", () => {
  it.each([
    [
      "by a wrong password in the URL",
      (port: number) => ({ REDIS_URL: urlWith(wrongPassword, port) }),
    ],
    [
      "by a wrong password in REDIS_AUTH",
      (port: number) => ({ ...redisEnv(port), REDIS_AUTH: wrongPassword }),
    ],
    ["for want of a password", redisEnv],
  ])("%s ends the start with 1 and says what to set, but no secret", async (_, envOf) => {
    const redis = await startRedis(stage, { args: ["--requirepass", password], password });
    const env: Readonly<Record<string, string>> = envOf(redis.port);
    const headgate = await HeadgateProcess.prepare(stage, { policy: failureModePolicy, env });
    const started = headgate.spawn();
    expect(await within("the start ends", 15_000, started.exited)).toEqual({ code: 1 });
    expect(started.output).toContain("REDIS_AUTH");
    expectNoSecret(started.output);
  });

  it("by its access list ends the start with 1 and says what to look at", async () => {
    const redis = await startRedis(stage);
    await redis.client().acl("SETUSER", "default", "-evalsha");
    const env = redisEnv(redis.port);
    const headgate = await HeadgateProcess.prepare(stage, { policy: failureModePolicy, env });
    const started = headgate.spawn();
    expect(await within("the start ends", 15_000, started.exited)).toEqual({ code: 1 });
    expect(started.output).toMatch(/refuses us/);
  });
});

describe("a Redis that refuses us later", () => {
  it("by a changed password shows no secret, and is used when it knows us again", async () => {
    const redis = await startRedis(stage, { args: ["--requirepass", password], password });
    const env = { ...redisEnv(redis.port), REDIS_URL: urlWith(password, redis.port) };
    const { headgate, traffic } = await startFaultRig(stage, env);
    const admin = redis.client();
    await admin.config("SET", "requirepass", wrongPassword);
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const error = "FAILED_PRECONDITION|UNAVAILABLE";
    await traffic.expectNothingBut({ ...faultOutcomes, error });
    await waitFor("the refusal is logged", () => /UNAUTHENTICATED/.test(headgate.process.output));
    await admin.config("SET", "requirepass", password);
    await traffic.expectFromNowOn(wellOutcomes);
    expectNoSecret(headgate.process.output);
    await expectUnharmed(headgate);
  });

  it("for having too many clients is asked again at a bounded pace", async () => {
    const redis = await startRedis(stage);
    const { headgate, traffic } = await startFaultRig(stage, redisEnv(redis.port));
    const admin = redis.client();
    await admin.config("SET", "maxclients", "1");
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await admin.config("RESETSTAT");
    const startMs = performance.now();
    await traffic.expectNothingBut(faultOutcomes);
    await waitFor("some attempts were refused", async () => (await refusedClients(admin)) >= 6);
    const elapsedSeconds = (performance.now() - startMs) / 1_000;
    // Three connections, each waiting 50 ms at least, and longer every time.
    expect(await refusedClients(admin)).toBeLessThan(3 * (4 + 4 * elapsedSeconds));
    await admin.config("SET", "maxclients", "1000");
    await traffic.expectFromNowOn(wellOutcomes);
    await expectUnharmed(headgate);
  });
});

describe("a Redis that forgets our script", () => {
  it("is told it again, and no call fails", async () => {
    const redis = await startRedis(stage);
    // Time is not what this is about: a budget that no busy machine uses up.
    const env = { ...redisEnv(redis.port), HEADGATE_STORE_BUDGET_MS: "3000" };
    const { headgate, traffic, client } = await startFaultRig(stage, env);
    await traffic.stop();
    let asked = 0;
    const call = async (): Promise<string> => {
      asked += 1;
      return outcomeOf(await client.ask({ descriptors: [[`error=account-${asked}`]] }));
    };
    const strict = Traffic.start(stage, { callersCount: 16, call });
    const admin = redis.client();
    let flushes = 0;
    await waitFor(
      "the script was forgotten a hundred times",
      async () => {
        await admin.script("FLUSH");
        flushes += 1;
        return flushes >= 100;
      },
      { withinMs: 30_000 },
    );
    const { total, byOutcome } = await strict.stop();
    expect(byOutcome).toEqual({ OK: total });
    expect(await headgate.metric("headgate_store_failures_total")).toBe(0);
  });
});

describe("a Redis that hangs under full load", () => {
  it("does not make memory grow", async () => {
    const redis = await startRedis(stage);
    const { headgate, traffic, client } = await startFaultRig(stage, redisEnv(redis.port));
    await traffic.stop();
    const call = async (): Promise<string> => {
      return outcomeOf(await client.ask({ descriptors: [["local=one-account"]] }));
    };
    const load = Traffic.start(stage, { callersCount: 64, call });
    const answered = (count: number) =>
      waitFor(`${count} calls were answered`, () => load.counts.total >= count, {
        withinMs: 60_000,
      });
    await answered(3_000);
    redis.pause();
    load.beginPhase();
    await answered(3_000);
    const settledBytes = await headgate.residentBytes();
    await answered(9_000);
    const grownBytes = (await headgate.residentBytes()) - settledBytes;
    expect(grownBytes).toBeLessThan(grownBytesMax);
    redis.resume();
    const { byOutcome } = await load.stop();
    // Decided by the local share throughout: nobody waits, nobody gets an error.
    const others = Object.keys(byOutcome).filter((one) => one !== "OK" && one !== "OVER_LIMIT");
    expect(others).toEqual([]);
    await expectUnharmed(headgate);
  });
});

/** Growth that a garbage collector explains; what leaks at this load passes it in seconds. */
const grownBytesMax = 48 * 1_048_576;

async function refusedClients(admin: { info(section: string): Promise<string> }): Promise<number> {
  const found = /rejected_connections:(\d+)/.exec(await admin.info("stats"));
  return Number(found?.[1] ?? 0);
}
