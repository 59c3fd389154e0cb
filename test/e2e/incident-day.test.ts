import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { joinedTo } from "../support/envoy-control.js";
import { freePort } from "../support/free-port.js";
import { type Gateway, startHostedGateway } from "../support/gateway.js";
import { type HoldingUpstream, startHoldingUpstream } from "../support/holding-upstream.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const policyOf = (perDay: number): string => `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: incident}
spec:
  rateLimits:
    - domain: edge
      descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: ${perDay}}}]
  services:
    - {name: orders, hosts: [orders.example], admission: {maxInFlight: 2}}
    - name: upstream
      concurrency:
        law: fixed
        limits: {min: 1, initial: 3, max: 3}
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
`;

const stage = useStage("file");
const http = new HttpClient();
let redis: RedisServer;
let upstream: HoldingUpstream;
let gateway: Gateway<HostedHeadgate>;

beforeAll(async () => {
  stage.atEnd(() => http.close());
  redis = await startRedis(stage);
  upstream = await startHoldingUpstream(stage);
  const control = await freePort();
  const env = {
    REDIS_URL: `127.0.0.1:${redis.port}`,
    HEADGATE_ADMIN_OPEN: "true",
    HEADGATE_POLICY_SOURCE: "store",
    HEADGATE_REPLICAS: "2",
  };
  gateway = await startHostedGateway(stage, {
    policy: policyOf(2),
    headgateEnvs: [{ ...env, HEADGATE_CONTROL_ADDR: `127.0.0.1:${control}` }, env],
    descriptorKeys: [["user"]],
    envoy: {
      extProc: {},
      upstreamPort: upstream.port,
      ...joinedTo({ port: control, nodeId: "edge-1" }),
    },
  });
  for (const headgate of gateway.headgates) {
    await waitFor("replicas know each other", async () => {
      return (await headgate.metric("headgate_live_replicas")) === 2;
    });
  }
});

/** A request of a user's, which the service answers at once; its status. */
async function ask(user: string): Promise<number> {
  let status: number | undefined;
  const asked = gateway.send({ user }).then((answer) => {
    status = answer.status;
  });
  await waitFor("it is answered", () => {
    upstream.release();
    return status !== undefined;
  });
  await asked;
  return status ?? 0;
}

/** Who came by a Service is at any replica: here at one that no Envoy reports to. */
function operatorEnv() {
  return { HEADGATE_ADMIN_URL: `http://127.0.0.1:${gateway.headgates[1]?.portOf("admin")}` };
}

/** What an operator enters. */
async function headgate(...words: readonly string[]): Promise<string> {
  const { code, out, err } = await captureCli(words, { env: operatorEnv() });
  expect(code, out + err).toBe(0);
  return out;
}

async function seen(what: string, words: readonly string[], expected: RegExp): Promise<string> {
  return waitFor(what, async () => {
    const out = await headgate(...words);
    return expected.test(out) ? out : undefined;
  });
}

/** Follows all decisions, as an operator does. */
function startTail() {
  const args = [resolve("dist/cli/main.js"), "tail"];
  return stage.spawn({ name: "headgate tail", file: process.execPath, args, env: operatorEnv() });
}

async function stopTail(tail: ReturnType<typeof startTail>): Promise<void> {
  tail.signal("SIGINT");
  expect((await within("the tail ends", 30_000, tail.exited)).code).toBe(0);
}

/** Waits for what is to be seen while wave after wave comes. */
function duringWaves(wave: () => Promise<void>) {
  return (what: string, isSeen: () => Promise<boolean> | boolean): Promise<unknown> =>
    waitFor(
      what,
      async () => {
        await wave();
        return isSeen();
      },
      { withinMs: 60_000 },
    );
}

const override = ["keys", "override", "edge", "user=ann", "--times", "2x", "--reason", "launch"];

describe("incident day", () => {
  it("who is refused, and why, is told by any replica", async () => {
    const statuses = [await ask("ann"), await ask("ann"), await ask("ann"), await ask("ann")];
    expect(statuses).toEqual([200, 200, 429, 429]);
    await seen("she is at the top", ["top", "--once", "--by", "denials"], /user=ann/);
    expect(await headgate("explain", "edge", "user=ann")).toMatch(/denied|refused/i);
    await seen("it is counted", ["rules", "-o", "json"], /"overLimitHits": ?"?[12]/);
  });

  it("an override lets her through, everywhere", async () => {
    await headgate(...override);
    await waitFor("it holds", async () => (await ask("ann")) === 200);
    expect(await headgate("audit")).toContain("launch");
  });

  it("a policy that refuses everybody is reverted", async () => {
    const path = join(stage.folder, "tight.yaml");
    await writeFile(path, policyOf(0));
    await headgate("apply", path, "--reason", "a slip", "--yes");
    await waitFor("bob is refused", async () => (await ask("bob")) === 429);
    await headgate("rollback", "--reason", "sorry", "--yes");
    // Bob may have used what he has a day before he was refused.
    await waitFor("others pass", async () => (await ask("carl")) === 200);
  });

  it("Redis is lost and comes back empty, and operators' words hold", async () => {
    await headgate("keys", "freeze", "edge", "user=mallory", "--reason", "scraping");
    await waitFor("she is frozen", async () => (await ask("mallory")) === 429);
    const before = (await headgate("history")).split("\n").length;
    await redis.kill();
    await redis.restart();
    await seen("it is put back", ["audit"], /RestoreRecords/);
    expect(await headgate("history")).toMatch(/sorry/);
    expect((await headgate("history")).split("\n")).toHaveLength(before);
    await waitFor("she is still frozen", async () => (await ask("mallory")) === 429);
    const logs = gateway.headgates.map(({ output }) => output).join("\n");
    expect(logs).toContain('"recordRestored"');
    expect(logs).not.toContain("mallory");
  });

  it("an overload that admission refuses is seen in every view", async () => {
    const tail = startTail();
    const headers = { host: "orders.example" };
    let [servedCount, refusedCount] = [0, 0];
    /** Twelve at once to a service that takes two at each replica. */
    const wave = async (): Promise<void> => {
      let answeredCount = 0;
      const asked = Array.from({ length: 12 }, async () => {
        const { status } = await http.send({ port: gateway.envoy.port, headers });
        answeredCount += 1;
        if (status === 200) servedCount += 1;
        else refusedCount += 1;
      });
      await waitFor("all are in work or refused", () => {
        return upstream.heldCount + answeredCount === asked.length;
      });
      upstream.release();
      await Promise.all(asked);
    };
    const during = duringWaves(wave);
    const orders = async () => {
      const { services } = JSON.parse(await headgate("services", "-o", "json")) as {
        services: { name: string; admitted?: string; refused?: string }[];
      };
      const own = services.filter(({ name }) => name === "orders");
      const sum = (of: (one: (typeof own)[number]) => string | undefined): number =>
        own.reduce((total, one) => total + Number(of(one) ?? 0), 0);
      return { admitted: sum((one) => one.admitted), refused: sum((one) => one.refused) };
    };
    await during("top tells", async () =>
      /Refused by admission\n +\d+ so far +orders/.test(await headgate("top", "--once")),
    );
    await during("tail tells", () => /refused {2}orders: [\d.]+\/s by admission/.test(tail.output));
    await during("the log tells", () =>
      gateway.headgates.some(({ output }) =>
        output.includes('"event":"refused","service":"orders","cause":"priority"'),
      ),
    );
    await stopTail(tail);
    const counted = await Promise.all(
      gateway.headgates.map((one) => {
        const labels = { service: "orders", decision: "refused", dry_run: "false" };
        return one.metric("headgate_admission_decisions_total", labels);
      }),
    );
    expect(counted.reduce((sum, count) => sum + count, 0)).toBe(refusedCount);
    await waitFor("services tell", async () => (await orders()).refused === refusedCount);
    expect((await orders()).admitted).toBe(servedCount);
  });

  it("an overload that Envoy's breakers refuse is seen in every view", async () => {
    const tail = startTail();
    let refusedCount = 0;
    /** Ten at once to a service that takes three. */
    const wave = async (): Promise<void> => {
      const before = refusedCount;
      const asked = Array.from({ length: 10 }, async () => {
        const { status } = await http.send({ port: gateway.envoy.port });
        if (status === 503) refusedCount += 1;
      });
      await waitFor("all are in work or refused", () => {
        return upstream.heldCount + refusedCount - before === asked.length;
      });
      upstream.release();
      await Promise.all(asked);
    };
    const during = duringWaves(wave);
    const doctor = async (): Promise<string> => {
      const { policyPath } = gateway.headgates[0];
      const words = ["doctor", "-o", "json", "--policy", policyPath];
      words.push("--envoy", gateway.envoy.adminUrl);
      return (await captureCli(words)).out;
    };
    await during("the log tells", () =>
      gateway.headgates.some(({ output }) => output.includes('"overflowBegan"')),
    );
    const own = async () => {
      const { services } = JSON.parse(await headgate("services", "-o", "json")) as {
        services: { name: string; overflowPerSecond?: number; admitted?: number }[];
      };
      return services.filter(({ name }) => name === "upstream");
    };
    await during("services tell", async () =>
      (await own()).some(({ overflowPerSecond = 0 }) => overflowPerSecond > 0),
    );
    await during("top tells", async () =>
      /as Envoys report\n +[\d.]+\/s +upstream/.test(await headgate("top", "--once")),
    );
    await during("tail tells", () =>
      /refused {2}upstream: [\d.]+\/s by circuit breakers/.test(tail.output),
    );
    await during("doctor tells", async () =>
      /HG554.*the breaker of upstream refused/s.test(await doctor()),
    );
    await waitFor("a metric has counted what was refused, and not what was served", async () => {
      const name = "headgate_control_overflow_requests_total";
      return (await gateway.headgates[0].metric(name, { service: "upstream" })) === refusedCount;
    });
    // None of them was asked about: what was served there, admission has not admitted.
    expect((await own()).map(({ admitted }) => admitted)).toEqual([0, 0]);
    await stopTail(tail);
  });
});
