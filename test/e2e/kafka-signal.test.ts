import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { KafkaTestClient } from "../support/kafka-client.js";
import { KafkaServer, kafkaUsers } from "../support/kafka-server.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** What `headgate services -o json` says, as far as it matters here. */
interface Service {
  readonly name: string;
  readonly concurrencyLimit: number;
  readonly signals: readonly object[];
}

/** A limit of 1,000 up to a lag of 2 messages, and of 10 from one of 12. */
function policyOf(port: number): string {
  const kafka = `brokers: ["localhost:${port}"], group: linearizer, tls: true, sasl: SCRAM-SHA-512`;
  const times =
    "target: 2, critical: 12, every: 1s, timeout: 1s, staleAfter: 10s, whenMissing: max";
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: lag}
spec:
  services:
    - name: linearizer
      admission: {queue: {}}
      concurrency:
        law: signal
        limits: {min: 10, max: 1000}
        signal: {kafka: {${kafka}, topics: [batches-orders]}, ${times}}
    - name: databases
      admission: {queue: {}}
      concurrency:
        law: signal
        per: {header: x-database, names: [orders, users]}
        signal: {kafka: {${kafka}, topics: ["batches-*"]}, by: topic, ${times}}
`;
}

/** A Kafka whose group has consumed nothing of two empty topics. */
async function startKafka(authority: TestAuthority) {
  const kafka = await KafkaServer.start(stage, authority);
  const client = await KafkaTestClient.connect(kafka.ports.plain);
  stage.atEnd(() => client.close());
  for (const topic of ["batches-orders", "batches-users"]) {
    await client.createTopic(topic);
    await client.commit("linearizer", { topic, offset: 0 });
  }
  const produce = async (topic: string, count: number): Promise<void> => {
    const epochMs = Array.from({ length: count }, () => Date.now());
    await client.produce({ topic, epochMs });
  };
  return { kafka, client, produce };
}

/** A directory of what Headgate needs to reach it. */
async function writeCredentials(authority: TestAuthority): Promise<string> {
  const folder = join(stage.folder, "tokens");
  await mkdir(folder);
  await writeFile(join(folder, "localhost"), `lag:${kafkaUsers.lag}\n`);
  await writeFile(join(folder, "localhost.ca.pem"), authority.certificate);
  return folder;
}

it("moves limits with the lag that Kafka has, and keeps them while it is away", async () => {
  const authority = new TestAuthority();
  const { kafka, client, produce } = await startKafka(authority);
  const redis = await startRedis(stage);
  const adminPort = await freePort();
  const headgate = await HostedHeadgate.start(stage, {
    policy: policyOf(kafka.ports.saslTls),
    env: {
      ...redisEnv(redis.port),
      HEADGATE_SIGNAL_TOKENS: await writeCredentials(authority),
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`,
      HEADGATE_ADMIN_OPEN: "true",
      HEADGATE_DRAIN_DELAY_MS: "0",
      LOG_LEVEL: "debug",
    },
  });
  const services = async (): Promise<readonly Service[]> => {
    const env = { HEADGATE_ADMIN_URL: `http://127.0.0.1:${adminPort}` };
    const { code, out, err } = await captureCli(["services", "-o", "json"], { env });
    expect(code, err).toBe(0);
    return JSON.parse(out).services;
  };
  const waitForService = (name: string, wanted: Partial<Service>): Promise<unknown> =>
    waitFor(
      `${name} is ${JSON.stringify(wanted)}`,
      async () => {
        const found = (await services()).find((service) => service.name === name);
        expect(found).toMatchObject(wanted);
        return true;
      },
      // A look takes as much as a poll, and would keep a busy machine from it.
      { everyMs: 200, withinMs: 40_000 },
    );
  await waitForService("linearizer", { concurrencyLimit: 1_000 });
  await produce("batches-orders", 7);
  await waitForService("linearizer", { concurrencyLimit: 505, signals: [{ reading: 7 }] });
  await produce("batches-orders", 100);
  await waitForService("linearizer", { concurrencyLimit: 10, signals: [{ reading: 107 }] });
  await waitForService("databases", {
    signals: [
      { key: "orders", reading: 107 },
      { key: "users", reading: 0 },
    ],
  });
  // It polls for other replicas too.
  const told = await redis.client().keys("*signal:*");
  expect(told).toHaveLength(2);
  await client.commit("linearizer", { topic: "batches-orders", offset: 100 });
  await waitForService("linearizer", { concurrencyLimit: 505 });
  // The last reading stays for a while; then the policy says what holds.
  await kafka.kill();
  const failure = { source: "kafka", error: "SIGNAL_UNAVAILABLE" };
  await waitForService("linearizer", {
    concurrencyLimit: 505,
    signals: [{ ...failure, reading: 7, isMissing: false }],
  });
  await waitForService("linearizer", {
    concurrencyLimit: 1_000,
    signals: [{ ...failure, isMissing: true }],
  });
  const { output } = headgate;
  expect(output).toContain('"event":"signalMissing","service":"linearizer","source":"kafka"');
  expect(output).not.toContain(kafkaUsers.lag);
  expect(await headgate.terminate()).toBe(true);
});
