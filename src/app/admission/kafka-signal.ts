import type { Clock, Random } from "../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../core/base/errors.js";
import {
  type LagQuestion,
  LagReadings,
  nextOffset,
  type PartitionRange,
  refuseUnknownGroup,
  topicKey,
} from "../../fleet/signals/kafka-lag.js";
import type { SignalReader, SignalReadings } from "../../fleet/signals/signal-readings.js";
import type { KafkaPlace } from "../../policy/services/kafka-source.js";
import {
  type ClusterMetadata,
  clusterMetadata,
  fetchTime,
  findCoordinator,
  type KafkaBroker,
  listOffsets,
  offsetFetch,
  type PartitionId,
  type PartitionOffset,
} from "../../wire/kafka/kafka-apis.js";
import type { KafkaConnection } from "../../wire/kafka/kafka-connection.js";
import { kafkaFailure, refuseFailure } from "../../wire/kafka/kafka-failure.js";
import { KafkaSession } from "./kafka-session.js";

interface KafkaSignalParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly place: KafkaPlace;
  readonly keysMax: number | undefined;
  readonly tokensPath: string | undefined;
}

/** Maximum number of partitions in the topics of one signal. */
export const lagPartitionsMax = 4_096;

const leaderNotAvailable = 5;

const usedApis = [clusterMetadata, findCoordinator, offsetFetch, listOffsets, fetchTime] as const;

/**
 * Reads the lag of a consumer group from Kafka. Each poll opens its own connections, and reads the
 * coordinator, the group's offsets and the partitions anew. It changes nothing in the cluster.
 */
export class KafkaSignalReader implements SignalReader {
  readonly #parts: KafkaSignalParts;
  readonly #question: LagQuestion;
  /** Index of the policy's broker that answered last. */
  #brokerIndex = 0;

  constructor(parts: KafkaSignalParts) {
    this.#parts = parts;
    this.#question = { ...parts.place, keysMax: parts.keysMax ?? 0 };
  }

  async read(deadlineMs: number): Promise<SignalReadings> {
    const session = new KafkaSession({ ...this.#parts, deadlineMs });
    try {
      const { connection, index } = await session.bootstrap(this.#brokerIndex, usedApis);
      this.#brokerIndex = index;
      return await this.#readLag(session, connection);
    } finally {
      session.close();
    }
  }

  async #readLag(session: KafkaSession, first: KafkaConnection): Promise<SignalReadings> {
    const { group, topics } = this.#parts.place;
    const coordinator = await session.to(await first.ask(findCoordinator, group));
    const all = await coordinator.ask(offsetFetch, group);
    const committed = all.filter(({ topic }) => topicKey(topics, topic) !== undefined);
    if (committed.length === 0) refuseUnknownGroup();
    const exact = topics.filter((topic) => !topic.includes("*"));
    const names = new Set([...exact, ...committed.map(({ topic }) => topic)]);
    const cluster = await first.ask(clusterMetadata, [...names]);
    const readings = new LagReadings(this.#question);
    const byLeader = this.#byLeader(cluster, readings);
    const reads = [...byLeader].map(([broker, partitions]) =>
      this.#readBroker(() => session.to(broker), { partitions, committed, readings }),
    );
    await Promise.all(reads);
    return readings.finish();
  }

  /** Groups partitions by their leading broker. Those without one become failures. */
  #byLeader(
    { brokers, topics }: ClusterMetadata,
    readings: LagReadings,
  ): ReadonlyMap<KafkaBroker, readonly PartitionId[]> {
    const byLeader = new Map<KafkaBroker, PartitionId[]>();
    let count = 0;
    for (const { topic, errorCode, partitions } of topics) {
      this.#refuseTopic(topic, errorCode);
      count += partitions.length;
      for (const { partition, errorCode: own, leader } of partitions) {
        const broker = brokers.get(leader);
        const failure = kafkaFailure(
          broker === undefined ? leaderNotAvailable : own,
          clusterMetadata.name,
        );
        if (failure !== undefined) readings.fail(topic, partition, failure);
        if (failure !== undefined || broker === undefined) continue;
        const led = byLeader.get(broker);
        if (led === undefined) byLeader.set(broker, [{ topic, partition }]);
        else led.push({ topic, partition });
      }
    }
    if (count <= lagPartitionsMax) return byLeader;
    const words = `The topics have more than ${lagPartitionsMax} partitions.`;
    throw new ServiceError("SIGNAL_TOO_LARGE", words);
  }

  /** Refuses a topic with an error. The message names its position in the policy. */
  #refuseTopic(topic: string, errorCode: number): void {
    const { topics } = this.#parts.place;
    const index = topics.findIndex((pattern) => topicKey([pattern], topic) !== undefined);
    refuseFailure(errorCode, `kafka.topics[${index}]`);
  }

  /** Reads the partitions that one broker leads. An error is a failure of these partitions only. */
  async #readBroker(
    connect: () => Promise<KafkaConnection>,
    { partitions, committed, readings }: LedPartitions,
  ): Promise<void> {
    try {
      const connection = await connect();
      const ranges = await readRanges(connection, { partitions, committed, readings });
      await Promise.all(ranges.map((range) => this.#readPartition(connection, range, readings)));
    } catch (thrown) {
      const failure = toServiceError(thrown);
      for (const { topic, partition } of partitions) readings.fail(topic, partition, failure);
    }
  }

  async #readPartition(
    connection: KafkaConnection,
    range: PartitionRange,
    readings: LagReadings,
  ): Promise<void> {
    const { topic, partition, latest } = range;
    const offset = nextOffset(range, this.#question);
    try {
      const isCounted = this.#question.unit === "messages" || offset === latest;
      const lag = isCounted
        ? latest - offset
        : await this.#readAge(connection, { topic, partition, offset });
      readings.add(topic, partition, lag);
    } catch (thrown) {
      readings.fail(topic, partition, toServiceError(thrown));
    }
  }

  /** Returns the age of the record at an offset, in seconds. */
  async #readAge(connection: KafkaConnection, position: PartitionOffset): Promise<number> {
    const { errorCode, epochMs } = await connection.ask(fetchTime, position);
    refuseFailure(errorCode, fetchTime.name);
    if (epochMs === undefined) {
      throw new ServiceError("SIGNAL_EMPTY", "The records at an offset of the group have no time.");
    }
    return Math.max(0, this.#parts.clock.epochUs() / 1_000 - epochMs) / 1_000;
  }
}

interface LedPartitions {
  readonly partitions: readonly PartitionId[];
  readonly committed: readonly PartitionOffset[];
  readonly readings: LagReadings;
}

/** Reads the earliest and latest offsets of the partitions that a broker leads. */
async function readRanges(
  connection: KafkaConnection,
  { partitions, committed, readings }: LedPartitions,
): Promise<readonly PartitionRange[]> {
  const nameOf = ({ topic, partition }: PartitionId): string => `${topic}/${partition}`;
  const offsets = new Map(committed.map((one) => [nameOf(one), one.offset]));
  const [firsts, lasts] = await Promise.all([
    connection.ask(listOffsets, { partitions, end: "earliest" }),
    connection.ask(listOffsets, { partitions, end: "latest" }),
  ]);
  const [earliest, latest] = [firsts, lasts].map(
    (ends) => new Map(ends.map((end) => [nameOf(end), end])),
  );
  return partitions.flatMap((id) => {
    const [first, last] = [earliest?.get(nameOf(id)), latest?.get(nameOf(id))];
    const failure = kafkaFailure((first?.errorCode || last?.errorCode) ?? 0, listOffsets.name);
    if (first !== undefined && last !== undefined && failure === undefined) {
      const bounds = { earliest: first.offset, latest: last.offset };
      return [{ ...id, ...bounds, committed: offsets.get(nameOf(id)) }];
    }
    readings.fail(id.topic, id.partition, failure ?? new ServiceError("SIGNAL_MALFORMED"));
    return [];
  });
}
