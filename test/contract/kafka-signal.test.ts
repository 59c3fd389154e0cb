import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { KafkaSignalReader } from "../../src/app/admission/kafka-signal.js";
import { isServiceError } from "../../src/core/base/errors.js";
import type { KafkaPlace } from "../../src/policy/services/kafka-source.js";
import { TestAuthority } from "../support/certificates.js";
import { KafkaTestClient } from "../support/kafka-client.js";
import { KafkaServer, kafkaUsers } from "../support/kafka-server.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
const authority = new TestAuthority();
let server: KafkaServer;
let client: KafkaTestClient;

beforeAll(async () => {
  server = await KafkaServer.start(stage, authority);
  client = await KafkaTestClient.connect(server.ports.plain);
  stage.atEnd(() => client.close());
});

/** The clock of the machine, whose wall time stands still. */
const nowMs = Date.now();
const clock = { ...realClock, epochUs: () => nowMs * 1_000 };

interface Asked extends Partial<KafkaPlace> {
  readonly port?: number;
  readonly keysMax?: number;
  readonly tokensPath?: string;
  readonly timeoutMs?: number;
}

/** What is read, or the words of why nothing is. */
async function read({ port, keysMax, tokensPath, timeoutMs = 10_000, ...own }: Asked) {
  const place: KafkaPlace = {
    kind: "kafka",
    brokers: [`localhost:${port ?? server.ports.plain}`],
    group: "group",
    topics: ["topic"],
    unit: "messages",
    offsetReset: "earliest",
    tls: false,
    mechanism: undefined,
    by: undefined,
    ...own,
  };
  const reader = new KafkaSignalReader({ clock, random: realRandom, place, keysMax, tokensPath });
  try {
    const readings = await reader.read(clock.monotonicMs() + timeoutMs);
    return readings.kind === "whole" ? readings.reading : Object.fromEntries(readings.readings);
  } catch (thrown) {
    if (isServiceError(thrown)) return `${thrown.code} ${thrown.message}`;
    throw thrown;
  }
}

/** Writes records one by one, each made so many seconds ago. */
async function produce(topic: string, secondsAgo: readonly number[], partition = 0): Promise<void> {
  for (const ago of secondsAgo) {
    await client.produce({ topic, partition, epochMs: [nowMs - 1_000 * ago] });
  }
}

describe("lag in messages", () => {
  it("is the sum over all partitions of what is not consumed", async () => {
    await client.createTopic("sum", 3);
    await produce("sum", [5, 4, 3], 0);
    await produce("sum", [5, 4], 1);
    const asked = { group: "summing", topics: ["sum"] };
    expect(await read(asked)).toMatch(/^SIGNAL_EMPTY .*committed no offset in these topics/);
    await client.commit("summing", { topic: "sum", partition: 0, offset: 1 });
    expect(await read(asked)).toBe(4);
    expect(await read({ ...asked, offsetReset: "latest" })).toBe(2);
    await client.commit("summing", { topic: "sum", partition: 1, offset: 2 });
    await client.commit("summing", { topic: "sum", partition: 0, offset: 3 });
    expect(await read(asked)).toBe(0);
    // As after a topic of the same name was made anew.
    await client.commit("summing", { topic: "sum", partition: 0, offset: 1_000 });
    expect(await read(asked)).toBe(0);
  });

  it("is split by what the star of a topic's name stands for, or by partition", async () => {
    for (const key of ["orders", "users"]) {
      await client.createTopic(`batches-${key}`, 2);
      await produce(`batches-${key}`, [3, 2, 1], 0);
      await produce(`batches-${key}`, [1], 1);
    }
    await client.commit("keyed", { topic: "batches-orders", partition: 0, offset: 1 });
    await client.commit("keyed", { topic: "batches-users", partition: 1, offset: 1 });
    const asked = { group: "keyed", topics: ["batches-*"], keysMax: 10 };
    expect(await read({ ...asked, by: "topic" })).toEqual({ orders: 3, users: 3 });
    expect(await read({ ...asked, by: "partition" })).toEqual({ 0: 5, 1: 1 });
    expect(await read(asked)).toBe(6);
    expect(await read({ ...asked, by: "topic", keysMax: 1 })).toEqual({ orders: 3 });
  });

  it("tells which topic of the policy does not exist", async () => {
    expect(await read({ group: "summing", topics: ["sum", "no-such-topic"] })).toMatch(
      /^SIGNAL_EMPTY .*UNKNOWN_TOPIC_OR_PARTITION \(kafka\.topics\[1\]\)/,
    );
  });
});

describe("lag in seconds", () => {
  it("is the age of the oldest record that is not consumed", async () => {
    await client.createTopic("aged", 2);
    await produce("aged", [900, 60, 30], 0);
    await produce("aged", [45.5], 1);
    await client.commit("aging", { topic: "aged", partition: 0, offset: 1 });
    const asked: Asked = { group: "aging", topics: ["aged"], unit: "seconds" };
    expect(await read(asked)).toBe(60);
    await client.commit("aging", { topic: "aged", partition: 0, offset: 2 });
    expect(await read(asked)).toBe(45.5);
    expect(await read({ ...asked, offsetReset: "latest" })).toBe(30);
    await client.commit("aging", { topic: "aged", partition: 0, offset: 3 });
    await client.commit("aging", { topic: "aged", partition: 1, offset: 1 });
    expect(await read(asked)).toBe(0);
  });

  it("counts from the first record of the batch that holds it, however large", async () => {
    await client.createTopic("batched");
    const epochMs = Array.from({ length: 20_000 }, (_, index) => nowMs - 50_000 + index);
    await client.produce({ topic: "batched", epochMs });
    await client.commit("batching", { topic: "batched", offset: 10_000 });
    const asked: Asked = { group: "batching", topics: ["batched"] };
    expect(await read({ ...asked, unit: "seconds" })).toBe(50);
    expect(await read(asked)).toBe(10_000);
  });
});

describe("who asks", () => {
  let tokensPath: string;
  const asked = { group: "secret", topics: ["secret"] };

  beforeAll(async () => {
    await client.createTopic("secret");
    await produce("secret", [2, 1]);
    await client.commit("secret", { topic: "secret", offset: 1 });
    tokensPath = await writeFiles("right", {
      localhost: `lag:${kafkaUsers.lag}\n`,
      "localhost.ca.pem": authority.certificate,
    });
  });

  async function writeFiles(name: string, files: Record<string, string>): Promise<string> {
    const folder = join(stage.folder, name);
    await mkdir(folder);
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
    return folder;
  }

  it.each(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const)(
    "authenticates by %s over TLS and without, and is refused with a wrong password",
    async (mechanism) => {
      const { sasl, saslTls } = server.ports;
      const right = { ...asked, mechanism, tokensPath };
      expect(await read({ ...right, port: sasl })).toBe(1);
      expect(await read({ ...right, port: saslTls, tls: true })).toBe(1);
      const localhost = "lag:wrong-password";
      const wrong = await writeFiles(`wrong-${mechanism}`, { localhost });
      const refused = await read({ ...right, port: sasl, tokensPath: wrong });
      expect(refused).toMatch(/^SIGNAL_REFUSED .*SASL_AUTHENTICATION_FAILED/);
      expect(refused).not.toContain("wrong-password");
    },
  );

  it("needs rights", async () => {
    const localhost = `stranger:${kafkaUsers.stranger}`;
    const own = await writeFiles("stranger", { localhost });
    const mechanism = "SCRAM-SHA-512";
    const { sasl: port } = server.ports;
    expect(await read({ ...asked, port, mechanism, tokensPath: own })).toMatch(
      /^SIGNAL_REFUSED .*GROUP_AUTHORIZATION_FAILED/,
    );
  });

  it("needs a file with a login", async () => {
    const { sasl: port } = server.ports;
    const empty = await writeFiles("empty", { localhost: "no-password" });
    for (const path of [undefined, empty]) {
      const tokens = path === undefined ? {} : { tokensPath: path };
      expect(await read({ ...asked, port, mechanism: "PLAIN", ...tokens })).toMatch(
        /^SIGNAL_UNCONFIGURED /,
      );
    }
  });

  it("shows a certificate, and trusts those of its authority only", async () => {
    const { tls: port } = server.ports;
    const { certificate, key } = authority.issue();
    const own = { "localhost.cert.pem": certificate, "localhost.key.pem": key };
    const ca = { "localhost.ca.pem": authority.certificate };
    const right = await writeFiles("certificate", { ...own, ...ca });
    expect(await read({ ...asked, port, tls: true, tokensPath: right })).toBe(1);
    const none = await read({ ...asked, port, tls: true, tokensPath });
    expect(none).toMatch(/^SIGNAL_UNAVAILABLE /);
    const stranger = { "localhost.ca.pem": new TestAuthority().certificate };
    const wrong = await writeFiles("wrong-ca", { ...own, ...stranger });
    expect(await read({ ...asked, port, tls: true, tokensPath: wrong })).toMatch(
      /^SIGNAL_UNAVAILABLE .*(?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT)/,
    );
    const brokers = [`127.0.0.1:${port}`];
    expect(await read({ ...asked, brokers, tls: true, tokensPath: right })).toMatch(
      /^SIGNAL_UNAVAILABLE /,
    );
  });
});

describe("a broker that is away", () => {
  const asked = { group: "outage", topics: ["outage"] };

  it("is passed over for the next one, and is read again when it is back", async () => {
    await client.createTopic("outage");
    await produce("outage", [3, 2, 1]);
    await client.commit("outage", { topic: "outage", offset: 1 });
    const { plain, tls } = server.ports;
    // Answers nothing that is not TLS.
    const brokers = ["localhost:1", `localhost:${tls}`, `localhost:${plain}`];
    expect(await read({ ...asked, brokers, timeoutMs: 3_000 })).toBe(2);
    server.pause();
    expect(await read({ ...asked, timeoutMs: 500 })).toMatch(/^SIGNAL_TIMEOUT /);
    server.resume();
    expect(await read(asked)).toBe(2);
    await server.kill();
    expect(await read(asked)).toMatch(/^SIGNAL_UNAVAILABLE .*ECONNREFUSED/);
    await server.restart();
    await waitFor("the lag is known again", async () => (await read(asked)) === 2);
  });
});
