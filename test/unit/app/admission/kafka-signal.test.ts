import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  kafkaConnectionsMax,
  kafkaFileBytesMax,
} from "../../../../src/app/admission/kafka-session.js";
import { KafkaSignalReader, lagPartitionsMax } from "../../../../src/app/admission/kafka-signal.js";
import { isServiceError } from "../../../../src/core/base/errors.js";
import type { KafkaPlace } from "../../../../src/policy/services/kafka-source.js";
import { KafkaOutput } from "../../../../src/wire/kafka/kafka-fields.js";
import { recordedAnswers } from "../../../support/kafka-answers.js";
import { realClock, realRandom } from "../../../support/real-clock.js";
import {
  type KafkaScript,
  metadataAnswer,
  scriptOf,
  startScriptedKafka,
  versionsAnswer,
} from "../../../support/scripted-kafka.js";
import { useStage } from "../../../support/stage.js";

const stage = useStage("test");
const output = (): KafkaOutput => new KafkaOutput();

/** A broker, and what differs from the script of `scriptOf`. */
async function start(topics: readonly string[], changed: KafkaScript = {}): Promise<number> {
  let port = 0;
  port = await startScriptedKafka(stage, { ...scriptOf(topics, () => port), ...changed });
  return port;
}

interface Asked extends Partial<KafkaPlace> {
  readonly tokensPath?: string;
  readonly timeoutMs?: number;
}

function createReader(port: number, { timeoutMs = 5_000, tokensPath, ...own }: Asked = {}) {
  const place: KafkaPlace = {
    kind: "kafka",
    brokers: [`127.0.0.1:${port}`],
    group: "group",
    topics: ["orders"],
    unit: "messages",
    offsetReset: "earliest",
    tls: false,
    mechanism: undefined,
    by: undefined,
    ...own,
  };
  const parts = { clock: realClock, random: realRandom, place, tokensPath };
  const reader = new KafkaSignalReader({ ...parts, keysMax: 10 });
  return async () => {
    try {
      const readings = await reader.read(realClock.monotonicMs() + timeoutMs);
      return readings.kind === "whole" ? readings.reading : Object.fromEntries(readings.readings);
    } catch (thrown) {
      if (isServiceError(thrown)) return `${thrown.code} ${thrown.message}`;
      throw thrown;
    }
  };
}

describe("KafkaSignalReader", () => {
  it("reads a lag", async () => {
    expect(await createReader(await start(["orders"]))()).toBe(1);
  });

  it("asks again who coordinates a group, when that has moved", async () => {
    const moved = output().int32(0).int16(16);
    const right = scriptOf(["orders"], () => 0)[9];
    const port = await start(["orders"], {
      9: (count, request) => (count === 0 ? moved : right?.(count, request)),
    });
    const read = createReader(port);
    expect(await read()).toMatch(/^SIGNAL_UNAVAILABLE .*NOT_COORDINATOR/);
    expect(await read()).toBe(1);
  });

  it("reads other keys while the partitions of one have no leader", async () => {
    const topics = ["orders", "users"];
    let port = 0;
    port = await start(topics, {
      3: () =>
        metadataAnswer(topics, {
          portOf: () => port,
          leaderOf: (topic) => (topic === "users" ? -1 : 1),
        }),
    });
    expect(await createReader(port, { topics, by: "topic" })()).toEqual({ orders: 1 });
    expect(await createReader(port, { topics })()).toMatch(/LEADER_NOT_AVAILABLE/);
  });

  it("names what a broker does not serve", async () => {
    const port = await start(["orders"], { 18: () => versionsAnswer(5) });
    expect(await createReader(port)()).toMatch(/^SIGNAL_REFUSED .*version 4 of Fetch/);
  });

  it("refuses more partitions than a signal may have", async () => {
    const head = output().int32(0).int32(0).int16(-1).int32(1).int32(1).int16(0).text("orders");
    const partitions = Array.from({ length: lagPartitionsMax + 1 }, (_, index) => index);
    head.int8(0).list(partitions, (index) => {
      head.int16(0).int32(index).int32(1).int32(0).int32(0);
    });
    const port = await start(["orders"], { 3: () => head });
    expect(await createReader(port)()).toMatch(/^SIGNAL_TOO_LARGE .*more than 4096 partitions/);
  });

  it("refuses leaders on more brokers than a poll connects to", async () => {
    const brokers = Array.from({ length: kafkaConnectionsMax + 1 }, (_, index) => index + 2);
    const port = await start(["orders"], {
      3: () => {
        const answer = output().int32(0);
        answer.list(brokers, (id) => answer.int32(id).text("127.0.0.1").int32(id).int16(-1));
        answer.int16(-1).int32(1).int32(1).int16(0).text("orders").int8(0);
        return answer.list(brokers, (id) => {
          answer.int16(0).int32(id).int32(id).int32(0).int32(0);
        });
      },
    });
    expect(await createReader(port)()).toMatch(/^SIGNAL_TOO_LARGE .*more than 64 brokers/);
  });

  it("reads a login of a file that is not too large", async () => {
    const port = await start(["orders"], {
      17: () => output().int16(0).int32(0),
      36: (_, request) => {
        const isRight = request.toString("latin1").endsWith("\0user\0a:b");
        return output()
          .int16(isRight ? 0 : 58)
          .int16(-1)
          .bytes(Buffer.alloc(0));
      },
    });
    const tokensPath = join(stage.folder, "tokens");
    await mkdir(tokensPath);
    const read = createReader(port, { mechanism: "PLAIN", tokensPath });
    for (const [text, expected] of [
      ["user:a:b\n", 1],
      ["user:c", /^SIGNAL_REFUSED .*SASL_AUTHENTICATION_FAILED/],
      ["user:a:b\nmore", /^SIGNAL_UNCONFIGURED /],
      [" ".repeat(kafkaFileBytesMax + 1), /^SIGNAL_UNCONFIGURED .*too large/],
    ] as const) {
      await writeFile(join(tokensPath, "127.0.0.1"), text);
      const found = await read();
      if (typeof expected === "number") expect(found).toBe(expected);
      else expect(found).toMatch(expected);
    }
  });

  it.each<[string, Buffer, RegExp]>([
    ["2 GiB", Buffer.from("7fffffff00000000", "hex"), /^SIGNAL_TOO_LARGE /],
    ["a negative length", Buffer.from("ffffffff", "hex"), /^SIGNAL_MALFORMED /],
    ["another identifier", Buffer.from("00000004000003e7", "hex"), /^SIGNAL_MALFORMED /],
    ["an answer to HTTP", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), /^SIGNAL_TOO_LARGE /],
  ])("refuses %s at once", async (_, bytes, code) => {
    const port = await start(["orders"], { 18: () => bytes });
    expect(await createReader(port)()).toMatch(code);
  });

  it("waits for a broker that says nothing until the poll ends, and no longer", async () => {
    const port = await start(["orders"], { 2: () => undefined });
    expect(await createReader(port, { timeoutMs: 100 })()).toMatch(/^SIGNAL_TIMEOUT /);
  });

  it("refuses an answer that is cut, at every byte", async () => {
    const recorded = recordedAnswers.find(({ api }) => api.name === "FindCoordinator");
    const body = recorded?.bytes ?? Buffer.alloc(0);
    let cutAt = 0;
    const port = await start(["orders"], {
      10: () => output().raw(body.subarray(0, cutAt)),
    });
    const read = createReader(port);
    for (; cutAt < body.length; cutAt += 1) {
      expect(await read(), `cut at ${cutAt}`).toMatch(/^SIGNAL_MALFORMED /);
    }
  });
});
