import { describe, expect, it } from "vitest";
import { failureModePolicy } from "../support/failure-modes.js";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

describe("a Redis that forgets our script", () => {
  it("is told it again, and no call fails", async () => {
    const { redis, headgate, client } = await start({
      // Time is not what this is about: a budget that no busy machine uses up.
      HEADGATE_STORE_BUDGET_MS: "3000",
    });
    let asked = 0;
    const call = async (): Promise<string> => {
      asked += 1;
      return outcomeOf(await client.ask({ descriptors: [[`error=account-${asked}`]] }));
    };
    const strict = Traffic.start(stage, { callersCount: 16, call });
    const admin = redis.client();
    const loadCount = async (): Promise<number> => {
      const stats = await admin.info("commandstats");
      return Number(/cmdstat_script\|load:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    await waitFor(
      "the script was told twenty times",
      async () => {
        await admin.script("FLUSH");
        return (await loadCount()) >= 20;
      },
      { withinMs: 60_000, everyMs: 2 },
    );
    const { total, byOutcome } = await strict.stop();
    expect(byOutcome).toEqual({ OK: total });
    expect(await headgate.metric("headgate_store_failures_total")).toBe(0);
  });
});

describe("a Redis that hangs under full load", () => {
  it("does not make memory grow", async () => {
    const { redis, headgate, client } = await start({});
    const call = async (): Promise<string> => {
      return outcomeOf(await client.ask({ descriptors: [["local=one-account"]] }));
    };
    const load = Traffic.start(stage, { callersCount: 64, call });
    const answered = (count: number) =>
      waitFor(`${count} calls were answered`, () => load.total >= count, { withinMs: 60_000 });
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

async function start(env: Readonly<Record<string, string>>) {
  const redis = await startRedis(stage);
  const headgate = await HeadgateProcess.start(stage, {
    policy: failureModePolicy,
    env: { ...redisEnv(redis.port), ...env },
  });
  return { redis, headgate, client: startClient(stage, headgate) };
}
