import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/core/base/errors.js";
import { findCoordinator } from "../../../../src/wire/kafka/kafka-apis.js";
import { KafkaConnection } from "../../../../src/wire/kafka/kafka-connection.js";
import { KafkaOutput } from "../../../../src/wire/kafka/kafka-fields.js";
import { kafkaWaitingMax } from "../../../../src/wire/kafka/kafka-limits.js";

/** A connection, and its other side. */
function open() {
  const sent: Buffer[] = [];
  const stream = new Duplex({
    read: () => {},
    write: (bytes: Buffer, _, done) => {
      sent.push(bytes);
      done();
    },
  });
  const describe = (cause: Error): ServiceError =>
    new ServiceError("SIGNAL_UNAVAILABLE", "The connection failed.", { cause });
  const connection = new KafkaConnection({ stream, describe });
  const answer = (id: number, port: number): void => {
    const body = new KafkaOutput().int32(id).int32(0).int16(0).int16(-1).int32(1);
    stream.push(new KafkaOutput().bytes(body.text("a").int32(port).whole()).whole());
  };
  return { connection, stream, sent, answer };
}

describe("KafkaConnection", () => {
  it("sends requests before earlier ones are answered", async () => {
    const { connection, sent, answer } = open();
    const asked = [connection.ask(findCoordinator, "one"), connection.ask(findCoordinator, "two")];
    expect(sent.map((bytes) => bytes.toString("latin1"))).toEqual([
      "\0\0\0\x18\0\x0a\0\x01\0\0\0\0\0\x08headgate\0\x03one\0",
      "\0\0\0\x18\0\x0a\0\x01\0\0\0\x01\0\x08headgate\0\x03two\0",
    ]);
    answer(0, 1);
    answer(1, 2);
    expect(await Promise.all(asked)).toEqual([
      { host: "a", port: 1 },
      { host: "a", port: 2 },
    ]);
  });

  it("goes on after a response that is wrong in itself", async () => {
    const { connection, answer } = open();
    const asked = [connection.ask(findCoordinator, "one"), connection.ask(findCoordinator, "two")];
    answer(0, 0);
    answer(1, 2);
    expect(await Promise.allSettled(asked)).toMatchObject([
      { reason: { code: "SIGNAL_MALFORMED" } },
      { value: { port: 2 } },
    ]);
  });

  it.each<[string, (peer: ReturnType<typeof open>) => void, string]>([
    ["a response out of order", ({ answer }) => answer(1, 1), "SIGNAL_MALFORMED"],
    ["its end", ({ stream }) => stream.push(null), "SIGNAL_UNAVAILABLE"],
    ["an error", ({ stream }) => stream.destroy(new Error("reset")), "SIGNAL_UNAVAILABLE"],
    [
      "its caller",
      ({ connection }) => connection.destroy(new ServiceError("SIGNAL_TIMEOUT")),
      "SIGNAL_TIMEOUT",
    ],
  ])("fails all requests, and later ones, by %s", async (_, act, code) => {
    const peer = open();
    const asked = [
      peer.connection.ask(findCoordinator, "one"),
      peer.connection.ask(findCoordinator, "two"),
    ];
    act(peer);
    const failures = [{ reason: { code } }, { reason: { code } }];
    expect(await Promise.allSettled(asked)).toMatchObject(failures);
    await expect(peer.connection.ask(findCoordinator, "three")).rejects.toMatchObject({ code });
    expect(peer.stream.destroyed).toBe(true);
  });

  it("refuses a response that nobody has asked for", async () => {
    const { connection, answer } = open();
    answer(0, 1);
    await new Promise((resolve) => setImmediate(resolve));
    await expect(connection.ask(findCoordinator, "one")).rejects.toMatchObject({
      code: "SIGNAL_MALFORMED",
    });
  });

  it("takes so many requests at a time", async () => {
    const { connection } = open();
    const asked = Array.from({ length: kafkaWaitingMax }, () =>
      connection.ask(findCoordinator, "one"),
    );
    await expect(connection.ask(findCoordinator, "more")).rejects.toMatchObject({
      code: "SIGNAL_TOO_LARGE",
    });
    connection.destroy(new ServiceError("SIGNAL_TIMEOUT"));
    expect((await Promise.allSettled(asked)).every(({ status }) => status === "rejected")).toBe(
      true,
    );
  });
});
