import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { toCallFailure } from "../../../../src/rpc/grpc/status.js";
import type { StreamAcceptor, StreamReader } from "../../../../src/wire/base/http2.js";
import { NativeServer } from "../../../../src/wire/grpc/native-server.js";
import { partialMsMax, peerPartialBytesMax } from "../../../../src/wire/grpc/partial-bytes.js";
import {
  type BidiAnswers,
  type BidiReader,
  messageBytesMax,
} from "../../../../src/wire/grpc/service.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { framed, RecordedStream, requestFields } from "../../../support/recorded-stream.js";

interface Opened {
  readonly acceptor: StreamAcceptor;
  readonly clock: FakeClock;
  /** What each handler was told, in order. */
  readonly log: string[];
  readonly bugs: unknown[];
  /** Of the last call that was begun. */
  readonly answers: () => BidiAnswers;
}

/**
 * A service whose handler writes down what it is told; `isPrompt` has it go on at once, and `first`
 * is sent before it reads anything.
 */
function open(isPrompt = false, first?: Buffer, more: Partial<BidiReader> = {}): Opened {
  const clock = new FakeClock();
  const log: string[] = [];
  const bugs: unknown[] = [];
  let last: BidiAnswers | undefined;
  const native = new NativeServer({
    services: [
      {
        name: "test.Service",
        methods: [
          {
            kind: "bidi",
            name: "Ask",
            open: (_call, answers) => {
              last = answers;
              if (first !== undefined) answers.send(first);
              return {
                onMessage: (bytes) => {
                  log.push(Buffer.from(bytes.subarray(0, 8)).toString());
                  if (isPrompt) answers.next();
                },
                onEnd: () => log.push("(end)"),
                onCancel: () => log.push("(cancel)"),
                onDrain: () => log.push("(drain)"),
                ...more,
              };
            },
          },
        ],
      },
    ],
    clock,
    onBug: (thrown) => bugs.push(thrown),
    isLate: () => false,
    onDropped: () => {},
    toFailure: toCallFailure,
  });
  const answers = (): BidiAnswers => {
    if (last === undefined) throw new Error("no call was begun");
    return last;
  };
  return { acceptor: native.openConnection(), clock, log, bugs, answers };
}

/** What follows of a message after so many bytes, and as many of the next one. */
function shifted(message: Buffer, byteCount: number): Buffer {
  return Buffer.concat([message.subarray(byteCount), message.subarray(0, byteCount)]);
}

interface Call {
  readonly stream: RecordedStream;
  readonly reader: StreamReader;
}

function begin({ acceptor }: Opened, fields: Readonly<Record<string, string>> = {}): Call {
  const stream = new RecordedStream();
  const request = requestFields("/test.Service/Ask", fields);
  return { stream, reader: acceptor.onStream(stream, request, false) };
}

describe("a call with messages each way", () => {
  it("has its messages cut at any byte, also several at once", () => {
    const body = Buffer.concat([framed("one"), framed("two"), framed("three")]);
    for (let cut = 0; cut <= body.length; cut += 1) {
      const opened = open(true);
      const { stream, reader } = begin(opened);
      reader.onData(body.subarray(0, cut), false);
      reader.onData(body.subarray(cut), true);
      expect(opened.log).toEqual(["one", "two", "three", "(end)"]);
      opened.answers().end();
      expect([stream.grpcStatus, stream.consumedBytes]).toEqual([0, body.length]);
    }
  });

  it("hands over one message at a time, and lets the caller's window be full meanwhile", () => {
    const opened = open();
    const { stream, reader } = begin(opened);
    const message = framed("x");
    for (let i = 0; i < 3; i += 1) reader.onData(message, i === 2);
    expect([opened.log, stream.consumedBytes]).toEqual([["x"], message.length]);
    opened.answers().next();
    expect([opened.log, stream.consumedBytes]).toEqual([["x", "x"], message.length]);
    opened.answers().next();
    expect(opened.log).toEqual(["x", "x", "x"]);
    opened.answers().next();
    expect([opened.log.at(-1), stream.consumedBytes]).toEqual(["(end)", 3 * message.length]);
  });

  it("goes through ten thousand waiting messages without a deep stack", () => {
    const opened = open(true);
    const { reader } = begin(opened);
    const many = Buffer.concat(Array.from({ length: 10_000 }, () => framed("m")));
    reader.onData(many, true);
    expect(opened.log).toHaveLength(10_001);
  });

  it("sends answers, its head with the first, and says when to wait", () => {
    const opened = open();
    const { stream, reader } = begin(opened);
    expect(opened.answers().send(Buffer.from("a"))).toBe(true);
    stream.isFull = true;
    expect(opened.answers().send(Buffer.from("b"))).toBe(false);
    reader.onDrain();
    expect(opened.log).toEqual(["(drain)"]);
    opened.answers().fail(new Error("secret-73"));
    expect([stream.messages, stream.grpcStatus]).toEqual([["a", "b"], 13]);
    expect(JSON.stringify(stream.sent)).not.toContain("secret-73");
    expect(opened.bugs).toHaveLength(1);
  });

  it.each([
    { what: "a message too large", body: Buffer.from([0, 0, 16, 0, 1]), status: 8 },
    { what: "a strange head", body: Buffer.from([9, 0, 0, 0, 0]), status: 13 },
    { what: "half a message at its end", body: framed("abc").subarray(0, 6), status: 13 },
    { what: "compression without a name", body: framed("a", 1), status: 13 },
  ])("fails with $status for $what, and its handler knows", ({ body, status }) => {
    const opened = open();
    const { stream, reader } = begin(opened);
    reader.onData(body, true);
    expect([stream.grpcStatus, opened.log]).toEqual([status, ["(cancel)"]]);
    opened.answers().end();
    expect([stream.sent.length, opened.bugs]).toEqual([1, []]);
  });

  it("is over for its handler when it sends too much, at once or before it reads", () => {
    const opened = open();
    const { stream, reader } = begin(opened);
    opened.answers().send(Buffer.alloc(messageBytesMax + 1));
    expect([stream.grpcStatus, opened.log]).toEqual([8, ["(cancel)"]]);
    // No word more, whatever comes.
    opened.answers().send(Buffer.alloc(messageBytesMax + 1));
    reader.onData(framed("late"), true);
    opened.answers().next();
    opened.answers().end();
    expect([opened.log, opened.bugs]).toEqual([["(cancel)"], []]);

    const eager = open(false, Buffer.alloc(messageBytesMax + 1));
    expect(begin(eager).stream.grpcStatus).toBe(8);
    expect(eager.log).toEqual(["(cancel)"]);
  });

  it("hands over what came before a compressed message, and ends with that one", () => {
    const opened = open();
    const { stream, reader } = begin(opened, { "grpc-encoding": "gzip" });
    reader.onData(Buffer.concat([framed("first"), framed(gzipSync("second"), 1)]), false);
    expect([opened.log, stream.grpcStatus]).toEqual([["first"], undefined]);
    opened.answers().next();
    expect([opened.log, stream.grpcStatus]).toEqual([["first", "(cancel)"], 12]);
  });

  it("counts as open after a reset until its handler has ended it", () => {
    const opened = open();
    const { stream, reader } = begin(opened);
    reader.onData(framed("a"), false);
    stream.resetByPeer(reader);
    expect([opened.log, stream.releaseCount]).toEqual([["a", "(cancel)"], 0]);
    opened.answers().send(Buffer.from("b"));
    opened.answers().next();
    opened.answers().end();
    expect([stream.sent, stream.releaseCount, opened.bugs]).toEqual([[], 1, []]);
  });

  it("is a bug to end twice", () => {
    const opened = open();
    const { stream } = begin(opened);
    opened.answers().end();
    opened.answers().fail(new Error("again"));
    expect([stream.grpcStatus, opened.bugs.length]).toEqual([0, 2]);
  });

  it("gives back what still comes after its end", () => {
    const opened = open();
    const { stream, reader } = begin(opened);
    opened.answers().end();
    reader.onData(framed("late"), true);
    expect([stream.consumedBytes, opened.log]).toEqual([9, []]);
  });

  it("is ended where a message that has begun does not end, and not while messages do", () => {
    const opened = open(true);
    const { stream, reader } = begin(opened);
    const message = framed("message");
    for (let i = 0; i < 5; i += 1) {
      // Each piece ends a message and begins the next.
      reader.onData(i === 0 ? message.subarray(0, 3) : shifted(message, 3), false);
      opened.clock.advance(partialMsMax - 1);
    }
    expect([stream.sent, opened.log.length]).toEqual([[], 4]);
    opened.clock.advance(1);
    expect([stream.grpcStatus, opened.log.at(-1)]).toEqual([4, "(cancel)"]);
  });

  it("has its handler answer what is too large, or has no room", () => {
    const opened: Opened = open(false, undefined, {
      onTooLarge: () => {
        opened.answers().send(Buffer.from("over"));
        opened.answers().end();
      },
    });
    const { stream, reader } = begin(opened);
    reader.onData(Buffer.from([0, 0, 16, 0, 1]), false);
    reader.onData(framed("more"), true);
    expect([stream.messages, stream.grpcStatus]).toEqual([["over"], 0]);

    const part = framed(Buffer.alloc(messageBytesMax)).subarray(0, messageBytesMax / 2);
    for (let i = 0; i < peerPartialBytesMax / part.length; i += 1) {
      begin(opened).reader.onData(part, false);
    }
    const oneMore = begin(opened);
    oneMore.reader.onData(part, false);
    expect([oneMore.stream.messages, oneMore.stream.grpcStatus]).toEqual([["over"], 0]);
    expect([opened.log, opened.bugs]).toEqual([[], []]);
  });

  it("fails where its handler does not answer what is too large", () => {
    const opened = open(false, undefined, { onTooLarge: () => {} });
    const { stream, reader } = begin(opened);
    reader.onData(Buffer.from([0, 0, 16, 0, 1]), false);
    expect([stream.grpcStatus, opened.log]).toEqual([8, ["(cancel)"]]);
  });

  it(`holds ${peerPartialBytesMax} waiting bytes of a peer at most`, () => {
    const opened = open();
    const part = framed(Buffer.alloc(messageBytesMax)).subarray(0, messageBytesMax / 2);
    const count = peerPartialBytesMax / part.length;
    const calls = Array.from({ length: count }, () => begin(opened));
    for (const { reader } of calls) reader.onData(part, false);
    const oneMore = begin(opened);
    oneMore.reader.onData(part.subarray(0, 1), false);
    expect(oneMore.stream.grpcStatus).toBe(8);
    const [gone] = calls;
    gone?.stream.resetByPeer(gone.reader);
    const next = begin(opened);
    next.reader.onData(part, false);
    expect(next.stream.sent).toEqual([]);
  });
});
