import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import {
  kafkaBrokersListedMax,
  kafkaTopicsMax,
} from "../../../../src/policy/services/kafka-source.js";
import { policyOf } from "../../../support/service-texts.js";

interface Written {
  readonly brokers?: readonly string[];
  readonly topics?: readonly string[];
  readonly more?: string;
}

function parse({ brokers = ["a:1"], topics = ["t"], more = "" }: Written) {
  const kafka = `{brokers: ${JSON.stringify(brokers)}, group: g, topics: ${JSON.stringify(topics)}`;
  const signal = `signal: {kafka: ${kafka}${more}}}`;
  const text = policyOf(`{name: a, concurrency: {law: signal, ${signal}}}`);
  return parsePolicy([{ file: "a.yaml", text }]);
}

function idsOf(written: Written): readonly string[] {
  const parsed = parse(written);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

const count = (length: number, name: (index: number) => string): readonly string[] =>
  Array.from({ length }, (_, index) => name(index));

describe("signal.kafka", () => {
  it("has the defaults of a cluster without TLS, and reads messages", () => {
    const parsed = parse({ brokers: ["Kafka.Example:9092"] });
    const [service] = parsed.kind === "policy" ? parsed.services : [];
    expect(service?.concurrency?.signal?.place).toEqual({
      kind: "kafka",
      brokers: ["kafka.example:9092"],
      group: "g",
      topics: ["t"],
      unit: "messages",
      offsetReset: "earliest",
      tls: false,
      mechanism: undefined,
      by: undefined,
    });
  });

  it("bounds its lists", () => {
    expect(idsOf({ brokers: count(kafkaBrokersListedMax, (i) => `b${i}:1`) })).toEqual([]);
    expect(idsOf({ brokers: count(kafkaBrokersListedMax + 1, (i) => `b${i}:1`) })).toEqual([
      "HG160",
    ]);
    expect(idsOf({ topics: count(kafkaTopicsMax, (i) => `t${i}`) })).toEqual([]);
    expect(idsOf({ topics: count(kafkaTopicsMax + 1, (i) => `t${i}`) })).toEqual(["HG160"]);
  });

  it.each(["PLAIN", "SCRAM-SHA-256"])("sends no password of %s unencrypted", (mechanism) => {
    expect(idsOf({ more: `, sasl: ${mechanism}, tls: true` })).toEqual([]);
    const plain = mechanism === "PLAIN" ? ["HG235"] : [];
    expect(idsOf({ more: `, sasl: ${mechanism}` })).toEqual(plain);
  });

  it.each([
    ["kafka.example:9092", []],
    ["10.0.0.1:9092", []],
    ["[fd00::1]:9092", []],
    ["kafka.example", ["HG233"]],
    ["kafka.example:0", ["HG233"]],
    ["kafka.example:65536", ["HG233"]],
    ["fd00::1:9092", ["HG233"]],
    ["kafka://kafka.example:9092", ["HG233"]],
    ["me:word@kafka.example:9092", ["HG233"]],
  ])("reads %s as a broker or tells why not", (broker, ids) => {
    expect(idsOf({ brokers: [broker] })).toEqual(ids);
  });
});
