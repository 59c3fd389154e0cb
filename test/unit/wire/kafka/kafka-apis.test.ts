import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import {
  apiVersions,
  clusterMetadata,
  fetchTime,
  findCoordinator,
  type KafkaApi,
  listOffsets,
  offsetFetch,
  saslAuthenticate,
  saslHandshake,
} from "../../../../src/wire/kafka/kafka-apis.js";
import { KafkaFields, KafkaOutput } from "../../../../src/wire/kafka/kafka-fields.js";
import {
  kafkaBrokersMax,
  kafkaPartitionsMax,
  kafkaRecordsKeptBytes,
  kafkaTopicBytesMax,
} from "../../../../src/wire/kafka/kafka-limits.js";
import { recordedAnswers } from "../../../support/kafka-answers.js";
import { propertyRuns } from "../../../support/seeds.js";

type AnyApi = KafkaApi<never, unknown>;

/** What is decoded, or the code of why nothing is. */
function decode(api: AnyApi, bytes: Buffer): unknown {
  try {
    return api.decode(new KafkaFields(bytes));
  } catch (thrown) {
    if (isServiceError(thrown)) return thrown.code;
    throw thrown;
  }
}

const output = (): KafkaOutput => new KafkaOutput();

describe.each(recordedAnswers.map((row) => [row.api.name, row] as const))("%s", (_, recorded) => {
  const { api, bytes, decoded } = recorded;

  it("decodes what Kafka sent", () => {
    expect(decode(api, bytes)).toEqual(decoded);
  });

  it("refuses it where it is cut, at every byte", () => {
    // Of records, nothing behind the time of the first is read.
    const readCount = api === fetchTime ? 93 : bytes.length;
    for (let end = 0; end < readCount; end += 1) {
      expect(decode(api, bytes.subarray(0, end)), `cut at ${end}`).toBe("SIGNAL_MALFORMED");
    }
    expect(decode(api, bytes.subarray(0, readCount))).toEqual(decoded);
  });

  it("refuses bytes behind it", () => {
    const longer = Buffer.concat([bytes, Buffer.from([0])]);
    expect(decode(api, longer)).toEqual(api === fetchTime ? decoded : "SIGNAL_MALFORMED");
  });

  it("ends within its bytes, whatever they are", () => {
    const codes = /^SIGNAL_/;
    const change = fc.record({
      at: fc.nat(bytes.length - 1),
      by: fc.uint8Array({ minLength: 1, maxLength: 8 }),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const changed = Buffer.from(bytes);
        for (const { at, by } of changes) changed.set(by.subarray(0, bytes.length - at), at);
        const answer = decode(api, changed);
        if (typeof answer === "string") expect(answer).toMatch(codes);
      }),
      propertyRuns(500),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        const answer = decode(api, Buffer.from(noise));
        if (typeof answer === "string") expect(answer).toMatch(codes);
      }),
      propertyRuns(100),
    );
  });
});

describe("counts and lengths", () => {
  it.each<[string, AnyApi, KafkaOutput, string]>([
    ["a negative count", apiVersions, output().int16(0).int32(-2), "SIGNAL_MALFORMED"],
    ["2^31 - 1 APIs", apiVersions, output().int16(0).int32(0x7fffffff), "SIGNAL_TOO_LARGE"],
    [
      "too many brokers",
      clusterMetadata,
      output()
        .int32(0)
        .int32(kafkaBrokersMax + 1),
      "SIGNAL_TOO_LARGE",
    ],
    ["2^31 - 1 topics", offsetFetch, output().int32(0x7fffffff), "SIGNAL_TOO_LARGE"],
    [
      "topics that are not there",
      offsetFetch,
      output().int32(kafkaPartitionsMax),
      "SIGNAL_MALFORMED",
    ],
    [
      "more partitions than all topics may have together",
      listOffsets,
      output()
        .int32(2)
        .text("a")
        .int32(1)
        .int32(0)
        .int16(0)
        .int64(0)
        .int64(0)
        .text("b")
        .int32(kafkaPartitionsMax),
      "SIGNAL_TOO_LARGE",
    ],
    [
      "a topic's name that is too long",
      offsetFetch,
      output()
        .int32(1)
        .text("a".repeat(kafkaTopicBytesMax + 1)),
      "SIGNAL_MALFORMED",
    ],
    ["a negative length", saslAuthenticate, output().int16(0).int16(-2), "SIGNAL_MALFORMED"],
    [
      "2^31 - 1 bytes",
      saslAuthenticate,
      output().int16(0).int16(-1).int32(0x7fffffff),
      "SIGNAL_MALFORMED",
    ],
    [
      "an offset that a double does not hold",
      listOffsets,
      output().int32(1).text("a").int32(1).int32(0).int16(0).int64(0).raw(Buffer.alloc(8, 0x7f)),
      "SIGNAL_MALFORMED",
    ],
  ])("refuses %s before anything is allocated", (_, api, written, code) => {
    expect(decode(api, written.whole())).toBe(code);
  });

  it.each(["", "a b", "a\0b", "a/b", "a@b"])("refuses %j as a host", (host) => {
    const broker = output().int32(0).int16(0).int16(-1).int32(1).text(host).int32(9_092).whole();
    expect(decode(findCoordinator, broker)).toBe("SIGNAL_MALFORMED");
  });

  it.each([0, -1, 65_536])("refuses %i as a port", (port) => {
    const broker = output().int32(0).int16(0).int16(-1).int32(1).text("a").int32(port).whole();
    expect(decode(findCoordinator, broker)).toBe("SIGNAL_MALFORMED");
  });
});

describe("errors of brokers", () => {
  it.each<[AnyApi, KafkaOutput, string]>([
    [saslHandshake, output().int16(33).int32(0), "SIGNAL_REFUSED"],
    [saslAuthenticate, output().int16(58).text("no").bytes(Buffer.alloc(0)), "SIGNAL_REFUSED"],
    [findCoordinator, output().int32(0).int16(15).int16(-1), "SIGNAL_UNAVAILABLE"],
    [offsetFetch, output().int32(0).int16(16), "SIGNAL_UNAVAILABLE"],
    [offsetFetch, output().int32(0).int16(30), "SIGNAL_REFUSED"],
    [apiVersions, output().int16(9_999), "SIGNAL_REFUSED"],
  ])("are failures with codes of ours", (api, written, code) => {
    expect(decode(api, written.whole())).toBe(code);
  });
});

describe("the time of a batch", () => {
  const answer = (attributes: number, times: readonly [number, number], magic = 2): Buffer => {
    const batch = output().int64(0).int32(57).int32(0).int8(magic).int32(0).int16(attributes);
    batch.int32(0).int64(times[0]).int64(times[1]);
    const head = output().int32(0).int32(1).text("a").int32(1).int32(0).int16(0).int64(9).int64(9);
    return head.int32(-1).bytes(batch.whole()).whole();
  };

  it.each<[string, Buffer, number | undefined]>([
    ["made by the producer: the first record's", answer(0, [5, 9]), 5],
    ["of arrival: the same for all records", answer(0x08, [5, 9]), 9],
    ["that a cleaner has marked", answer(0x40, [5, 9]), 9],
    ["that nobody has set", answer(0, [-1, -1]), undefined],
    ["in the format of Kafka 0.10", answer(0, [5, 9], 1), undefined],
  ])("%s", (_, bytes, epochMs) => {
    expect(decode(fetchTime, bytes)).toEqual({ errorCode: 0, epochMs });
  });

  it("is within what is kept of a response, whatever the topic's name", () => {
    const head = 4 + 4 + 2 + kafkaTopicBytesMax + 4 + 4 + 2 + 8 + 8 + 4 + 4;
    expect(head + 61).toBeLessThanOrEqual(kafkaRecordsKeptBytes);
  });
});
