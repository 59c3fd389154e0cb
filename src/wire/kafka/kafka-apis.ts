import { refuseFailure } from "./kafka-failure.js";
import { type KafkaFields, type KafkaOutput, malformed } from "./kafka-fields.js";
import type { FrameBounds } from "./kafka-frames.js";
import {
  kafkaAnswerBytesMax,
  kafkaBrokersMax,
  kafkaHostBytesMax,
  kafkaPartitionsMax,
  kafkaRecordsBytesMax,
  kafkaRecordsKeptBytes,
  kafkaSaslBytesMax,
  kafkaTopicBytesMax,
} from "./kafka-limits.js";

/**
 * A request to brokers, in one version. The versions are the newest that have no tagged fields and
 * only read: Kafka 1.0 to 4.x supports all of them.
 *
 * Source: Apache Kafka, "Protocol", API keys and messages; KIP-896 for the versions of 4.x.
 */
export interface KafkaApi<Request, Answer> extends FrameBounds {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  encode(request: Request, output: KafkaOutput): void;
  /** Reads a response to its end. @throws ServiceError SIGNAL_ codes */
  decode(fields: KafkaFields): Answer;
}

/** A partition of a topic. */
export interface PartitionId {
  readonly topic: string;
  readonly partition: number;
}

/** A broker, as other brokers know it. */
export interface KafkaBroker {
  readonly host: string;
  readonly port: number;
}

const small = { bytesMax: kafkaSaslBytesMax, keptBytesMax: kafkaSaslBytesMax };
const large = { bytesMax: kafkaAnswerBytesMax, keptBytesMax: kafkaAnswerBytesMax };

/** Maximum length of the texts that are read and dropped: those of errors, racks and commits. */
const textBytesMax = 32_767;

/** The range of versions that a broker serves, by API key. */
export const apiVersions: KafkaApi<undefined, ReadonlyMap<number, readonly [number, number]>> = {
  ...small,
  name: "ApiVersions",
  key: 18,
  version: 0,
  encode: () => {},
  decode: (fields) => {
    refuseFailure(fields.int16(), "ApiVersions");
    const ranges = fields.list(apisMax, () => {
      return [fields.int16(), [fields.int16(), fields.int16()]] as const;
    });
    fields.end();
    return new Map(ranges);
  },
};

/** Maximum number of APIs of a broker; Kafka 4.3 has 91. */
const apisMax = 1_024;

/** Chooses a SASL mechanism. */
export const saslHandshake: KafkaApi<string, undefined> = {
  ...small,
  name: "SaslHandshake",
  key: 17,
  version: 1,
  encode: (mechanism, output) => output.text(mechanism),
  decode: (fields) => {
    refuseFailure(fields.int16(), "SaslHandshake");
    fields.list(apisMax, () => fields.text(textBytesMax));
    fields.end();
    return undefined;
  },
};

/** One step of an authentication. */
export const saslAuthenticate: KafkaApi<string, string> = {
  ...small,
  name: "SaslAuthenticate",
  key: 36,
  version: 0,
  encode: (message, output) => output.bytes(Buffer.from(message)),
  decode: (fields) => {
    refuseFailure(fields.int16(), "SaslAuthenticate");
    fields.nullableText(textBytesMax);
    const message = fields.bytes().toString("utf8");
    fields.end();
    return message;
  },
};

/** The partitions of one topic, or the error code. */
export interface TopicMetadata {
  readonly topic: string;
  readonly errorCode: number;
  readonly partitions: readonly {
    readonly partition: number;
    readonly errorCode: number;
    /** The node that leads it. */
    readonly leader: number;
  }[];
}

/** A cluster as one broker knows it. */
export interface ClusterMetadata {
  readonly brokers: ReadonlyMap<number, KafkaBroker>;
  readonly topics: readonly TopicMetadata[];
}

/** Brokers, and the partitions of topics. Creates no topic. */
export const clusterMetadata: KafkaApi<readonly string[], ClusterMetadata> = {
  ...large,
  name: "Metadata",
  key: 3,
  version: 4,
  encode: (topics, output) => output.list(topics, (topic) => output.text(topic)).int8(0),
  decode: (fields) => {
    fields.int32();
    const brokers = fields.list(kafkaBrokersMax, () => {
      const broker = [fields.int32(), readBroker(fields)] as const;
      fields.nullableText(textBytesMax);
      return broker;
    });
    fields.nullableText(textBytesMax);
    fields.int32();
    const topics = fields.list(kafkaPartitionsMax, () => readTopic(fields));
    fields.end();
    return { brokers: new Map(brokers), topics };
  },
};

function readTopic(fields: KafkaFields): TopicMetadata {
  const errorCode = fields.int16();
  const topic = fields.text(kafkaTopicBytesMax);
  fields.int8();
  const partitions = fields.list(kafkaPartitionsMax, () => {
    const own = { errorCode: fields.int16(), partition: fields.int32(), leader: fields.int32() };
    // Its replicas, and those that are in sync.
    fields.list(kafkaBrokersMax, () => fields.int32());
    fields.list(kafkaBrokersMax, () => fields.int32());
    return own;
  });
  return { topic, errorCode, partitions };
}

/** A host that can be connected to. */
function readBroker(fields: KafkaFields): KafkaBroker {
  const host = fields.text(kafkaHostBytesMax);
  const port = fields.int32();
  if (!/^[a-z0-9_.:-]+$/i.test(host) || port < 1 || port > 65_535) malformed();
  return { host, port };
}

/** The broker that keeps the offsets of a group. */
export const findCoordinator: KafkaApi<string, KafkaBroker> = {
  ...small,
  name: "FindCoordinator",
  key: 10,
  version: 1,
  encode: (group, output) => output.text(group).int8(0),
  decode: (fields) => {
    fields.int32();
    refuseFailure(fields.int16(), "FindCoordinator");
    fields.nullableText(textBytesMax);
    fields.int32();
    const broker = readBroker(fields);
    fields.end();
    return broker;
  },
};

/** A partition, and the offset in it that comes next. */
export interface PartitionOffset extends PartitionId {
  readonly offset: number;
}

/** All offsets that a group has committed. */
export const offsetFetch: KafkaApi<string, readonly PartitionOffset[]> = {
  ...large,
  name: "OffsetFetch",
  key: 9,
  version: 2,
  // A null array: all topics.
  encode: (group, output) => output.text(group).int32(-1),
  decode: (fields) => {
    const offsets = readPartitions(fields, (topic, partition) => {
      const offset = fields.int64();
      fields.nullableText(textBytesMax);
      refuseFailure(fields.int16(), "OffsetFetch");
      return { topic, partition, offset };
    });
    refuseFailure(fields.int16(), "OffsetFetch");
    fields.end();
    return offsets.filter(({ offset }) => offset >= 0);
  },
};

/** Which end of partitions is asked for. */
export interface EndQuestion {
  readonly partitions: readonly PartitionId[];
  readonly end: "earliest" | "latest";
}

/** An end of a partition, or the error code. */
export interface PartitionEnd extends PartitionOffset {
  readonly errorCode: number;
}

/** The first offset of partitions, or the one after their last. */
export const listOffsets: KafkaApi<EndQuestion, readonly PartitionEnd[]> = {
  ...large,
  name: "ListOffsets",
  key: 2,
  version: 1,
  encode: ({ partitions, end }, output) => {
    const timestamp = end === "latest" ? -1 : -2;
    writeTopics(output.int32(consumerId), partitions, ({ partition }) => {
      output.int32(partition).int64(timestamp);
    });
  },
  decode: (fields) => {
    const ends = readPartitions(fields, (topic, partition) => {
      const errorCode = fields.int16();
      fields.skip(int64Bytes);
      return { topic, partition, errorCode, offset: fields.int64() };
    });
    fields.end();
    return ends;
  },
};

/** Time of the batch of records at an offset, or the error code. */
export interface BatchTime {
  readonly errorCode: number;
  /**
   * When the first record of the batch was created, or if the topic keeps times of arrival, when it
   * arrived: milliseconds since 1970. Undefined: there is no record at the offset, or no time.
   */
  readonly epochMs: number | undefined;
}

/**
 * The time of the batch at an offset of one partition. One byte is requested; a broker returns the
 * whole batch all the same, and only of the first partition, so each has a request of its own.
 *
 * Source: KIP-74 for the bytes of a response; Kafka, "Message format", of a record batch.
 */
export const fetchTime: KafkaApi<PartitionOffset, BatchTime> = {
  bytesMax: kafkaRecordsBytesMax,
  keptBytesMax: kafkaRecordsKeptBytes,
  name: "Fetch",
  key: 1,
  version: 4,
  encode: (position, output) => {
    const [waitMs, bytesMin, bytesMax, readUncommitted] = [0, 0, 1, 0];
    output.int32(consumerId).int32(waitMs).int32(bytesMin).int32(bytesMax).int8(readUncommitted);
    writeTopics(output, [position], ({ partition, offset }) => {
      output.int32(partition).int64(offset).int32(bytesMax);
    });
  },
  decode: (fields) => {
    fields.int32();
    const [time = malformed()] = readPartitions(fields, () => readTime(fields), 1);
    return time;
  },
};

/** Reads the first batch. Nothing follows it: only the head of the response is kept. */
function readTime(fields: KafkaFields): BatchTime {
  const errorCode = fields.int16();
  fields.skip(int64Bytes + int64Bytes);
  // Without isolation, brokers list no aborted transactions.
  fields.list(0, () => undefined);
  const recordsBytes = fields.int32();
  if (errorCode !== 0 || recordsBytes <= 0) return { errorCode, epochMs: undefined };
  // Base offset, length and leader's epoch.
  fields.skip(int64Bytes + 8);
  // The format of Kafka 0.10 and older has its times elsewhere.
  if (fields.int8() !== batchFormat) return { errorCode, epochMs: undefined };
  fields.skip(4);
  const attributes = fields.int16();
  fields.skip(4);
  const [first, last] = [fields.int64(), fields.int64()];
  const epochMs = (attributes & (hasArrivalTime | hasDeleteHorizon)) === 0 ? first : last;
  return { errorCode, epochMs: epochMs < 0 ? undefined : epochMs };
}

const int64Bytes = 8;

const batchFormat = 2;

/** All records have the time of the last one. */
const hasArrivalTime = 0x08;

/** The first time is when tombstones are removed. Source: KIP-534. */
const hasDeleteHorizon = 0x40;

/** The sender of requests is not a replica. */
const consumerId = -1;

/** Writes partitions below their topics, each topic once. */
function writeTopics<Position extends PartitionId>(
  output: KafkaOutput,
  positions: readonly Position[],
  write: (position: Position) => void,
): void {
  const topics = new Map<string, Position[]>();
  for (const position of positions) {
    const own = topics.get(position.topic);
    if (own === undefined) topics.set(position.topic, [position]);
    else own.push(position);
  }
  output.list([...topics], ([topic, own]) => output.text(topic).list(own, write));
}

/** Reads partitions below their topics. */
function readPartitions<Item>(
  fields: KafkaFields,
  read: (topic: string, partition: number) => Item,
  countMax = kafkaPartitionsMax,
): readonly Item[] {
  const items: Item[] = [];
  fields.list(countMax, () => {
    const topic = fields.text(kafkaTopicBytesMax);
    fields.list(countMax - items.length, () => {
      items.push(read(topic, fields.int32()));
    });
  });
  return items;
}
