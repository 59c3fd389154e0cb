import { isSeq } from "yaml";
import type { Block } from "../text/block.js";
import { type FieldType, flag, readBy, ruledText, text, words } from "../text/form.js";
import { field, items, object } from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";
import { parseBroker } from "./broker-address.js";

/** A consumer group, and the brokers from which its lag is read. */
export interface KafkaPlace {
  readonly kind: "kafka";
  /** `host:port`, 1 to `kafkaBrokersListedMax`; one that answers names all others. */
  readonly brokers: readonly string[];
  readonly group: string;
  /** Names of topics, each with at most one `*`; 1 to `kafkaTopicsMax`. */
  readonly topics: readonly string[];
  readonly unit: "messages" | "seconds";
  /** Where the group starts to read in a partition without a commit. */
  readonly offsetReset: "earliest" | "latest";
  readonly tls: boolean;
  /** Authentication of Headgate; undefined: by its certificate, or none. */
  readonly mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | undefined;
  /** Dimension that splits the readings; undefined: one reading. */
  readonly by: "topic" | "partition" | undefined;
}

/** Maximum number of brokers that a policy names. */
export const kafkaBrokersListedMax = 16;

/** Maximum number of topics that a policy names. */
export const kafkaTopicsMax = 64;

const brokerRule: TextRule = {
  charsMax: 262,
  forbidden: /[\p{Cc}\s]/u,
  expected: "a broker's host and port, such as kafka.example:9092",
};

const broker = readBy(text(brokerRule, /:[0-9]{1,5}$/), (reader, place) => {
  const written = reader.readText(place, brokerRule);
  if (written === undefined) return undefined;
  if (parseBroker(written) !== undefined) return written.toLowerCase();
  const isHost = parseBroker(`${written}:9092`) !== undefined;
  return reader.reportContent(place.value ?? place.key, {
    id: "HG233",
    message: "this is not a broker's address",
    expected: brokerRule.expected,
    suggestion: isHost ? `${written}:9092` : undefined,
  });
});

/** Source: Kafka, `Topic.LEGAL_CHARS`, and one `*`. */
const topicPattern = /^[a-zA-Z0-9._-]*\*?[a-zA-Z0-9._-]*$/;

const topicRule: TextRule = {
  charsMax: 249,
  forbidden: /\p{Cc}/u,
  expected: "a topic's name, or one with a `*`: batches-*",
};

const topic: FieldType<string> = readBy(text(topicRule, topicPattern), (reader, place) => {
  const written = reader.readText(place, topicRule);
  if (written === undefined || topicPattern.test(written)) return written;
  return reader.reportContent(place.value ?? place.key, {
    id: "HG234",
    message: "this is not a topic's name",
    expected: topicRule.expected,
  });
});

const groupRule: TextRule = {
  charsMax: 255,
  forbidden: /\p{Cc}/u,
  expected: "a consumer group's name, at most 255 characters",
};

const [brokersNeeded, topicsNeeded] = ["a list of host:port", "a list of topics"];

/** `signal.kafka`. */
export const kafka = object(
  { title: "a kafka", docs: "The lag of a consumer group, read from Kafka." },
  {
    brokers: field(
      items(broker, { expected: brokersNeeded, max: kafkaBrokersListedMax, min: 1 }),
      "Brokers to connect to first, each as `host:port`. One that answers names all others.",
      { needs: brokersNeeded },
    ),
    group: field(ruledText(groupRule), "The consumer group.", { needs: groupRule.expected }),
    topics: field(
      items(topic, { expected: topicsNeeded, max: kafkaTopicsMax, min: 1 }),
      "Topics that the group reads. In each name, one `*` stands for any characters; it " +
        "selects among topics with a committed offset.",
      { needs: topicsNeeded },
    ),
    unit: field(
      words("messages", "seconds"),
      "`messages`: the sum over all partitions. `seconds`: the age of the oldest record that " +
        "is not consumed, of all partitions; it needs `target` and `critical`.",
      { default: "messages" },
    ),
    offsetReset: field(
      words("earliest", "latest"),
      "Where the group starts in a partition without a committed offset, as its " +
        "`auto.offset.reset`. With `latest`, such a partition has no lag.",
      { default: "earliest" },
    ),
    tls: field(
      flag,
      "Uses TLS 1.2 or newer. HEADGATE_SIGNAL_TOKENS may contain HOST.ca.pem, " +
        "HOST.cert.pem and HOST.key.pem for the host of a broker in `brokers`.",
      { default: false },
    ),
    sasl: field(
      words("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
      "The SASL mechanism. The file with the broker's host as its name in " +
        "HEADGATE_SIGNAL_TOKENS contains `user:password`. `PLAIN` needs `tls`. Default: none.",
      { as: "mechanism" },
    ),
  },
  {
    data: ({ brokers = [], group = "", topics = [], ...rest }) => ({
      brokers,
      group,
      topics,
      ...rest,
    }),
    check: (block, { brokers, topics, mechanism, tls }) => {
      if (brokers.length === 0) refuseEmpty(block, "brokers", brokersNeeded);
      if (topics.length === 0) refuseEmpty(block, "topics", topicsNeeded);
      if (mechanism !== "PLAIN" || tls) return;
      const message = "PLAIN sends the password unencrypted without TLS";
      block.report("sasl", { id: "HG235", message, expected: "tls: true, or SCRAM-SHA-512" });
    },
  },
);

/** Reports an empty list. A list with wrong items was reported before. */
function refuseEmpty(block: Block, name: string, expected: string): void {
  const written = block.field(name);
  const content = written && block.reader.contentOf(written);
  if (!isSeq(content) || content.items.length > 0) return;
  block.report(name, { id: "HG125", message: `"${name}" is empty`, expected });
}
