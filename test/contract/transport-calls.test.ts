import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/core/base/errors.js";
import type { NativeTransportParts } from "../../src/wire/grpc/native-transport.js";
import {
  concurrentStreamsMax,
  type MethodHandler,
  messageBytesMax,
  type ServerStreamHandler,
} from "../../src/wire/grpc/service.js";
import { realClock } from "../support/real-clock.js";
import {
  ask,
  askPath,
  echo,
  identity,
  portNames,
  type RunningTransport,
  statusOf,
  useTransports,
} from "../support/transports.js";
import { unaryHandler } from "../support/unary.js";
import { waitFor, within } from "../support/wait.js";

const transports = useTransports();

function unary(answer: Parameters<typeof unaryHandler>[0]): MethodHandler {
  return { kind: "unary", name: "Ask", handle: unaryHandler(answer) };
}

describe.each(portNames)("%s", (name) => {
  const start = (
    method: MethodHandler,
    parts?: Partial<NativeTransportParts>,
  ): Promise<RunningTransport> => transports.start(name, method, parts);

  describe("a unary call", () => {
    it("hands bytes to the handler and its answer's bytes back", async () => {
      const running = await start(
        // A view into a larger buffer: only its own bytes may leave.
        unary(async (bytes) => Buffer.from(`<${Buffer.from(bytes)}>`).subarray(1, 9)),
      );
      expect(await ask(running)).toBe("question");
      expect(await ask(await start(echo), { bytes: Buffer.alloc(0) })).toBe("");
    });

    it("tells its handler metadata, binary too, and the deadline", async () => {
      const running = await start(
        unary(async (_, call) => {
          const leftMs = call.deadlineMs - realClock.monotonicMs();
          const bin = Buffer.from(call.metadata("x-some-bin") ?? "", "latin1").toString("hex");
          const isNear = leftMs > 50_000 && leftMs <= 60_000;
          const words = [call.metadata("x-word"), call.metadata("x-none"), bin, isNear];
          return Buffer.from(words.map(String).join(" "));
        }),
      );
      const metadata = { "x-word": "hello", "x-some-bin": Buffer.from("00ff80", "hex") };
      const answer = await ask(running, { metadata, deadlineMs: 60_000 });
      expect(answer).toBe("hello undefined 00ff80 true");
    });

    it("has no deadline when the caller states none", async () => {
      const running = await start(unary(async (_, call) => Buffer.from(String(call.deadlineMs))));
      expect(await ask(running, { deadlineMs: Number.POSITIVE_INFINITY })).toBe("Infinity");
    });

    it.each([
      { what: "a ServiceError", thrown: new ServiceError("REQUEST_INVALID", "é %."), code: 3 },
      { what: "an outage", thrown: new ServiceError("STORE_TIMEOUT"), code: 14 },
      { what: "a bug", thrown: new TypeError("secret-73"), code: 13 },
    ])("fails with $code for $what, and the next is served", async ({ thrown, code }) => {
      let isBroken = true;
      const running = await start(
        unary(async (bytes) => {
          if (isBroken) throw thrown;
          return bytes;
        }),
      );
      const failure: unknown = await ask(running).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code });
      expect(String(failure)).not.toContain("secret-73");
      if (code === 3) expect(failure).toMatchObject({ details: expect.stringContaining("é %.") });
      expect(running.bugs).toHaveLength(code === 13 ? 1 : 0);
      isBroken = false;
      expect(await ask(running)).toBe("question");
    });

    it("is UNIMPLEMENTED where nobody serves the path", async () => {
      const running = await start(echo);
      expect(await statusOf(ask(running, { path: "/test.Service/Other" }))).toBe(12);
      expect(await ask(running)).toBe("question");
    });

    it(`takes and answers ${messageBytesMax} bytes, and refuses more`, async () => {
      const running = await start(
        unary(async (bytes) => (bytes.length === 1 ? Buffer.alloc(messageBytesMax + 1) : bytes)),
      );
      const largest = Buffer.alloc(messageBytesMax, "x");
      expect(await ask(running, { bytes: largest })).toBe(largest.toString());
      const larger = Buffer.alloc(messageBytesMax + 1);
      expect(await statusOf(ask(running, { bytes: larger }))).toBe(8);
      expect(await statusOf(ask(running, { bytes: Buffer.alloc(1) }))).toBe(8);
      expect(await ask(running)).toBe("question");
    });

    it.each([20_000, 61_440, 70_000])(
      "lives after metadata of %d bytes, taken or refused",
      async (size) => {
        const running = await start(echo);
        const status = await statusOf(ask(running, { metadata: { "x-large": "~".repeat(size) } }));
        // Both take 64 KiB, of which Envoy's callers may send 60.
        expect(status === 0).toBe(size < 65_536);
        expect(await ask(running)).toBe("question");
      },
    );

    it("is not begun when it is late and its caller has gone", async () => {
      const turns: (() => void)[] = [];
      const begun: string[] = [];
      let isLate = false;
      const running = await start(
        unary(async (bytes) => {
          if (isLate) begun.push(Buffer.from(bytes).toString());
          return Buffer.from("done");
        }),
        {
          clock: {
            ...realClock,
            scheduleTurn: (callback) => {
              turns.push(callback);
              return () => {};
            },
          },
          isLate: () => isLate,
        },
      );
      // The connection stands, so that the hasty one is sent before its time is over.
      expect(await ask(running)).toBe("done");
      isLate = true;
      const hasty = ask(running, { bytes: Buffer.from("hasty"), deadlineMs: 300 });
      expect(await statusOf(hasty)).toBe(4);
      const patient = ask(running, { bytes: Buffer.from("patient") });
      await waitFor("both were read", () => turns.length === 2);
      expect(begun).toEqual([]);
      for (const turn of turns) turn();
      expect(await patient).toBe("done");
      expect([begun, running.dropped.count]).toEqual([["patient"], 1]);
    });

    it("whose caller has gone may still be answered, to nobody", async () => {
      const finish: (() => void)[] = [];
      // On a busy machine some may come when their callers have gone.
      let isHolding = true;
      const running = await start(
        unary(async (bytes) => {
          const held = Buffer.from(bytes);
          if (isHolding) await new Promise<void>((resolve) => finish.push(resolve));
          return held;
        }),
      );
      const calls = Array.from({ length: 20 }, () => statusOf(ask(running, { deadlineMs: 200 })));
      expect(new Set(await Promise.all(calls))).toEqual(new Set([4]));
      expect(finish.length).toBeGreaterThan(0);
      isHolding = false;
      for (const one of finish) one();
      expect(await ask(running)).toBe("question");
      expect(running.bugs).toEqual([]);
    });
  });

  describe("a connection", () => {
    it(`has ${concurrentStreamsMax} calls in flight at most; one more waits its turn`, async () => {
      const waiting: (() => void)[] = [];
      const running = await start(
        unary(async (bytes) => {
          const held = Buffer.from(bytes);
          await new Promise<void>((resolve) => waiting.push(resolve));
          return held;
        }),
      );
      const calls = Array.from({ length: concurrentStreamsMax + 1 }, (_, i) =>
        ask(running, { bytes: Buffer.from(String(i)) }),
      );
      await waitFor("the connection is full", () => waiting.length >= concurrentStreamsMax);
      expect(waiting).toHaveLength(concurrentStreamsMax);
      waiting[0]?.();
      await waitFor("the last call arrives", () => waiting.length === concurrentStreamsMax + 1);
      for (const finish of waiting) finish();
      expect(await Promise.all(calls)).toEqual(calls.map((_, i) => String(i)));
      expect(running.connectionCount()).toBe(1);
    });
  });

  describe("a server stream", () => {
    const serverStream = (handle: ServerStreamHandler): MethodHandler => ({
      kind: "serverStream",
      name: "Ask",
      handle,
    });

    it.each([
      { what: "answers", answers: ["a", "b"], thrown: undefined, code: 0 },
      { what: "nothing", answers: [], thrown: undefined, code: 0 },
      { what: "a failure", answers: [], thrown: new ServiceError("STORE_TIMEOUT"), code: 14 },
      {
        what: "answers and a failure",
        answers: ["a"],
        thrown: new ServiceError("STORE_TIMEOUT"),
        code: 14,
      },
    ])("sends $what", async ({ answers, thrown, code }) => {
      const running = await start(
        serverStream(async function* () {
          for (const answer of answers) yield Buffer.from(answer);
          if (thrown !== undefined) throw thrown;
        }),
      );
      expect(await readStream(running)).toEqual({ answers, code });
    });

    it("waits for a client that reads slowly", async () => {
      let sentCount = 0;
      const running = await start(
        serverStream(async function* () {
          for (; sentCount < 64; sentCount += 1) yield Buffer.alloc(262_144, "x");
        }),
      );
      const call = openStream(running);
      call.on("error", () => {});
      call.pause();
      await waitFor("the first answers leave", () => sentCount > 0);
      // What the client's windows and one stream's queue hold, and far from all.
      const before = await waitFor("it waits", async () => {
        const seen = sentCount;
        await ask(running, { path: "/test.Service/Other" }).catch(() => {});
        return seen === sentCount && seen;
      });
      expect(before).toBeLessThan(32);
      let byteCount = 0;
      call.on("data", (bytes: Buffer) => {
        byteCount += bytes.length;
      });
      call.resume();
      const code = await new Promise((resolve) => call.on("status", (end) => resolve(end.code)));
      expect([byteCount, code]).toEqual([64 * 262_144, 0]);
    });

    it("is over for its handler when the caller goes away", async () => {
      let isAborted = false;
      const running = await start(
        serverStream(async function* (_, { signal }) {
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
        serverStream(async function* (_, { signal }) {
          yield Buffer.from("a");
          isWaiting = true;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        }),
      );
      const all = readStream(running);
      await waitFor("the stream is open", () => isWaiting);
      expect(await running.transport.close(10_000)).toBe(true);
      expect(await all).toEqual({ answers: ["a"], code: 14 });
    });
  });

  describe("a call with messages each way", () => {
    /** Answers each message when it is told to, and ends after the caller has. */
    function conversation(): { readonly method: MethodHandler; readonly log: string[] } {
      const log: string[] = [];
      const open: Extract<MethodHandler, { kind: "bidi" }>["open"] = (call, answers) => {
        log.push(`open ${call.metadata("x-word")}`);
        return {
          onMessage: (bytes) => {
            const text = Buffer.from(bytes).toString();
            log.push(text);
            if (text === "stop") return answers.end();
            if (text === "fail") return answers.fail(new ServiceError("REQUEST_INVALID"));
            if (text === "bug") return answers.fail(new TypeError("secret-73"));
            answers.send(Buffer.from(`<${text}>`));
            answers.next();
          },
          onEnd: () => {
            log.push("end");
            answers.end();
          },
          onCancel: () => answers.end(),
          onDrain: () => {},
        };
      };
      return { method: { kind: "bidi", name: "Ask", open }, log };
    }

    function talk(running: RunningTransport) {
      const call = running.client.makeBidiStreamRequest(askPath, identity, identity);
      const answers: string[] = [];
      call.on("data", (bytes: Buffer) => answers.push(bytes.toString()));
      call.on("error", () => {});
      const ended = new Promise<number>((resolve) =>
        call.on("status", ({ code }) => resolve(code)),
      );
      return { call, answers, ended };
    }

    it("answers each message, and ends when the caller has", async () => {
      const { method, log } = conversation();
      const running = await start(method);
      const { call, answers, ended } = talk(running);
      for (const text of ["a", "b", "c"]) call.write(Buffer.from(text));
      await waitFor("all are answered", () => answers.length === 3);
      call.end();
      expect(await within("it ends", 10_000, ended)).toBe(0);
      expect(answers).toEqual(["<a>", "<b>", "<c>"]);
      expect(log).toEqual(["open undefined", "a", "b", "c", "end"]);
    });

    it.each([
      { word: "stop", code: 0 },
      { word: "fail", code: 3 },
      { word: "bug", code: 13 },
    ])("ends with $code at $word, whatever the caller still sends", async ({ word, code }) => {
      const { method, log } = conversation();
      const running = await start(method);
      const { call, answers, ended } = talk(running);
      call.write(Buffer.from("a"));
      call.write(Buffer.from(word));
      call.write(Buffer.from("more"));
      expect(await within("it ends", 10_000, ended)).toBe(code);
      await waitFor("the answer is read", () => answers.length === 1);
      expect(log.slice(1)).toEqual(["a", word]);
      expect(running.bugs).toHaveLength(code === 13 ? 1 : 0);
    });

    it("fails with an answer that is too large, and its handler is told so", async () => {
      let cancelCount = 0;
      const running = await start({
        kind: "bidi",
        name: "Ask",
        open: (_call, answers) => ({
          onMessage: () => {
            answers.send(Buffer.alloc(messageBytesMax + 1));
            answers.next();
          },
          onEnd: () => {},
          onCancel: () => {
            cancelCount += 1;
            answers.end();
          },
          onDrain: () => {},
        }),
      });
      const { call, ended } = talk(running);
      call.write(Buffer.from("a"));
      expect(await within("it ends", 10_000, ended)).toBe(8);
      await waitFor("the handler is told", () => cancelCount === 1);
      expect(running.bugs).toEqual([]);
    });

    it("tells its handler when the caller has gone", async () => {
      const log: string[] = [];
      const running = await start({
        kind: "bidi",
        name: "Ask",
        open: (_call, answers) => ({
          onMessage: () => {
            log.push("message");
            answers.send(Buffer.from("a"));
          },
          // The client's library ends its side before it resets the stream.
          onEnd: () => log.push("end"),
          onCancel: () => {
            log.push("cancel");
            answers.send(Buffer.from("b"));
            answers.end();
          },
          onDrain: () => {},
        }),
      });
      const { call, answers } = talk(running);
      call.write(Buffer.from("a"));
      await waitFor("it is answered", () => answers.length === 1);
      call.cancel();
      await waitFor("the handler knows", () => log.includes("cancel"));
      expect(running.bugs).toEqual([]);
    });

    it("tells its handler who is at the other end of its connection", async () => {
      const identities: string[] = [];
      const running = await start({
        kind: "bidi",
        name: "Ask",
        open: ({ peer }, answers) => {
          identities.push(peer.identity);
          answers.end();
          const ignore = (): void => {};
          return { onMessage: ignore, onEnd: ignore, onCancel: ignore, onDrain: ignore };
        },
      });
      expect(await within("it ends", 10_000, talk(running).ended)).toBe(0);
      expect(identities).toEqual(["address:127.0.0.1"]);
    });

    it("fails when its handler throws in place of beginning", async () => {
      const running = await start({
        kind: "bidi",
        name: "Ask",
        open: () => {
          throw new ServiceError("POLICY_MISSING");
        },
      });
      expect(await within("it ends", 10_000, talk(running).ended)).toBe(14);
    });

    it("has one message in work, however many come", async () => {
      const inWork: { count: number; most: number; next: (() => void)[] } = {
        count: 0,
        most: 0,
        next: [],
      };
      const running = await start({
        kind: "bidi",
        name: "Ask",
        open: (_call, answers) => ({
          onMessage: () => {
            inWork.count += 1;
            inWork.most = Math.max(inWork.most, inWork.count);
            inWork.next.push(() => {
              inWork.count -= 1;
              answers.send(Buffer.from("ok"));
              answers.next();
            });
          },
          onEnd: () => answers.end(),
          onCancel: () => answers.end(),
          onDrain: () => {},
        }),
      });
      const { call, answers, ended } = talk(running);
      for (let i = 0; i < 50; i += 1) call.write(Buffer.alloc(20_000));
      call.end();
      for (let i = 0; i < 50; i += 1) {
        await waitFor("a message is in work", () => inWork.next.length > 0);
        inWork.next.shift()?.();
      }
      expect(await within("it ends", 10_000, ended)).toBe(0);
      await waitFor("all answers are read", () => answers.length === 50);
      expect(inWork.most).toBe(1);
    });
  });
});

function openStream({ client }: RunningTransport) {
  return client.makeServerStreamRequest(askPath, identity, identity, Buffer.from("question"));
}

function readStream(
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
