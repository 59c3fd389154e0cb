import { ServiceError } from "../../core/base/errors.js";
import { someOf } from "./signal-answers.js";
import { ReadingSum, type SignalReadings } from "./signal-readings.js";

/** Which lag of a consumer group is read. */
export interface LagQuestion {
  /** Names of topics, each with at most one `*`, which stands for any characters. */
  readonly topics: readonly string[];
  /** `messages` are summed; `seconds` are the maximum of all partitions. */
  readonly unit: "messages" | "seconds";
  /** Start position of a group that has not committed an offset in a partition. */
  readonly offsetReset: "earliest" | "latest";
  /**
   * How readings are split. The key of a topic is what `*` stands for, or else its name; that of a
   * partition is its number. Undefined: one reading.
   */
  readonly by: "topic" | "partition" | undefined;
  /** Maximum number of keys. */
  readonly keysMax: number;
}

/** A partition, and the bounds of the records in it. */
export interface PartitionRange {
  readonly topic: string;
  readonly partition: number;
  /** Undefined: the group has committed nothing. */
  readonly committed: number | undefined;
  /** The first offset that is kept, and the one after the last. */
  readonly earliest: number;
  readonly latest: number;
}

/**
 * Returns the offset that a group reads next. Records that the topic has dropped are no longer
 * read, and an offset beyond the end belongs to an earlier topic of the same name.
 */
export function nextOffset(
  { committed, earliest, latest }: PartitionRange,
  { offsetReset }: Pick<LagQuestion, "offsetReset">,
): number {
  const next = committed ?? (offsetReset === "earliest" ? earliest : latest);
  return Math.min(Math.max(next, earliest), latest);
}

/** Returns what `*` stands for in a topic's name, or the name. Undefined if none fits. */
export function topicKey(topics: readonly string[], topic: string): string | undefined {
  for (const pattern of topics) {
    const star = pattern.indexOf("*");
    if (star === -1) {
      if (pattern === topic) return topic;
      continue;
    }
    const [start, end] = [pattern.slice(0, star), pattern.slice(star + 1)];
    const isLong = topic.length > start.length + end.length;
    if (!isLong || !topic.startsWith(start) || !topic.endsWith(end)) continue;
    return topic.slice(start.length, topic.length - end.length);
  }
  return undefined;
}

/**
 * The lag of a group, combined from partitions. A key with a partition whose lag is unknown has no
 * reading, because a value that is too low would admit too much. Other keys have theirs.
 */
export class LagReadings {
  readonly #question: LagQuestion;
  readonly #lags = new Map<string | undefined, number>();
  readonly #failures = new Map<string | undefined, ServiceError>();

  constructor(question: LagQuestion) {
    this.#question = question;
  }

  /** Adds the lag of one partition, in the unit of the question. */
  add(topic: string, partition: number, lag: number): void {
    const key = this.#keyOf(topic, partition);
    const before = this.#lags.get(key) ?? 0;
    const { unit } = this.#question;
    this.#lags.set(key, unit === "messages" ? before + lag : Math.max(before, lag));
  }

  /** Notes that the lag of one partition is unknown. */
  fail(topic: string, partition: number, failure: ServiceError): void {
    const key = this.#keyOf(topic, partition);
    if (!this.#failures.has(key)) this.#failures.set(key, failure);
  }

  /** @throws ServiceError the first failure, or SIGNAL_EMPTY, if no key has a reading */
  finish(): SignalReadings {
    const { by, keysMax } = this.#question;
    const sum = new ReadingSum(by === undefined ? undefined : keysMax);
    for (const [key, lag] of this.#lags) if (!this.#failures.has(key)) sum.add(lag, key);
    const [failure] = this.#failures.values();
    if (failure !== undefined && sum.readings === undefined) throw failure;
    return someOf(sum);
  }

  #keyOf(topic: string, partition: number): string | undefined {
    const { by, topics } = this.#question;
    if (by === undefined) return undefined;
    return by === "topic" ? topicKey(topics, topic) : String(partition);
  }
}

/** @throws ServiceError SIGNAL_EMPTY */
export function refuseUnknownGroup(): never {
  throw new ServiceError("SIGNAL_EMPTY", "The group has committed no offset in these topics.");
}
