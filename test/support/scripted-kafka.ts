import { type AddressInfo, createServer, type Socket } from "node:net";
import { KafkaOutput } from "../../src/wire/kafka/kafka-fields.js";
import type { Stage } from "./stage.js";

/** What a broker sends in answer to a request: a body, bytes as they are, or nothing. */
export type ScriptedAnswer = KafkaOutput | Buffer | undefined;

/** Answers by API key. `count`: how many requests of the key came before. */
export type KafkaScript = Readonly<
  Record<number, (count: number, request: Buffer) => ScriptedAnswer>
>;

/** A broker that says what a test tells it to, true or not. */
export async function startScriptedKafka(stage: Stage, script: KafkaScript): Promise<number> {
  const sockets = new Set<Socket>();
  const counts = new Map<number, number>();
  const server = createServer((socket) => {
    sockets.add(socket);
    // A client that goes is no failure.
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= 4 + received.readInt32BE()) {
        const request = received.subarray(4, 4 + received.readInt32BE());
        received = received.subarray(4 + request.length);
        const key = request.readInt16BE();
        const count = counts.get(key) ?? 0;
        counts.set(key, count + 1);
        const answer = script[key]?.(count, request);
        if (answer instanceof KafkaOutput) socket.write(framed(request, answer));
        else if (answer !== undefined) socket.write(answer);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function framed(request: Buffer, answer: KafkaOutput): Buffer {
  const body = Buffer.concat([request.subarray(4, 8), answer.whole()]);
  return new KafkaOutput().bytes(body).whole();
}

const answer = (): KafkaOutput => new KafkaOutput();

/** A script of one broker that leads partition 0 of each topic: two records, one not consumed. */
export function scriptOf(topics: readonly string[], portOf: () => number): KafkaScript {
  const broker = (output: KafkaOutput): KafkaOutput => output.text("127.0.0.1").int32(portOf());
  const ofEach = (output: KafkaOutput, write: () => void): KafkaOutput =>
    output.list(topics, (topic) => {
      output.text(topic).int32(1).int32(0);
      write();
    });
  return {
    18: () => versionsAnswer(),
    10: () => broker(answer().int32(0).int16(0).int16(-1).int32(1)),
    9: () => {
      const output = answer();
      return ofEach(output, () => output.int64(1).int16(-1).int16(0)).int16(0);
    },
    3: () => metadataAnswer(topics, { portOf, leaderOf: () => 1 }),
    2: (_, request) => {
      const output = answer();
      // The last field is the time that is asked for: -1 is the end.
      const isLatest = request.readBigInt64BE(request.length - 8) === -1n;
      return ofEach(output, () =>
        output
          .int16(0)
          .int64(-1)
          .int64(isLatest ? 2 : 0),
      );
    },
  };
}

/** Brokers and partitions; broker 1 is this one. */
export function metadataAnswer(
  topics: readonly string[],
  { portOf, leaderOf }: { portOf: () => number; leaderOf: (topic: string) => number },
): KafkaOutput {
  const output = answer().int32(0).int32(1).int32(1).text("127.0.0.1").int32(portOf()).int16(-1);
  return output
    .int16(-1)
    .int32(1)
    .list(topics, (topic) => {
      const leader = leaderOf(topic);
      output.int16(0).text(topic).int8(0).int32(1);
      output.int16(0).int32(0).int32(leader).int32(0).int32(0);
    });
}

/** Versions as Kafka 4.3 has them. */
export function versionsAnswer(fetchMin = 4): KafkaOutput {
  const output = answer().int16(0);
  const ranges = [
    [1, fetchMin, 18],
    [2, 1, 11],
    [3, 0, 13],
    [9, 1, 10],
    [10, 0, 6],
  ];
  return output.list(ranges, (range) => {
    for (const number of range) output.int16(number);
  });
}
