import { expect, it } from "vitest";
import { silentLogger } from "../../src/app/base/logger.js";
import {
  type OperatorRecords,
  openOperatorRecords,
} from "../../src/app/foundation/operator-records.js";
import type { Override } from "../../src/core/limits/override.js";
import { overrideToJson } from "../../src/fleet/records/override-record.js";
import { startTestApp, type TestApp } from "../support/app.js";
import { configOf, openConfiguredStore } from "../support/configured-store.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { startRedis } from "../support/redis.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policyText = `domain: edge
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}
  - {key: free, rate_limit: {unit: day, requests_per_unit: 0}}
`;

/** What is known everywhere within that time; it is asked for each 250 ms. */
const knownMsMax = 1_000;

interface Replica extends TestApp {
  isDenied(entry: string): Promise<boolean>;
}

async function start(port: number): Promise<Replica> {
  const started = await startTestApp(stage, policyText, { REDIS_URL: `127.0.0.1:${port}` });
  const client = new RlsClient(started.grpcPort);
  stage.atEnd(() => client.close());
  return {
    ...started,
    isDenied: async (entry) => {
      const answer = await client.ask({ descriptors: [[entry]] });
      if (answer.kind === "failed") throw new Error(answer.details);
      return answer.isDenied;
    },
  };
}

/** Somebody who writes the records that the admin API writes. */
async function openOperator(port: number): Promise<OperatorRecords> {
  const env = { REDIS_URL: `127.0.0.1:${port}` };
  const opened = await openConfiguredStore(stage, env);
  const common = { config: configOf(env), clock: realClock, random: realRandom };
  const operator = openOperatorRecords({ ...common, logger: silentLogger, replica: "r1", opened });
  stage.atEnd(async () => operator.close());
  return operator;
}

async function give(
  { records }: OperatorRecords,
  user: string,
  fields: Partial<Override> = {},
): Promise<void> {
  const override: Override = {
    id: user,
    domain: "edge",
    entries: [{ key: "user", value: user }],
    isPrefix: false,
    effect: { kind: "frozen" },
    reason: "a test",
    author: "ann",
    createdEpochMs: Date.now(),
    ...fields,
  };
  const value = overrideToJson(override);
  const change = { kind: "override", id: user, value, expectedVersion: 0 } as const;
  expect(await records.change({ ...change, audit: undefined })).toMatchObject({ kind: "changed" });
}

it("an override is active everywhere in a second, and outlives replicas and store", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const operator = await openOperator(server.port);
  const [one, two] = [await start(server.port), await start(server.port)];
  // Both know the request, and one has remembered what it is prepared as.
  for (const { isDenied } of [one, two, one]) expect(await isDenied("user=ann")).toBe(false);
  await give(operator, "ann");
  const frozen = async (): Promise<boolean> =>
    (await one.isDenied("user=ann")) && (await two.isDenied("user=ann"));
  await waitFor("both refuse her", frozen, { withinMs: knownMsMax });
  expect(await two.isDenied("user=bob")).toBe(false);
  expect(await two.metric("headgate_overrides")).toBe(1);
  await two.app.close(0);
  const again = await start(server.port);
  await waitFor("one that starts refuses her", () => again.isDenied("user=ann"));
  await server.kill();
  await waitFor("it is known to be away", () =>
    again.events.some(({ event }) => event === "recordsLost"),
  );
  expect(await again.isDenied("user=ann")).toBe(true);
  expect(await again.isDenied("user=bob")).toBe(false);
  expect(await again.metric("headgate_overrides")).toBe(1);
});

it("an override ends in time, and by a word, and gives more as it gives less", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const operator = await openOperator(server.port);
  const replica = await start(server.port);
  const endEpochMs = Date.now() + 2_000;
  await give(operator, "ann", { expiresEpochMs: endEpochMs });
  await give(operator, "zoe", {
    entries: [{ key: "free", value: "zoe" }],
    effect: { kind: "amount", hits: 2, burst: 2 },
  });
  expect(await replica.isDenied("free=bob")).toBe(true);
  await waitFor("both are known", async () => (await replica.metric("headgate_overrides")) === 2);
  expect(await replica.isDenied("user=ann")).toBe(true);
  const answers: boolean[] = [];
  for (let i = 0; i < 3; i += 1) answers.push(await replica.isDenied("free=zoe"));
  expect(answers).toEqual([false, false, true]);
  await waitFor("she passes again", async () => !(await replica.isDenied("user=ann")));
  const lateMs = Date.now() - endEpochMs;
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(knownMsMax);
  const version = operator.records.list("override").get("zoe")?.version ?? 0;
  const change = { kind: "override", id: "zoe", value: undefined } as const;
  await operator.records.change({ ...change, expectedVersion: version, audit: undefined });
  const none = async (): Promise<boolean> => (await replica.metric("headgate_overrides")) === 0;
  await waitFor("it is taken away", none, { withinMs: knownMsMax });
});

it("a record that is none of ours is left out, and told once", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const operator = await openOperator(server.port);
  const replica = await start(server.port);
  for (const id of ["odd", "strange"]) {
    const change = { kind: "override", id, value: { domain: 7 }, expectedVersion: 0 } as const;
    await operator.records.change({ ...change, audit: undefined });
  }
  await give(operator, "ann");
  const name = "headgate_override_records_unreadable";
  await waitFor("both are met", async () => (await replica.metric(name)) === 2);
  await waitFor("hers holds", () => replica.isDenied("user=ann"));
  const reported = replica.events.filter(({ event }) => event === "overridesUnreadable");
  expect(reported).toHaveLength(1);
});
