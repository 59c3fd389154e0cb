import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type ClientUnaryCall, type ServiceError as GrpcError, Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../../../src/core/base/clock.js";
import { ServiceError } from "../../../../src/core/base/errors.js";
import type { NativeTransportParts } from "../../../../src/wire/grpc/native-transport.js";
import {
  concurrentStreamsMax,
  type MethodHandler,
  messageBytesMax,
  type ServerStreamHandler,
} from "../../../../src/wire/grpc/service.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { realClock } from "../../../support/real-clock.js";
import { identity, type RunningTransport, useTransports } from "../../../support/transports.js";
import { unaryHandler } from "../../../support/unary.js";
import { waitFor, within } from "../../../support/wait.js";

const transports = useTransports();

const start = (
  method: MethodHandler,
  parts?: Partial<NativeTransportParts>,
): Promise<RunningTransport> => transports.start("grpc-js", method, parts);

function unary(answer: Parameters<typeof unaryHandler>[0]): MethodHandler {
  return { kind: "unary", name: "Ask", handle: unaryHandler(answer) };
}

function stream(handle: ServerStreamHandler): MethodHandler {
  return { kind: "serverStream", name: "Ask", handle };
}

/** A deadline as the client library takes it: by the wall clock. */
function inMs(ms: number): number {
  return realClock.epochUs() / 1_000 + ms;
}

const question = Buffer.from("question");

function ask(
  { client }: RunningTransport,
  options: {
    readonly bytes?: Buffer;
    readonly path?: string;
    readonly deadline?: number;
    readonly metadata?: Readonly<Record<string, string>>;
    /** Takes the call, for one that is given up. */
    readonly onCall?: (call: ClientUnaryCall) => void;
  } = {},
): Promise<string> {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(options.metadata ?? {})) metadata.set(name, value);
  const deadline = options.deadline ?? inMs(10_000);
  const path = options.path ?? "/test.Service/Ask";
  return new Promise((resolve, reject) => {
    const { bytes = question } = options;
    const done = (error: GrpcError | null, answer?: Buffer): void => {
      if (error !== null) reject(error);
      else resolve(answer?.toString() ?? "");
    };
    const given = { deadline };
    const call = client.makeUnaryRequest(path, identity, identity, bytes, metadata, given, done);
    options.onCall?.(call);
  });
}

describe("a unary call", () => {
  it("hands bytes to the handler and its answer's bytes back", async () => {
    const running = await start(
      // A view into a larger buffer: only its own bytes may leave.
      unary(async (bytes) => Buffer.from(`<${Buffer.from(bytes)}>`).subarray(1, 9)),
    );
    expect(await ask(running)).toBe("question");
  });

  it("hands an empty message over too", async () => {
    const running = await start(unary(async (bytes) => Buffer.from(String(bytes.length))));
    expect(await ask(running, { bytes: Buffer.alloc(0) })).toBe("0");
  });

  it("tells the handler its metadata and its deadline on the monotonic clock", async () => {
    const running = await start(
      unary(async (_, call) => {
        const leftMs = call.deadlineMs - realClock.monotonicMs();
        const isNear = leftMs > 50_000 && leftMs <= 60_000;
        return Buffer.from(`${call.metadata("x-word")} ${call.metadata("x-none")} ${isNear}`);
      }),
    );
    const answer = await ask(running, {
      metadata: { "x-word": "hello" },
      deadline: inMs(60_000),
    });
    expect(answer).toBe("hello undefined true");
  });

  it("fails a call whose handler throws in place of answering, and lives on", async () => {
    const running = await start({
      kind: "unary",
      name: "Ask",
      handle: () => {
        throw new Error("hunter2");
      },
    });
    for (let i = 0; i < 2; i += 1) {
      await expect(ask(running)).rejects.toMatchObject({
        code: 13,
        details: expect.not.stringContaining("hunter2"),
      });
    }
    expect(running.bugs).toHaveLength(2);
  });

  it("sends the first answer of a handler that answers twice", async () => {
    const running = await start({
      kind: "unary",
      name: "Ask",
      handle: (_request, _call, answer) => {
        answer.reply(Buffer.from("first"));
        answer.reply(Buffer.from("second"));
      },
    });
    expect(await ask(running)).toBe("first");
    expect(running.bugs).toHaveLength(1);
  });

  it("has no deadline when the caller states none", async () => {
    const running = await start(unary(async (_, call) => Buffer.from(String(call.deadlineMs))));
    expect(await ask(running, { deadline: Number.POSITIVE_INFINITY })).toBe("Infinity");
  });

  it("fails with the status of a ServiceError", async () => {
    const running = await start(
      unary(async () => {
        throw new ServiceError("REQUEST_INVALID", "domain is empty.");
      }),
    );
    await expect(ask(running)).rejects.toMatchObject({
      code: 3,
      details: expect.stringContaining("domain is empty."),
    });
    expect(running.bugs).toEqual([]);
  });

  it("fails with INTERNAL and without words on a bug, which is told, and lives on", async () => {
    let isBroken = true;
    const running = await start(
      unary(async (bytes) => {
        if (isBroken) throw new TypeError("secret-73");
        return bytes;
      }),
    );
    const thrown: unknown = await ask(running).catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: 13 });
    expect(String(thrown)).not.toContain("secret-73");
    expect(running.bugs).toHaveLength(1);
    isBroken = false;
    expect(await ask(running)).toBe("question");
  });

  it("is UNIMPLEMENTED where nobody serves the path", async () => {
    const running = await start(unary(async (bytes) => bytes));
    await expect(ask(running, { path: "/test.Service/Other" })).rejects.toMatchObject({ code: 12 });
  });

  it(`takes messages up to ${messageBytesMax} bytes and refuses larger ones`, async () => {
    const running = await start(unary(async (bytes) => Buffer.from(String(bytes.length))));
    const largest = Buffer.alloc(messageBytesMax);
    expect(await ask(running, { bytes: largest })).toBe(String(messageBytesMax));
    const larger = Buffer.alloc(messageBytesMax + 1);
    await expect(ask(running, { bytes: larger })).rejects.toMatchObject({ code: 8 });
  });

  it("refuses metadata above 64 KiB and serves the next call", async () => {
    const running = await start(unary(async (bytes) => bytes));
    const metadata = { "x-large": "~".repeat(70_000) };
    await expect(ask(running, { metadata })).rejects.toBeInstanceOf(Error);
    expect(await ask(running)).toBe("question");
  });
});

describe("a unary call that is read late", () => {
  it("is begun at the end of the turn, and never when its caller has gone by then", async () => {
    const turns: (() => void)[] = [];
    const clock: Clock = {
      ...realClock,
      scheduleTurn: (callback) => {
        turns.push(callback);
        return () => {};
      },
    };
    const begun: string[] = [];
    let droppedCount = 0;
    const onDropped = (): void => {
      droppedCount += 1;
    };
    const running = await start(
      unary(async (bytes) => {
        begun.push(Buffer.from(bytes).toString());
        return bytes;
      }),
      { clock, isLate: () => true, onDropped },
    );
    const calls: ClientUnaryCall[] = [];
    const onCall = (call: ClientUnaryCall): void => void calls.push(call);
    const hasty = ask(running, { bytes: Buffer.from("hasty"), onCall });
    await waitFor("the first was read", () => turns.length === 1);
    for (const call of calls) call.cancel();
    await expect(hasty).rejects.toMatchObject({ code: 1 });
    // On one connection what is sent later is read later: the reset of the first call was read.
    const patient = ask(running, { bytes: Buffer.from("patient") });
    await waitFor("both were read", () => turns.length === 2);
    expect(begun).toEqual([]);
    for (const turn of turns) turn();
    expect(await patient).toBe("patient");
    expect([begun, droppedCount]).toEqual([["patient"], 1]);
  });
});

describe("a connection", () => {
  it(`has ${concurrentStreamsMax} calls in flight at most; one more waits its turn`, async () => {
    const waiting: (() => void)[] = [];
    const running = await start(
      unary(async (bytes) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return bytes;
      }),
    );
    const calls = Array.from({ length: concurrentStreamsMax + 1 }, () => ask(running));
    await waitFor("the connection is full", () => waiting.length >= concurrentStreamsMax);
    expect(waiting).toHaveLength(concurrentStreamsMax);
    waiting[0]?.();
    await waitFor("the last call arrives", () => waiting.length === concurrentStreamsMax + 1);
    for (const finish of waiting) finish();
    expect(await Promise.all(calls)).toHaveLength(concurrentStreamsMax + 1);
  });
});

describe("a server stream", () => {
  it("sends what the handler yields and ends when it returns", async () => {
    const running = await start(
      stream(async function* () {
        yield Buffer.from("a");
        yield Buffer.from("b");
      }),
    );
    expect(await readAll(running)).toEqual({ answers: ["a", "b"], code: 0 });
  });

  it("fails with the status of what the handler throws", async () => {
    const running = await start(
      // biome-ignore lint/correctness/useYield: it fails before its first answer
      stream(async function* () {
        throw new ServiceError("STORE_TIMEOUT");
      }),
    );
    expect(await readAll(running)).toEqual({ answers: [], code: 14 });
  });

  it("aborts its signal when the caller goes away", async () => {
    let isAborted = false;
    const running = await start(
      stream(async function* (_, { signal }) {
        signal.addEventListener("abort", () => {
          isAborted = true;
        });
        yield Buffer.from("a");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      }),
    );
    const call = openStream(running);
    call.on("error", () => {});
    call.on("data", () => call.cancel());
    await waitFor("the signal is aborted", () => isAborted);
    expect(running.bugs).toEqual([]);
  });

  it("ends with UNAVAILABLE when the server stops", async () => {
    let isWaiting = false;
    const running = await start(
      stream(async function* (_, { signal }) {
        yield Buffer.from("a");
        isWaiting = true;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      }),
    );
    const all = readAll(running);
    await waitFor("the stream is open", () => isWaiting);
    expect(await running.transport.close(10_000)).toBe(true);
    expect(await all).toEqual({ answers: ["a"], code: 14 });
  });
});

describe("an old connection", () => {
  const oldAtOnce = { connectionAgeMsMax: 1 };

  it("is asked to go and still serves what its client sends before it knows", async () => {
    const clock = new FakeClock();
    const running = await start(
      unary(async (bytes) => bytes),
      { ...oldAtOnce, clock },
    );
    const { session, goaways } = await openSession(running);
    // The call is on its way before the client can know: by the real clock either might be first.
    const status = sendCall(session);
    clock.advance(2);
    await waitFor("the client is asked to go", () => goaways.length > 0);
    expect(goaways).toEqual([{ code: 0, lastStreamId: 2 ** 31 - 1 }]);
    expect(await within("the call is answered", 10_000, status)).toBe("0");
  });

  it("is cut when it is still there after the grace", async () => {
    const running = await start(
      unary(() => new Promise(() => {})),
      { ...oldAtOnce, connectionAgeGraceMs: 1 },
    );
    const { session } = await openSession(running);
    const isClosed = new Promise<void>((resolve) => session.once("close", () => resolve()));
    void sendCall(session);
    await within("the connection is cut", 10_000, isClosed);
  });
});

describe("stopping", () => {
  it("asks clients to go first and still serves what they send until they know", async () => {
    const running = await start(unary(async (bytes) => bytes));
    const { session, goaways } = await openSession(running);
    // Sent before the client can know, and on its way while the server says goodbye.
    const status = sendCall(session);
    await within("all clients know", 10_000, running.transport.announceClose(60_000));
    expect(goaways[0]).toEqual({ code: 0, lastStreamId: 2 ** 31 - 1 });
    expect(await within("the call is answered", 10_000, status)).toBe("0");
    expect(await running.transport.close(10_000)).toBe(true);
  });

  it("does not wait for a client that never answers", async () => {
    const running = await start(unary(async (bytes) => bytes));
    await ask(running);
    await within("announceClose() gives up", 5_000, running.transport.announceClose(1));
  });

  it("lets calls in flight finish", async () => {
    let finish = (): void => {};
    let hasStarted = false;
    const running = await start(
      unary(async (bytes) => {
        hasStarted = true;
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return bytes;
      }),
    );
    const answer = ask(running);
    await waitFor("the call is in flight", () => hasStarted);
    const closed = running.transport.close(10_000);
    finish();
    expect(await answer).toBe("question");
    expect(await closed).toBe(true);
  });

  it("cuts what is not finished when the grace is over, and says so", async () => {
    let hasStarted = false;
    const running = await start(
      unary(() => {
        hasStarted = true;
        return new Promise(() => {});
      }),
    );
    const answer = ask(running).catch((error: unknown) => error);
    await waitFor("the call is in flight", () => hasStarted);
    expect(await running.transport.close(1)).toBe(false);
    // Cut by the server, not given up by the caller.
    expect(await answer).toMatchObject({ details: expect.stringMatching(/dropped|RST_STREAM/) });
  });

  it("takes no connection any more", async () => {
    const running = await start(unary(async (bytes) => bytes));
    await running.transport.close(0);
    await expect(ask(running, { deadline: inMs(500) })).rejects.toBeInstanceOf(Error);
  });
});

interface Goaway {
  readonly code: number;
  readonly lastStreamId: number;
}

/** A connection without a gRPC library, which shows what the server says on it. */
async function openSession({ port }: RunningTransport) {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  transports.atEnd(() => session.destroy());
  const goaways: Goaway[] = [];
  session.on("goaway", (code, lastStreamId) => goaways.push({ code, lastStreamId }));
  await new Promise<void>((resolve) => session.once("remoteSettings", () => resolve()));
  return { session, goaways };
}

/** Sends one call and answers its gRPC status. */
function sendCall(session: ClientHttp2Session): Promise<string> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/test.Service/Ask",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  stream.resume();
  stream.end(Buffer.from([0, 0, 0, 0, 1, 65]));
  return new Promise((resolve) => {
    stream.on("trailers", (fields) => resolve(String(fields["grpc-status"])));
  });
}

function openStream({ client }: RunningTransport) {
  return client.makeServerStreamRequest("/test.Service/Ask", identity, identity, question);
}

function readAll(
  running: RunningTransport,
): Promise<{ readonly answers: readonly string[]; readonly code: number }> {
  const answers: string[] = [];
  const call = openStream(running);
  call.on("data", (bytes: Buffer) => answers.push(bytes.toString()));
  call.on("error", () => {});
  return new Promise((resolve) => {
    call.on("status", ({ code }) => resolve({ answers, code }));
  });
}
