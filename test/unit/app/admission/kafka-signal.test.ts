import { describe, expect, it } from "vitest";
import { KafkaSignalReader } from "../../../../src/app/admission/kafka-signal.js";
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
  readonly timeoutMs?: number;
}

function createReader(port: number, { timeoutMs = 5_000, ...own }: Asked = {}) {
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
  const parts = { clock: realClock, random: realRandom, place, tokensPath: undefined };
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
    const partitions = Array.from({ length: 4_097 }, (_, index) => index);
    head.int8(0).list(partitions, (index) => {
      head.int16(0).int32(index).int32(1).int32(0).int32(0);
    });
    const port = await start(["orders"], { 3: () => head });
    expect(await createReader(port)()).toMatch(/^SIGNAL_TOO_LARGE .*more than 4096 partitions/);
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
