/** Maximum size of a response, in bytes. It is decoded in one go, while no request is answered. */
export const kafkaAnswerBytesMax = 1_048_576;

/** Maximum size of a response that authenticates, in bytes. Its sender is not known yet. */
export const kafkaSaslBytesMax = 16_384;

/**
 * Maximum size of a response with records, in bytes. Only its first `kafkaRecordsKeptBytes` are
 * kept: a broker returns a whole batch, however few bytes were requested.
 */
export const kafkaRecordsBytesMax = 67_108_864;

/** The part of a response with records that is kept, in bytes: all before the first record. */
export const kafkaRecordsKeptBytes = 512;

/** Maximum number of brokers of a cluster. */
export const kafkaBrokersMax = 1_024;

/** Maximum number of partitions in a response. */
export const kafkaPartitionsMax = 8_192;

/** Maximum number of requests of a connection that wait for their response. */
export const kafkaWaitingMax = 4_096;

/** Maximum length of a topic's name, in bytes. Source: Kafka, `Topic.MAX_NAME_LENGTH`. */
export const kafkaTopicBytesMax = 249;

/** Maximum length of a host's name, in bytes. Source: RFC 1035, section 2.3.4. */
export const kafkaHostBytesMax = 253;
