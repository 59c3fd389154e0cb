import { once } from "node:events";
import { connect } from "node:net";
import { ServiceError } from "../../src/core/base/errors.js";
import {
  clusterMetadata,
  findCoordinator,
  type KafkaApi,
} from "../../src/wire/kafka/kafka-apis.js";
import { KafkaConnection } from "../../src/wire/kafka/kafka-connection.js";
import { refuseFailure } from "../../src/wire/kafka/kafka-failure.js";
import { type KafkaFields, KafkaOutput } from "../../src/wire/kafka/kafka-fields.js";
import { waitFor } from "./wait.js";

/** Records of one batch. */
export interface TestBatch {
  readonly topic: string;
  readonly partition?: number;
  /** Times of the records, in milliseconds since 1970. */
  readonly epochMs: readonly number[];
}

/** Writes what a test reads: topics, records and committed offsets. Over a plain listener. */
export class KafkaTestClient {
  readonly #connection: KafkaConnection;

  private constructor(connection: KafkaConnection) {
    this.#connection = connection;
  }

  static async connect(port: number): Promise<KafkaTestClient> {
    const stream = connect({ host: "localhost", port });
    await once(stream, "connect");
    const describe = (cause: Error): ServiceError =>
      new ServiceError("SIGNAL_UNAVAILABLE", undefined, { cause });
    return new KafkaTestClient(new KafkaConnection({ stream, describe }));
  }

  close(): void {
    this.#connection.destroy(new ServiceError("SIGNAL_UNAVAILABLE"));
  }

  /** Whether the broker is registered, and finds coordinators of groups. */
  async isReady(): Promise<boolean> {
    const { brokers } = await this.#connection.ask(clusterMetadata, []);
    await this.#connection.ask(findCoordinator, "any");
    return brokers.size > 0;
  }

  /** Resolves when all partitions have a leader. */
  async createTopic(topic: string, partitions = 1): Promise<void> {
    await this.#connection.ask(createTopics, { topic, partitions });
    await waitFor("partitions have leaders", async () => {
      const { topics } = await this.#connection.ask(clusterMetadata, [topic]);
      const found = topics[0]?.partitions ?? [];
      return found.length === partitions && found.every(({ errorCode }) => errorCode === 0);
    });
  }

  /** Writes one batch. Returns the offset of its first record. */
  async produce(batch: TestBatch): Promise<number> {
    // A broker hears last that it leads a new partition.
    const offset = await waitFor("the records are stored", async () => {
      return [await this.#connection.ask(produceBatch, batch)];
    });
    return offset[0] ?? -1;
  }

  /** Commits an offset for a group without members. */
  async commit(group: string, position: CommittedPosition): Promise<void> {
    // A coordinator that has just been chosen loads its offsets first.
    await waitFor("the commit is stored", async () => {
      await this.#connection.ask(commitOffset, { ...position, group });
      return true;
    });
  }

  async deleteTopic(topic: string): Promise<void> {
    await this.#connection.ask(deleteTopics, topic);
  }
}

interface CommittedPosition {
  readonly topic: string;
  readonly partition?: number;
  readonly offset: number;
}

const bounds = { bytesMax: 65_536, keptBytesMax: 65_536 };

const textBytesMax = 32_767;

const timeoutMs = 10_000;

const createTopics: KafkaApi<{ readonly topic: string; readonly partitions: number }, undefined> = {
  ...bounds,
  name: "CreateTopics",
  key: 19,
  version: 2,
  encode: ({ topic, partitions }, output) => {
    output.int32(1).text(topic).int32(partitions).int16(1);
    output.int32(0).int32(0).int32(timeoutMs).int8(0);
  },
  decode: (fields) => {
    fields.int32();
    fields.list(1, () => {
      fields.text(textBytesMax);
      refuseFailure(fields.int16(), "test");
      fields.nullableText(textBytesMax);
    });
    fields.end();
    return undefined;
  },
};

const deleteTopics: KafkaApi<string, undefined> = {
  ...bounds,
  name: "DeleteTopics",
  key: 20,
  version: 1,
  encode: (topic, output) => output.int32(1).text(topic).int32(timeoutMs),
  decode: (fields) => {
    fields.int32();
    fields.list(1, () => {
      fields.text(textBytesMax);
      refuseFailure(fields.int16(), "test");
    });
    fields.end();
    return undefined;
  },
};

const produceBatch: KafkaApi<TestBatch, number> = {
  ...bounds,
  name: "Produce",
  key: 0,
  version: 3,
  encode: ({ topic, partition = 0, epochMs }, output) => {
    const isNoTransaction = -1;
    output.int16(isNoTransaction).int16(1).int32(timeoutMs).int32(1).text(topic);
    output.int32(1).int32(partition).bytes(encodeBatch(epochMs));
  },
  decode: (fields) => {
    const [offset = -1] = readPartition(fields, () => {
      const first = fields.int64();
      fields.skip(8);
      return first;
    });
    fields.int32();
    fields.end();
    return offset;
  },
};

const commitOffset: KafkaApi<CommittedPosition & { readonly group: string }, undefined> = {
  ...bounds,
  name: "OffsetCommit",
  key: 8,
  version: 2,
  encode: ({ group, topic, partition = 0, offset }, output) => {
    output.text(group).int32(-1).text("").int64(-1).int32(1).text(topic);
    output.int32(1).int32(partition).int64(offset).text("");
  },
  decode: (fields) => {
    readPartition(fields, () => undefined);
    fields.end();
    return undefined;
  },
};

function readPartition<Item>(fields: KafkaFields, read: () => Item): readonly Item[] {
  return fields
    .list(1, () => {
      fields.text(textBytesMax);
      return fields.list(1, () => {
        fields.int32();
        refuseFailure(fields.int16(), "test");
        return read();
      });
    })
    .flat();
}

/** Source: Apache Kafka, "Message format", of a record batch. */
function encodeBatch(epochMs: readonly number[]): Buffer {
  const first = epochMs[0] ?? 0;
  const records = epochMs.map((ms, index) => {
    const value = Buffer.from(`record ${index}`);
    const lengths = [varint(-1), varint(value.length)];
    const body = [Buffer.from([0]), varint(ms - first), varint(index), ...lengths, value];
    const record = Buffer.concat([...body, varint(0)]);
    return Buffer.concat([varint(record.length), record]);
  });
  const noProducer = -1;
  const body = new KafkaOutput().int16(0).int32(epochMs.length - 1);
  body
    .int64(first)
    .int64(Math.max(...epochMs))
    .int64(noProducer)
    .int16(-1)
    .int32(-1);
  body.int32(records.length);
  for (const record of records) body.raw(record);
  const covered = body.whole();
  const head = new KafkaOutput()
    .int32(-1)
    .int8(2)
    .int32(crc32c(covered) | 0)
    .whole();
  return new KafkaOutput()
    .int64(0)
    .bytes(Buffer.concat([head, covered]))
    .whole();
}

/** Zigzag, seven bits a byte. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}

/** Source: RFC 3720, section 12.1. */
function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}
