import { describe, expect, it } from "vitest";
import { reasonHeader } from "../../src/core/admission/refusal.js";
import { expectUnharmed } from "../support/fault-rig.js";
import { type Gateway, startGateway } from "../support/gateway.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { realClock } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** As users have it; other tests do not want to meet it. */
const defaultBounds = { HEADGATE_LOOP_DELAY_MS_MAX: "100" };

/** A service that is far below its limit, whatever comes. */
function policyWith(admission: string, proxy?: string): string {
  const proxies = proxy === undefined ? "" : `  proxies: {headgate: {address: gate, ${proxy}}}\n`;
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: overload}
spec:
  services:
    - name: orders
      priority: {from: {header: x-request-priority, default: normal, trust: {anyone: true}}}
      admission: {maxInFlight: 1000${admission}}
${proxies}`;
}

interface Row {
  readonly gateway: Gateway;
  readonly send: (priority?: string) => Promise<string>;
}

/** Envoy asks for admission; an answer of ours is told from all others by its reason. */
async function startRow(options: {
  readonly policy: string;
  readonly headgateCount: number;
  /** Whether no answer means that a request passes, as generated filters have it. */
  readonly passesWithoutAnswer: boolean;
}): Promise<Row> {
  const { policy, headgateCount, passesWithoutAnswer } = options;
  const gateway = await startGateway(stage, {
    policy,
    headgateEnvs: new Array(headgateCount).fill({
      ...defaultBounds,
      HEADGATE_DRAIN_DELAY_MS: "1000",
    }),
    envoy: {
      isHealthChecked: headgateCount > 1,
      extProc: {
        grpc_service: {
          envoy_grpc: { cluster_name: "headgate" },
          initial_metadata: [{ key: "x-headgate-service", value: "orders" }],
        },
        failure_mode_allow: passesWithoutAnswer,
        message_timeout: passesWithoutAnswer ? "0.2s" : "10s",
      },
    },
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = async (priority = "normal"): Promise<string> => {
    const headers = { "x-request-priority": priority };
    const answer = await http.send({ port: gateway.envoy.port, headers });
    const reason = answer.headers[reasonHeader]?.toString();
    return reason === undefined ? String(answer.status) : `${answer.status} ${reason}`;
  };
  return { gateway, send };
}

async function pass(ms: number): Promise<void> {
  const startMs = realClock.monotonicMs();
  await waitFor("time passes", () => realClock.monotonicMs() - startMs >= ms, { everyMs: 5 });
}

/** Stops it for so long, as a hypervisor or a CPU limit does. */
async function stop({ process }: HeadgateProcess, ms: number): Promise<void> {
  process.signal("SIGSTOP");
  await pass(ms);
  process.signal("SIGCONT");
}

const overloadedAnswer = "503 The admission service itself is overloaded.";

describe("a Headgate that is stopped for 150 ms behind an Envoy", () => {
  it("refuses nobody of a healthy service when it runs again", async () => {
    const policy = policyWith(", ownOverload: refuse");
    const { gateway, send } = await startRow({
      policy,
      headgateCount: 1,
      passesWithoutAnswer: false,
    });
    const [headgate] = gateway.headgates;
    const traffic = Traffic.start(stage, { callersCount: 4, call: () => send() });
    for (let i = 1; i <= 10; i += 1) {
      await waitFor("it decides", () => traffic.total > 100 * i);
      await stop(headgate, 150);
      // Of the time right after a stop, when it knows that it was late.
      const before = traffic.total;
      await waitFor("it decides again", () => traffic.total > before + 50);
    }
    const { total, byOutcome } = await traffic.stop();
    expect(byOutcome).toEqual({ 200: total });
    // Whose fault it was is in the log: it could have run, and was stopped.
    expect(headgate.output).toMatch(/"event":"loopStalled","stalledMs":\d+,"reason":"\w+"/);
    expect(headgate.output).not.toContain("overloadBegan");
    await expectUnharmed(headgate);
  });
});

describe("a Headgate that stays late", () => {
  it.each([
    { says: "ownOverload: refuse", normal: overloadedAnswer },
    { says: "ownOverload: allow", normal: "200" },
    { says: "failureModeDeny: true", normal: overloadedAnswer },
  ])("sheds as the policy says ($says), critical requests last", async ({ says, normal }) => {
    const { gateway, send } = await startRow({
      policy: says.startsWith("own") ? policyWith(`, ${says}`) : policyWith("", says),
      headgateCount: 1,
      passesWithoutAnswer: false,
    });
    const [headgate] = gateway.headgates;
    const isOverloaded = async (): Promise<boolean> =>
      (await headgate.metric("headgate_overloaded", { cause: "loop_delay" })) === 1;
    expect(await send()).toBe("200");
    let isOver = false;
    const stops = (async () => {
      while (!isOver) {
        await stop(headgate, 250);
        await pass(40);
      }
    })();
    await waitFor("it knows that it is overloaded", isOverloaded, { withinMs: 30_000 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => send()));
    const critical = await Promise.all(Array.from({ length: 20 }, () => send("critical")));
    isOver = true;
    await stops;
    expect(new Set(answers)).toEqual(new Set([normal]));
    expect(new Set(critical)).toEqual(new Set(["200"]));
    const service = { service: "orders" };
    const allowed = "headgate_admission_failure_mode_allowed_total";
    expect(await headgate.metric(allowed, service)).toBe(normal === "200" ? 40 : 0);
    await waitFor("it is well again", async () => !(await isOverloaded()), { withinMs: 30_000 });
    expect(await send()).toBe("200");
    expect(headgate.output).toContain('"event":"overloadBegan","cause":"loopDelay","reason":');
    await expectUnharmed(headgate);
  });
});

/** How often each replica is restarted, and what is decided between two restarts. */
const rollOutCount = trueTimes ? 4 : 1;
const decidedCount = trueTimes ? 2_500 : 500;

/** How long each runs, and then not: a fifth of a CPU, and late above its own bound each time. */
const runMs = 40;
const throttledMs = 160;

/**
 * Keeps Headgates on a fifth of a CPU, those that are restarted as well. Programs that spin would
 * do so too, and take both CPUs from all tests that run meanwhile.
 *
 * @returns what ends it
 */
function starve(headgates: readonly HeadgateProcess[]): () => Promise<void> {
  let isOver = false;
  const signal = (name: "SIGSTOP" | "SIGCONT"): void => {
    for (const { process: program } of headgates) if (program.isRunning) program.signal(name);
  };
  const turns = (async () => {
    while (!isOver) {
      signal("SIGSTOP");
      await pass(throttledMs);
      signal("SIGCONT");
      await pass(runMs);
    }
  })();
  return () => {
    isOver = true;
    return turns;
  };
}

const restartMsMax = trueTimes ? 1_200_000 : 300_000;

describe("a rolling restart behind an Envoy on a starved CPU", { timeout: restartMsMax }, () => {
  it("refuses nobody", async () => {
    const { gateway, send } = await startRow({
      policy: policyWith(""),
      headgateCount: 2,
      passesWithoutAnswer: true,
    });
    const { headgates, envoy } = gateway;
    const endStarving = starve(headgates);
    const traffic = Traffic.start(stage, { callersCount: 4, call: () => send() });
    traffic.pauseBetweenCalls(5);
    const healthyCount = (): Promise<number> => envoy.stat("cluster.headgate.membership_healthy");
    for (let rollOut = 0; rollOut < rollOutCount; rollOut += 1) {
      for (const headgate of headgates) {
        expect(await headgate.terminate()).toEqual({ code: 0 });
        await headgate.restart();
        await waitFor("both are healthy", async () => (await healthyCount()) === 2, {
          withinMs: 60_000,
        });
        const wanted = traffic.total + decidedCount;
        await waitFor("requests were sent", () => traffic.total >= wanted, { withinMs: 120_000 });
      }
    }
    const { total, byOutcome } = await traffic.stop();
    await endStarving();
    process.stdout.write(`${total - (byOutcome["200"] ?? 0)} refused of ${total} requests\n`);
    expect(byOutcome).toEqual({ 200: total });
  });
});
