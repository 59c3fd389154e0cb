import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/core/base/errors.js";
import type { Peer } from "../../../../src/core/base/peer.js";
import { toCallFailure } from "../../../../src/rpc/grpc/status.js";
import type { StreamAcceptor, StreamReader } from "../../../../src/wire/base/http2.js";
import type { NativeServerParts } from "../../../../src/wire/grpc/grpc-context.js";
import { NativeServer } from "../../../../src/wire/grpc/native-server.js";
import {
  partialMsMax,
  peerPartialBytesMax,
  serverPartialBytesMax,
} from "../../../../src/wire/grpc/partial-bytes.js";
import {
  type MethodHandler,
  messageBytesMax,
  type ServerStreamHandler,
  type UnaryAnswer,
  type UnaryHandler,
} from "../../../../src/wire/grpc/service.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { framed, RecordedStream, requestFields } from "../../../support/recorded-stream.js";
import { unaryHandler } from "../../../support/unary.js";

interface Opened {
  readonly native: NativeServer;
  readonly acceptor: StreamAcceptor;
  readonly clock: FakeClock;
  readonly bugs: unknown[];
  readonly dropped: { count: number };
}

function peerAt(address: string): Peer {
  return { kind: "address", identity: `address:${address}`, names: [] };
}

function open(method: MethodHandler, parts: Partial<NativeServerParts> = {}): Opened {
  const clock = new FakeClock();
  const bugs: unknown[] = [];
  const dropped = { count: 0 };
  const native = new NativeServer({
    services: [{ name: "test.Service", methods: [method] }],
    clock,
    onBug: (thrown) => bugs.push(thrown),
    isLate: () => false,
    onDropped: () => {
      dropped.count += 1;
    },
    toFailure: toCallFailure,
    ...parts,
  });
  return { native, acceptor: native.openConnection(), clock, bugs, dropped };
}

interface Call {
  readonly stream: RecordedStream;
  readonly reader: StreamReader;
}

function begin(
  { acceptor }: Opened,
  { fields = {}, path = "/test.Service/Ask", isEnd = false } = {},
): Call {
  const stream = new RecordedStream();
  const reader = acceptor.onStream(stream, requestFields(path, fields), isEnd);
  return { stream, reader };
}

function unary(handle: UnaryHandler): MethodHandler {
  return { kind: "unary", name: "Ask", handle };
}

const echo = unary((request, _call, answer) => answer.reply(Buffer.from(request)));

const wholeAnswer = (text: string) => [
  { kind: "headers", fields: { ":status": "200", "content-type": "application/grpc+proto" } },
  { kind: "data", bytes: framed(text).toString("latin1") },
  { kind: "headers", fields: { "grpc-status": "0" } },
];

describe("a request that is none of ours", () => {
  it.each([
    { fields: { "content-type": "text/html" }, status: "415" },
    { fields: { "content-type": "application/grpc-web" }, status: "415" },
    { fields: { "content-type": "application/grpc+json" }, status: "415" },
    { fields: { "content-type": "application/grpcx" }, status: "415" },
    { fields: { ":method": "GET" }, status: "405" },
  ])("is answered $status for $fields", ({ fields, status }) => {
    const { stream, reader } = begin(open(echo), { fields });
    expect(stream.sent).toEqual([
      { kind: "headers", fields: expect.objectContaining({ ":status": status }) },
    ]);
    expect(stream.isEnded).toBe(true);
    reader.onData(framed("a"), true);
    expect(stream.consumedBytes).toBe(6);
    reader.onReset();
    expect(stream.releaseCount).toBe(1);
  });

  it.each(["application/grpc", "application/grpc+proto", "Application/GRPC;v=1"])(
    "may have the type %s",
    (type) => {
      const { stream, reader } = begin(open(echo), { fields: { "content-type": type } });
      reader.onData(framed("a"), true);
      expect(stream.grpcStatus).toBe(0);
    },
  );

  it.each(["/test.Service/Other", "/test.Service", "/test.Service/Ask/", "/", "*"])(
    "is UNIMPLEMENTED at %s",
    (path) => {
      expect(begin(open(echo), { path }).stream.grpcStatus).toBe(12);
    },
  );

  it("is INTERNAL with a timeout that is none, and no handler sees it", () => {
    let count = 0;
    const opened = open(
      unary(() => {
        count += 1;
      }),
    );
    const { stream, reader } = begin(opened, { fields: { "grpc-timeout": "soon" } });
    reader.onData(framed("a"), true);
    expect([stream.grpcStatus, count]).toEqual([13, 0]);
  });
});

describe("a unary call", () => {
  it("is answered from the bytes of one frame, without a copy", () => {
    const body = framed("question");
    let seen: Uint8Array | undefined;
    const opened = open(
      unary((request, _call, answer) => {
        seen = request;
        answer.reply(Buffer.from("answer"));
      }),
    );
    const { stream, reader } = begin(opened);
    reader.onData(body, true);
    expect(stream.sent).toEqual(wholeAnswer("answer"));
    expect(seen?.buffer).toBe(body.buffer);
    expect(stream.consumedBytes).toBe(body.length);
  });

  it("is the same in parts that are cut anywhere, ended by a frame of its own or not", () => {
    const body = framed("question");
    for (let cut = 0; cut <= body.length; cut += 1) {
      for (const endsLater of [false, true]) {
        const { stream, reader } = begin(open(echo));
        reader.onData(body.subarray(0, cut), false);
        reader.onData(body.subarray(cut), !endsLater);
        if (endsLater) reader.onEnd(undefined);
        expect(stream.sent).toEqual(wholeAnswer("question"));
      }
    }
  });

  it.each([
    { what: "no body", parts: [] },
    { what: "half a head", parts: [framed("a").subarray(0, 3)] },
    { what: "half a message", parts: [framed("abc").subarray(0, 7)] },
    { what: "two messages", parts: [Buffer.concat([framed("a"), framed("b")])] },
    { what: "a second one later", parts: [framed("a"), framed("b")] },
    { what: "a byte too much", parts: [framed("a"), Buffer.from("b")] },
  ])("is UNIMPLEMENTED with $what", ({ parts }) => {
    const opened = open(unary(() => expect.unreachable()));
    const { stream, reader } = begin(opened);
    for (const part of parts) reader.onData(part, false);
    reader.onEnd(undefined);
    expect(stream.grpcStatus).toBe(12);
  });

  it.each([
    { what: "a strange head", body: framed("a", 2), status: 13 },
    { what: "a message too large", body: Buffer.from([0, 0, 16, 0, 1]), status: 8 },
    { what: "compression without a name", body: framed("a", 1), status: 13 },
  ])("fails with $status for $what", ({ body, status }) => {
    const { stream, reader } = begin(open(echo));
    reader.onData(body, true);
    expect(stream.grpcStatus).toBe(status);
  });

  it("tells its handler the deadline on the monotonic clock, and what the caller said", () => {
    const seen: unknown[] = [];
    const opened = open(
      unary((_request, call, answer) => {
        seen.push(call.deadlineMs, call.metadata("x-word"), call.metadata("x-none"));
        answer.reply(new Uint8Array());
      }),
    );
    opened.clock.advance(500);
    const fields = { "grpc-timeout": "250m", "x-word": "hello" };
    begin(opened, { fields }).reader.onData(framed(""), true);
    begin(opened).reader.onData(framed(""), true);
    expect(seen).toEqual([
      1_750,
      "hello",
      undefined,
      Number.POSITIVE_INFINITY,
      undefined,
      undefined,
    ]);
  });

  it("fails with the status of what its handler says, throws, or throws as a bug", () => {
    const failures = [
      { method: unary((_r, _c, answer) => answer.fail(new ServiceError("STORE_TIMEOUT"))), is: 14 },
      {
        method: unary(() => {
          throw new ServiceError("REQUEST_INVALID", "domain is empty.");
        }),
        is: 3,
      },
      {
        method: unary(() => {
          throw new TypeError("secret-73");
        }),
        is: 13,
      },
    ];
    for (const { method, is } of failures) {
      const opened = open(method);
      const { stream, reader } = begin(opened);
      reader.onData(framed("a"), true);
      expect(stream.grpcStatus).toBe(is);
      expect(JSON.stringify(stream.sent)).not.toContain("secret-73");
      expect(opened.bugs).toHaveLength(is === 13 ? 1 : 0);
    }
  });

  it("sends the first answer of a handler that answers twice", () => {
    const opened = open(
      unary((_request, _call, answer) => {
        answer.reply(Buffer.from("first"));
        answer.reply(Buffer.from("second"));
      }),
    );
    const { stream, reader } = begin(opened);
    reader.onData(framed("a"), true);
    expect(stream.messages).toEqual(["first"]);
    expect(opened.bugs).toHaveLength(1);
  });

  it(`answers up to ${messageBytesMax} bytes, and fails above`, () => {
    for (const [size, status] of [
      [messageBytesMax, 0],
      [messageBytesMax + 1, 8],
    ] as const) {
      const opened = open(unary((_r, _c, answer) => answer.reply(Buffer.alloc(size))));
      const { stream, reader } = begin(opened);
      reader.onData(framed("a"), true);
      expect(stream.grpcStatus).toBe(status);
    }
  });

  it("counts as open after a reset until its handler has answered", async () => {
    let finish = (): void => {};
    const opened = open(
      unary(
        unaryHandler(async (bytes) => {
          const held = Buffer.from(bytes);
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
          return held;
        }),
      ),
    );
    const { stream, reader } = begin(opened);
    reader.onData(framed("a"), true);
    stream.resetByPeer(reader);
    expect(stream.releaseCount).toBe(0);
    finish();
    await settlePromises();
    expect(stream.releaseCount).toBe(1);
    expect(stream.sent).toEqual([]);
  });

  it("counts no more after a reset while its request was read", () => {
    const { stream, reader } = begin(open(echo));
    reader.onData(framed("abc").subarray(0, 6), false);
    stream.resetByPeer(reader);
    expect(stream.releaseCount).toBe(1);
  });

  it("is begun at the end of the turn when it is late, and not when its caller has gone", () => {
    const seen: string[] = [];
    const opened = open(
      unary((request, _call, answer) => {
        seen.push(Buffer.from(request).toString());
        answer.reply(new Uint8Array());
      }),
      { isLate: () => true },
    );
    const hasty = begin(opened);
    const patient = begin(opened);
    const body = framed("patient");
    hasty.reader.onData(framed("hasty"), true);
    patient.reader.onData(body, true);
    body.fill(0);
    hasty.stream.resetByPeer(hasty.reader);
    expect(seen).toEqual([]);
    opened.clock.runTurns();
    expect([seen, opened.dropped.count]).toEqual([["patient"], 1]);
    expect([hasty.stream.releaseCount, patient.stream.grpcStatus]).toEqual([1, 0]);
  });
});

describe("a compressed request", () => {
  function ask(body: Buffer, encoding: string): RecordedStream {
    const { stream, reader } = begin(open(echo), { fields: { "grpc-encoding": encoding } });
    reader.onData(body, true);
    return stream;
  }

  it("need not be compressed, whatever the call names", () => {
    expect(ask(framed("a"), "gzip").messages).toEqual(["a"]);
    expect(ask(framed("a"), "snappy").messages).toEqual(["a"]);
  });

  it.each([
    { encoding: "gzip", body: framed(gzipSync("question"), 1) },
    { encoding: "gzip", body: framed(gzipSync(Buffer.alloc(messageBytesMax)), 1) },
    { encoding: "gzip", body: Buffer.from([1, 0xff, 0xff, 0xff, 0xff]) },
    { encoding: "snappy", body: framed("a", 1) },
  ])("is UNIMPLEMENTED with $encoding, unread, and told what is read", ({ encoding, body }) => {
    const stream = ask(body, encoding);
    expect(stream.grpcStatus).toBe(12);
    expect(stream.sent).toMatchObject([{ fields: { "grpc-accept-encoding": "identity" } }]);
  });
});

describe("unfinished requests", () => {
  const part = framed(Buffer.alloc(messageBytesMax)).subarray(0, messageBytesMax / 2);

  it(`are ${peerPartialBytesMax} bytes of a peer at most, on however many connections`, () => {
    const opened = open(echo);
    const again = opened.native.openConnection();
    const count = peerPartialBytesMax / part.length;
    const calls = Array.from({ length: count }, (_, i) => {
      return begin(i % 2 === 0 ? opened : { ...opened, acceptor: again });
    });
    for (const { reader } of calls) reader.onData(part, false);
    const oneMore = begin(opened);
    oneMore.reader.onData(part.subarray(0, 1), false);
    expect(oneMore.stream.grpcStatus).toBe(8);
    // Whoever ends gives its place back, however it ends.
    const [gone, cut] = calls;
    gone?.stream.resetByPeer(gone.reader);
    cut?.reader.onEnd(undefined);
    expect(cut?.stream.grpcStatus).toBe(12);
    for (const next of [begin(opened), begin(opened)]) {
      next.reader.onData(part, false);
      expect(next.stream.sent).toEqual([]);
    }
    // Another peer has its own.
    const other = new RecordedStream();
    const fields = requestFields("/test.Service/Ask");
    const reader = opened.native.openConnection(peerAt("10.0.0.2")).onStream(other, fields, false);
    reader.onData(part, false);
    expect(other.sent).toEqual([]);
  });
});

describe("requests that are begun and not ended", () => {
  const half = framed(Buffer.alloc(messageBytesMax)).subarray(0, messageBytesMax / 2);

  function beginAt({ native }: Opened, peer: string): Call {
    const stream = new RecordedStream();
    const fields = requestFields("/test.Service/Ask");
    return { stream, reader: native.openConnection(peerAt(peer)).onStream(stream, fields, false) };
  }

  it(`are ${serverPartialBytesMax} bytes on all connections together at most`, () => {
    const opened = open(echo);
    const calls = Array.from({ length: serverPartialBytesMax / half.length }, (_, i) => {
      return beginAt(opened, `10.0.0.${i}`);
    });
    for (const { reader } of calls) reader.onData(half, false);
    expect(calls.flatMap(({ stream }) => stream.sent)).toEqual([]);
    const oneMore = beginAt(opened, "10.0.1.1");
    oneMore.reader.onData(half, false);
    expect(oneMore.stream.grpcStatus).toBe(8);
    // Whole ones need no such room.
    const whole = beginAt(opened, "10.0.1.1");
    whole.reader.onData(framed("a"), true);
    expect(whole.stream.grpcStatus).toBe(0);
    opened.clock.advance(partialMsMax);
    expect(new Set(calls.map(({ stream }) => stream.grpcStatus))).toEqual(new Set([4]));
    const next = beginAt(opened, "10.0.1.1");
    next.reader.onData(half, false);
    expect(next.stream.sent).toEqual([]);
  });

  it("are answered by a method that has words for what is too large", () => {
    const method = {
      ...echo,
      onTooLarge: (answer: UnaryAnswer) => answer.reply(Buffer.from("over")),
    } as const;
    const opened = open(method);
    const { stream, reader } = begin(opened);
    reader.onData(framed(Buffer.alloc(messageBytesMax + 1)).subarray(0, 100), false);
    expect(stream.sent).toEqual(wholeAnswer("over"));
    reader.onData(Buffer.alloc(100), true);
    expect(stream.sent).toEqual(wholeAnswer("over"));
  });

  it("have their time from the first byte on, and end before it where they are whole", () => {
    const opened = open(echo);
    const { stream, reader } = begin(opened);
    reader.onData(framed("abc").subarray(0, 3), false);
    opened.clock.advance(partialMsMax - 1);
    reader.onData(framed("abc").subarray(3), true);
    expect(stream.sent).toEqual(wholeAnswer("abc"));
    opened.clock.advance(partialMsMax);
    expect(stream.sent).toEqual(wholeAnswer("abc"));
  });
});

describe("a server stream", () => {
  const serverStream = (handle: ServerStreamHandler): MethodHandler => ({
    kind: "serverStream",
    name: "Ask",
    handle,
  });

  it("sends what its handler yields, and ends when it returns", async () => {
    const opened = open(
      serverStream(async function* (request) {
        yield Buffer.from(`${Buffer.from(request)}-1`);
        yield Buffer.from(`${Buffer.from(request)}-2`);
      }),
    );
    const { stream, reader } = begin(opened, { fields: { "grpc-timeout": "1S" } });
    const body = framed("q");
    reader.onData(body, true);
    body.fill(0);
    await settlePromises();
    expect([stream.messages, stream.grpcStatus]).toEqual([["q-1", "q-2"], 0]);
    expect(opened.clock.timerCount).toBe(0);
  });

  it("fails after answers too", async () => {
    const opened = open(
      serverStream(async function* () {
        yield Buffer.from("a");
        throw new ServiceError("STORE_TIMEOUT");
      }),
    );
    const { stream, reader } = begin(opened);
    reader.onData(framed("q"), true);
    await settlePromises();
    expect([stream.messages, stream.grpcStatus]).toEqual([["a"], 14]);
    expect(opened.bugs).toEqual([]);
  });

  it("waits where the stream is full, and goes on when it has drained", async () => {
    const opened = open(
      serverStream(async function* () {
        yield Buffer.from("a");
        yield Buffer.from("b");
      }),
    );
    const { stream, reader } = begin(opened);
    stream.isFull = true;
    reader.onData(framed("q"), true);
    await settlePromises();
    expect(stream.messages).toEqual(["a"]);
    reader.onDrain();
    await settlePromises();
    expect(stream.messages).toEqual(["a", "b"]);
    reader.onDrain();
    await settlePromises();
    expect(stream.grpcStatus).toBe(0);
  });

  it("ends its handler with an answer that is too large", async () => {
    let isOver = false;
    const opened = open(
      serverStream(async function* () {
        try {
          yield Buffer.alloc(messageBytesMax + 1);
          await new Promise(() => {});
        } finally {
          isOver = true;
        }
      }),
    );
    const { stream, reader } = begin(opened);
    reader.onData(framed("q"), true);
    await settlePromises();
    expect([stream.grpcStatus, isOver, opened.bugs]).toEqual([8, true, []]);
  });

  const untilAborted = serverStream(async function* (_request, { signal }) {
    yield Buffer.from("a");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });

  it("is over for its handler when the caller has gone, and counts until then", async () => {
    const { stream, reader } = begin(open(untilAborted));
    reader.onData(framed("q"), true);
    await settlePromises();
    stream.resetByPeer(reader);
    expect(stream.releaseCount).toBe(0);
    await settlePromises();
    expect(stream.releaseCount).toBe(1);
  });

  it("is over for a handler that waits for room when the caller has gone", async () => {
    const opened = open(
      serverStream(async function* () {
        for (;;) yield Buffer.from("a");
      }),
    );
    const { stream, reader } = begin(opened);
    stream.isFull = true;
    reader.onData(framed("q"), true);
    await settlePromises();
    stream.resetByPeer(reader);
    await settlePromises();
    expect([stream.messages, stream.releaseCount]).toEqual([["a"], 1]);
  });

  it("ends with DEADLINE_EXCEEDED when its caller stops waiting", async () => {
    const opened = open(untilAborted);
    const { stream, reader } = begin(opened, { fields: { "grpc-timeout": "1S" } });
    reader.onData(framed("q"), true);
    await settlePromises();
    opened.clock.advance(999);
    expect(stream.grpcStatus).toBeUndefined();
    opened.clock.advance(2);
    await settlePromises();
    expect([stream.messages, stream.grpcStatus, opened.clock.timerCount]).toEqual([["a"], 4, 0]);
  });

  it("ends with UNAVAILABLE when the server stops, also when it begins later", async () => {
    const opened = open(untilAborted);
    const calls = [begin(opened), begin(opened)] as const;
    calls[0].reader.onData(framed("q"), true);
    await settlePromises();
    opened.native.close();
    calls[1].reader.onData(framed("q"), true);
    await settlePromises();
    expect(calls.map(({ stream }) => stream.grpcStatus)).toEqual([14, 14]);
  });
});
