import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { SignalServer } from "../support/signal-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Services by name with what their signals say; each is asked ten times a second. */
function policyOf(signals: Readonly<Record<string, string>>): string {
  const timing = "every: 100ms, staleAfter: 1s, whenMissing: min";
  const services = Object.entries(signals).map(([name, signal]) => {
    return `    - {name: ${name}, concurrency: {law: signal, signal: {${signal}, ${timing}}}}\n`;
  });
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\n";
  return `${head}spec:\n  services:\n${services.join("")}`;
}

async function waitForLimit(headgate: HeadgateProcess, service: string, max: number) {
  await waitFor(`${service} has ${max}`, async () => {
    return (await headgate.metric("headgate_admission_inflight_max", { service })) === max;
  });
}

describe("headgate serve, with signals", () => {
  it("asks over https, with the host's token, and follows each source by itself", async () => {
    const redis = await startRedis(stage);
    const control = redis.client();
    await control.set("lag", "55000");
    const authority = new TestAuthority();
    const tls = authority.issue({ names: ["localhost"], addresses: ["127.0.0.1"] });
    const source = await SignalServer.start(stage, '{"lag": 55000}', tls);
    const hanging = await SignalServer.start(stage);
    hanging.answer = () => {};
    const tokens = join(stage.folder, "tokens");
    await mkdir(tokens);
    await writeFile(join(tokens, "localhost"), "secret-token\n");
    await writeFile(join(stage.folder, "authority.pem"), authority.certificate);
    const url = `https://${source.authority.replace("127.0.0.1", "localhost")}/`;
    const headgate = await HeadgateProcess.start(stage, {
      policy: policyOf({
        a: `http: "${url}", pointer: /lag`,
        b: "redis: lag",
        c: `http: "http://${hanging.authority}/"`,
      }),
      env: {
        ...redisEnv(redis.port),
        HEADGATE_SIGNAL_TOKENS: tokens,
        NODE_EXTRA_CA_CERTS: join(stage.folder, "authority.pem"),
        HEADGATE_DRAIN_DELAY_MS: "0",
        LOG_LEVEL: "debug",
      },
    });
    await waitForLimit(headgate, "a", 505);
    await waitForLimit(headgate, "b", 505);
    await waitForLimit(headgate, "c", 10);
    expect(source.questions[0]?.authorization).toBe("Bearer secret-token");
    // A list under the key counts by its length, and a Redis that is gone is a reading missed.
    await control.del("lag");
    await control.rpush("lag", "one", "two");
    await waitForLimit(headgate, "b", 1_000);
    await redis.stop();
    await waitForLimit(headgate, "b", 10);
    await source.stop();
    hanging.say("5");
    await waitForLimit(headgate, "c", 1_000);
    await waitForLimit(headgate, "a", 10);
    expect(headgate.process.output).toContain('"event":"capacityDecreased"');
    expect(headgate.process.output).not.toContain("secret-token");
    expect(headgate.process.output).not.toContain(url);
    hanging.answer = () => {};
    expect(await headgate.terminate()).toMatchObject({ code: 0 });
  });
});
