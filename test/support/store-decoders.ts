import { signalJsonBytesMax } from "../../src/app/admission/signal-readers.js";
import { policyRecordBytesMax } from "../../src/app/policy/policy-admin-records.js";
import { orcaCharactersMax, parseOrcaReport } from "../../src/core/admission/orca.js";
import { readQuestion } from "../../src/fleet/claims/replica-questions.js";
import { textsMax } from "../../src/fleet/loop/byte-fields.js";
import { recordRowsMax, reportBytesMax } from "../../src/fleet/loop/report-format.js";
import { readReport } from "../../src/fleet/loop/report-reader.js";
import {
  decodeSnapshot,
  encodeSnapshot,
  type FleetSnapshot,
  snapshotBytesMax,
  snapshotServicesMax,
} from "../../src/fleet/loop/snapshot-codec.js";
import { readJsonAnswer, readPrometheusAnswer } from "../../src/fleet/signals/signal-answers.js";
import { KeySignalReader } from "../../src/fleet/signals/signal-key.js";
import { pageLineCharsMax, SignalPage } from "../../src/fleet/signals/signal-page.js";
import { gatherBytesMax } from "../../src/store/coordination/loop-store.js";
import { fieldBytesMax, numberFieldsMax } from "../../src/store/coordination/number-store.js";
import {
  answersBytesMax,
  questionBytesMax,
  questionsMax,
} from "../../src/store/coordination/question-store.js";
import { pageBytesMax, recordKinds } from "../../src/store/coordination/record-store.js";
import { parseNumbers } from "../../src/store/redis/coordination/fleet-script.js";
import { readAudit, readPage } from "../../src/store/redis/coordination/record-pages.js";
import type { RedisLoop } from "../../src/store/redis/coordination/redis-loop.js";
import { RedisNumbers } from "../../src/store/redis/coordination/redis-numbers.js";
import {
  decodeAnswers,
  decodeQuestions,
} from "../../src/store/redis/coordination/redis-questions.js";
import { decodeGivenBack } from "../../src/store/redis/scripts/give-back-script.js";
import { decodeBucket, decodeReply } from "../../src/store/redis/scripts/pack.js";
import { KafkaFields, KafkaOutput } from "../../src/wire/kafka/kafka-fields.js";
import { kafkaBrokersMax, kafkaPartitionsMax } from "../../src/wire/kafka/kafka-limits.js";
import { allTurns } from "./all-turns.js";
import { farDeadlineMs, once, testCharge } from "./charges.js";
import type { PeerDecoder } from "./decoders.js";
import { FakeConnection } from "./fake-connection.js";
import {
  fullRecord,
  testFleetSnapshot,
  testPressure,
  testReport,
  testShares,
} from "./fleet-reports.js";
import { recordedAnswers } from "./kafka-answers.js";
import { redisLoop } from "./redis-loop.js";
import type { WorstMessage } from "./worst-messages.js";
import { worstJson } from "./worst-texts.js";

const rank = { term: 7, leaderId: "a1", version: 42 };
const keysMax = 10_000;

const prometheusHead =
  '"status":"success","data":{"resultType":"vector","result":' +
  '[{"metric":{"a":"k"},"value":[1,"2"]},{"metric":{},"value":[1,"NaN"]}]}';

/** None: it is read only where it is as long as what was asked. */
const asked = (): readonly WorstMessage[] => [];

/** Each decoder of what Redis answers. */
const replyDecoders: readonly PeerDecoder[] = [
  {
    name: "snapshots",
    bytesMax: snapshotBytesMax,
    worst: worstSnapshots,
    valid: [
      allTurns(encodeSnapshot(testFleetSnapshot())).bytes,
      worstSnapshots(400)[4]?.bytes ?? Buffer.alloc(0),
    ],
    turns: (bytes) => decodeSnapshot(bytes, rank),
    // Shares above 2^31, which no Envoy has, are taken for numbers of two more words each.
    freeBytes: 4_194_304,
    decode: (bytes) => allTurns(decodeSnapshot(bytes, rank)),
  },
  {
    name: "reports",
    bytesMax: reportBytesMax,
    worst: worstReports,
    valid: [fullRecord(report(1)).bytes, fullRecord(report(0)).bytes],
    turns: (bytes) => readReport({ bytes, atMs: 0 }, undefined),
    // Codes of 262,144 rows: bounded by their number, since a row may take less than a byte.
    freeBytes: 16_777_216,
    decode: (bytes) => allTurns(readReport({ bytes, atMs: 0 }, undefined)),
  },
  {
    name: "reports of all replicas",
    bytesMax: gatherBytesMax,
    worst: (byteCount) => repeated(["a 1 0 0 0 0\n", "a 1 0 1 1 1\nxy"], byteCount),
    valid: [Buffer.from("a 1 0 3 1 2\nabcxyb1 2 17 0 0 0\n")],
    decode: (bytes) => storeAnswering(bytes).gather(new Map()),
  },
  {
    name: "a snapshot and its rank",
    bytesMax: snapshotBytesMax,
    worst: (byteCount) => [{ what: "bytes", bytes: Buffer.alloc(byteCount, "12 7 a1 42\n") }],
    valid: [Buffer.from("12 7 a1 42\nabc")],
    decode: (bytes) => storeAnswering(bytes).fetch(),
  },
  ...recordKinds.map(
    (kind): PeerDecoder => ({
      name: `records, ${kind}`,
      bytesMax: kind === "policy" ? policyRecordBytesMax : pageBytesMax,
      worst: (byteCount) => worstRecords(byteCount),
      valid: [Buffer.from('7 0 0\na 6 10\n{"a":[{}]}b 7 -\n'), Buffer.from("other 0a\n")],
      decode: (bytes) => {
        const page = readPage(kind, bytes);
        if (page.kind === "other") return page;
        const { records, ...others } = page;
        return [others, records.map(({ id, value }) => [id, value])];
      },
    }),
  ),
  {
    name: "questions of replicas",
    bytesMax: questionsMax * (questionBytesMax + 80),
    worst: (byteCount) => repeated(["a1 0\n", "a1 1\nx"], byteCount),
    valid: [Buffer.from("a1 3\n{}\nb2 1\nx")],
    decode: decodeQuestions,
  },
  {
    name: "a question of replicas",
    bytesMax: questionBytesMax,
    worst: bodies,
    valid: [Buffer.from('{"method":"A","request":"AAA","caller":[{}]}')],
    decode: (bytes) => readQuestion(bytes.toString()) ?? "unreadable",
  },
  {
    name: "answers of replicas",
    bytesMax: answersBytesMax,
    worst: (byteCount) => repeated(["0\n", "2\na\n", "3\na\nb"], byteCount),
    valid: [Buffer.from("5\na\nabc2\nb\n1\nx")],
    decode: decodeAnswers,
  },
  {
    name: "audit entries",
    bytesMax: pageBytesMax,
    worst: (byteCount) =>
      bodies(byteCount).map(({ what, bytes }) => ({
        what,
        bytes: Buffer.concat([Buffer.from(`1 1 ${bytes.length}\n`), bytes]),
      })),
    valid: [Buffer.from('7 1700000000000 9\n{"a":"b"}6 1 2\n{}')],
    decode: readAudit,
  },
  {
    name: "leases and shares",
    bytesMax: 1_700,
    worst: (byteCount) => repeated([" ", "7 ", "-1 "], byteCount),
    valid: [Buffer.from("1 -1 123456789012345")],
    decode: (bytes) => parseNumbers(bytes, 3),
  },
  {
    name: "keys of signals",
    bytesMax: 2 * numberFieldsMax * (fieldBytesMax + 4),
    worst: (byteCount) => [
      ...repeated(["0:", "1:a", "9:123456789"], byteCount, "h"),
      { what: "long fields", bytes: longFields(byteCount) },
    ],
    valid: [Buffer.from("h1:a1:71:b2:12"), Buffer.from("n3:1.5"), Buffer.from("n1:7")],
    decode: (bytes) => {
      const connection = new FakeConnection();
      connection.answer = { kind: "reply", reply: bytes };
      return new KeySignalReader({ store: new RedisNumbers(connection), key: "k", keysMax }).read(
        farDeadlineMs,
      );
    },
  },
  {
    name: "decisions of the store",
    bytesMax: 40,
    worst: asked,
    valid: [Buffer.alloc(40)],
    decode: (bytes) => decodeReply(bytes, [once(testCharge())]),
  },
  {
    name: "what the store gave back",
    bytesMax: 24,
    worst: asked,
    valid: [Buffer.alloc(24)],
    decode: (bytes) => decodeGivenBack(bytes, 1),
  },
  {
    name: "buckets",
    bytesMax: 24,
    worst: asked,
    valid: [Buffer.alloc(24)],
    decode: decodeBucket,
  },
];

/** Each decoder of what sources of signals answer. */
const signalDecoders: readonly PeerDecoder[] = [
  {
    name: "answers of Prometheus",
    bytesMax: signalJsonBytesMax,
    worst: (byteCount) => worstJson(byteCount, [], `${prometheusHead},`),
    valid: [Buffer.from(`{${prometheusHead}}`)],
    decode: (bytes) => readPrometheusAnswer(bytes.toString(), { by: "a", keysMax }),
    held: (bytes) => withTree(bytes, (text) => readPrometheusAnswer(text, { by: "a", keysMax })),
  },
  {
    name: "JSON of a source",
    bytesMax: signalJsonBytesMax,
    worst: (byteCount) => worstJson(byteCount, [], '"a":7,'),
    valid: [Buffer.from('{"a":7,"b":[1,"x"]}'), Buffer.from('{"a":{"k":1.5,"l":2}}')],
    decode: (bytes) => readJsonAnswer(bytes.toString(), { pointer: ["a"], keysMax }),
    held: (bytes) => withTree(bytes, (text) => readJsonAnswer(text, { pointer: ["a"], keysMax })),
  },
  {
    name: "pages of metrics",
    // One line at a time: all of a page that is in memory.
    bytesMax: 2 * pageLineCharsMax,
    worst: (byteCount) =>
      repeated(["\n", "m 1\n", 'm{a="b"} 1\n', 'm{a="b",', "m{", 'm{a="\\"'], byteCount, "m 1\n"),
    valid: [Buffer.from('# HELP m x\nm{a="b",c="d\\n"} 1.5\nm{a="c"} 2 1700000000\nn 7\n')],
    decode: (bytes) => {
      const page = new SignalPage({ metric: "m", matchers: [] }, { by: "a", keysMax });
      const text = bytes.toString();
      const half = Math.floor(text.length / 2);
      page.add(text.slice(0, half));
      page.add(text.slice(half));
      return page.finish();
    },
  },
];

/** Each decoder of what brokers of Kafka answer. */
const kafkaDecoders: readonly PeerDecoder[] = recordedAnswers.map(({ api, bytes }) => ({
  name: `${api.name} of Kafka`,
  bytesMax: api.keptBytesMax,
  worst: (byteCount) => worstKafka(byteCount),
  valid: [bytes],
  decode: (answer) => api.decode(new KafkaFields(answer)),
}));

/** What backends say of themselves in a header of their responses. */
const reportDecoder: PeerDecoder = {
  name: "reports of backends",
  bytesMax: orcaCharactersMax,
  worst: (byteCount) => [
    ...worstJson(byteCount - 64).map(({ what, bytes }) => ({
      what,
      bytes: Buffer.concat([Buffer.from("JSON "), bytes]),
    })),
    ...repeated([",", "a=1,", "a:"], byteCount, "TEXT "),
    ...repeated(["CQAA", "AAAA", "CgAK"], byteCount, "BIN "),
  ],
  valid: [
    Buffer.from('JSON {"cpu_utilization":0.5,"named_metrics":{"a":1}}'),
    Buffer.from("TEXT cpu_utilization=0.5, mem_utilization:0.25"),
    Buffer.from("BIN CQAAAAAAAOA/"),
  ],
  decode: (bytes) => parseOrcaReport(bytes.toString()),
  held: (bytes) => {
    const report = parseOrcaReport(bytes.toString());
    const isJson = report !== undefined && bytes.toString("latin1", 0, 5) === "JSON ";
    return isJson ? JSON.parse(bytes.toString("utf8", 5)) : report;
  },
};

/** Each decoder of what others answer whom Headgate asks. */
export const answerDecoders: readonly PeerDecoder[] = [
  ...replyDecoders,
  ...signalDecoders,
  ...kafkaDecoders,
  reportDecoder,
];

/** As many topics, partitions and brokers as are read, each as short as may be. */
function worstKafka(byteCount: number): readonly WorstMessage[] {
  const output = (): KafkaOutput => new KafkaOutput();
  const counted = (unit: KafkaOutput, max: number): KafkaOutput => {
    const bytes = unit.whole();
    const count = Math.max(1, Math.min(max, Math.floor(byteCount / bytes.length) - 2));
    return output()
      .int32(count)
      .raw(Buffer.concat(Array.from({ length: count }, () => bytes)));
  };
  const empty = output().text("").int32(0);
  const offset = output().int64(1).int16(-1).int16(0);
  const one = output().text("a").int32(1).int32(0).raw(offset.whole());
  const many = counted(output().int32(0).raw(offset.whole()), kafkaPartitionsMax).whole();
  const end = output().int32(0).int16(0).int64(-1).int64(1);
  const ends = counted(end, kafkaPartitionsMax).whole();
  const broker = counted(output().int32(0).text("a").int32(1).int16(-1), kafkaBrokersMax).whole();
  const partition = output().int16(0).int32(0).int32(1).int32(0).int32(0);
  const partitions = counted(partition, kafkaPartitionsMax).whole();
  const cluster = output().int32(0).raw(broker).int16(-1).int32(0);
  return [
    { what: "topics of no partition", bytes: counted(empty, kafkaPartitionsMax).int16(0).whole() },
    { what: "topics of one partition", bytes: counted(one, kafkaPartitionsMax).int16(0).whole() },
    { what: "offsets", bytes: output().int32(1).text("a").raw(many).int16(0).whole() },
    { what: "ends", bytes: output().int32(1).text("a").raw(ends).whole() },
    {
      what: "a cluster",
      bytes: cluster.int32(1).int16(0).text("a").int8(0).raw(partitions).whole(),
    },
    { what: "versions", bytes: output().int16(0).int32(1_000).raw(Buffer.alloc(6_000)).whole() },
  ];
}

/** A reader keeps no tree, but makes one of what it does not refuse. */
function withTree(bytes: Buffer, read: (text: string) => unknown): unknown {
  const text = bytes.toString();
  return [read(text), JSON.parse(text)];
}

/** As many fields of a hash as are read, each as long as it may be. */
function longFields(byteCount: number): Buffer {
  const count = Math.min(numberFieldsMax, Math.floor(byteCount / 264));
  const fields = Array.from({ length: count }, (_, i) => `256:${String(i).padEnd(256, "k")}1:7`);
  return Buffer.from(`h${fields.join("")}`);
}

function storeAnswering(reply: Buffer): RedisLoop {
  const connection = new FakeConnection();
  connection.answer = { kind: "reply", reply };
  return redisLoop(connection);
}

function repeated(units: readonly string[], byteCount: number, head = ""): readonly WorstMessage[] {
  return units.map((unit) => {
    const count = Math.max(1, Math.floor((byteCount - head.length) / unit.length));
    return { what: JSON.stringify(unit), bytes: Buffer.from(head + unit.repeat(count)) };
  });
}

/** JSON of that many bytes, as the one record of a page and as many that are short. */
function worstRecords(byteCount: number): readonly WorstMessage[] {
  const long = bodies(byteCount).map(({ what, bytes }) => ({
    what,
    bytes: Buffer.concat([Buffer.from(`1 0 0\na 1 ${bytes.length}\n`), bytes]),
  }));
  const rows: string[] = ["1 0 0\n"];
  for (let i = 0, size = 0; size < byteCount; i += 1) {
    const row = `${i.toString(36)} 1 8\n{"a":[]}`;
    rows.push(row);
    size += row.length;
  }
  const gone = Array.from({ length: byteCount / 9 }, (_, i) => `${i.toString(36)} 1 -\n`);
  return [
    ...long,
    { what: "short ones", bytes: Buffer.from(rows.join("")) },
    { what: "gone ones", bytes: Buffer.from(["1 0 0\n", ...gone].join("")) },
  ];
}

function bodies(byteCount: number): readonly WorstMessage[] {
  return worstJson(byteCount);
}

function names(count: number): readonly string[] {
  return Array.from({ length: Math.max(1, Math.floor(count)) }, (_, i) => i.toString(36));
}

function worstSnapshots(byteCount: number): readonly WorstMessage[] {
  const snapshot = (
    services: FleetSnapshot["snapshot"]["services"],
    verdicts: FleetSnapshot["verdicts"],
  ) => allTurns(encodeSnapshot({ snapshot: { ...rank, services }, verdicts })).bytes;
  const verdict = { rejectRatio: 0, state: "open" as const };
  const verdicts = new Map(
    names(Math.min(snapshotServicesMax, byteCount / 15)).map((name) => [name, verdict]),
  );
  const services = new Map(
    names(Math.min(snapshotServicesMax, byteCount / 43)).map((name) => [name, testShares()]),
  );
  const shared = (nodeCount: number): FleetSnapshot["snapshot"]["services"] => {
    const share = { default: 2 ** 32 - 1, high: 2 ** 32 - 1 };
    const shares = new Map(names(nodeCount).map((id) => [id, share]));
    const serviceCount = Math.min(snapshotServicesMax, byteCount / (12 * nodeCount + 80));
    return new Map(names(serviceCount).map((name) => [name, testShares({ shares })]));
  };
  const nodesMax = Math.min(textsMax, byteCount / 18);
  return [
    { what: "texts", bytes: texts(2, byteCount) },
    { what: "verdicts", bytes: snapshot(new Map(), verdicts) },
    { what: "services", bytes: snapshot(services, new Map()) },
    { what: "shares of many services", bytes: snapshot(shared(100), new Map()) },
    { what: "shares of many Envoys", bytes: snapshot(shared(nodesMax), new Map()) },
  ];
}

function worstReports(byteCount: number): readonly WorstMessage[] {
  const named = (count: number) =>
    names(Math.ceil(count)).map((nodeId) => testReport({ nodeId, atMs: 0 }));
  const services = Array.from({ length: Math.ceil(byteCount / 24) }, () => testPressure());
  return [
    { what: "texts", bytes: texts(3, byteCount, 10) },
    { what: "rows", bytes: fullRecord({ nodes: named(Math.min(textsMax, byteCount / 20)) }).bytes },
    { what: "rows of no bytes", bytes: manyRows(byteCount) },
    { what: "pressures", bytes: fullRecord({ services }, { bytesMax: byteCount }).bytes },
  ];
}

/** Each Envoy has all services that the first one has, and nothing is said of any of them. */
function manyRows(byteCount: number): Buffer {
  const nodeCount = Math.max(1, Math.min(textsMax, byteCount / 20));
  const serviceCount = Math.max(1, Math.min(128, Math.floor(byteCount / 20)));
  const nodes = names(nodeCount).flatMap((nodeId) =>
    names(Math.min(serviceCount, Math.floor(recordRowsMax / nodeCount))).map((service) =>
      testReport({
        nodeId,
        service,
        atMs: 0,
        inFlight: 0,
        rps: 0,
        held: 0,
        demand: 0,
        latency: noLatency,
      }),
    ),
  );
  return fullRecord({ nodes }).bytes;
}

const noLatency = { count: 0, sumMs: 0 };

function report(count: number) {
  return {
    nodes: Array.from({ length: count }, () => testReport({ atMs: 0 })),
    services: Array.from({ length: count }, () => testPressure()),
  };
}

/** A table of as many empty texts as may be, and rows of nothing. */
function texts(format: number, byteCount: number, at = 1): Buffer {
  const bytes = Buffer.alloc(byteCount);
  bytes[0] = format;
  bytes.writeUInt32LE(Math.min(textsMax, byteCount / 2 - at - 4), at);
  return bytes;
}
