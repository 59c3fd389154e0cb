import { describe, expect, it } from "vitest";
import type { NativeTransportParts } from "../../src/wire/grpc/native-transport.js";
import type { MethodHandler } from "../../src/wire/grpc/service.js";
import { FakeClock } from "../support/fake-clock.js";
import { FrameClient } from "../support/http2-frames.js";
import { framed } from "../support/recorded-stream.js";
import {
  ask,
  askPath,
  echo,
  grpcStatusOf,
  openRaw,
  portNames,
  type RunningTransport,
  sendRaw,
  statusOf,
  transportNames,
  useTransports,
} from "../support/transports.js";
import { waitFor, within } from "../support/wait.js";

const transports = useTransports();

const question = framed("question");
const lastStreamIdMax = 2 ** 31 - 1;

describe.each(portNames)("%s", (name) => {
  const start = (
    method: MethodHandler,
    parts?: Partial<NativeTransportParts>,
  ): Promise<RunningTransport> => transports.start(name, method, parts);

  const open = (running: RunningTransport) => transports.openRaw(running);

  describe("an old connection", () => {
    it("is asked to go and still serves what its client sends before it knows", async () => {
      const clock = new FakeClock();
      const running = await start(echo, { connectionAgeMsMax: 1_000, clock });
      const { session, goaways } = await open(running);
      await sendRaw(session, [question]);
      clock.advance(890);
      const status = sendRaw(session, [question]).then(grpcStatusOf);
      clock.advance(220);
      await waitFor("the client is asked to go", () => goaways.length > 0);
      expect(goaways[0]).toEqual({ code: 0, lastStreamId: lastStreamIdMax });
      expect(await within("the call is answered", 10_000, status)).toBe(0);
    });

    it("is cut when it is still there after the grace", async () => {
      const clock = new FakeClock();
      const parts = { connectionAgeMsMax: 1_000, connectionAgeGraceMs: 5_000, clock };
      let hasStarted = false;
      const running = await start(
        {
          kind: "unary",
          name: "Ask",
          handle: () => {
            hasStarted = true;
          },
        },
        parts,
      );
      const { session, goaways } = await open(running);
      const isClosed = new Promise<void>((resolve) => session.once("close", () => resolve()));
      void sendRaw(session, [question]);
      await waitFor("the call is in work", () => hasStarted);
      clock.advance(1_110);
      await waitFor("the client is asked to go", () => goaways.length > 0);
      expect(running.connectionCount()).toBe(1);
      clock.advance(5_000);
      await within("the connection is cut", 10_000, isClosed);
    });
  });

  describe("stopping", () => {
    it("asks clients to go first and still serves what they send until they know", async () => {
      const running = await start(echo);
      const { session, goaways } = await open(running);
      const status = sendRaw(session, [question]).then(grpcStatusOf);
      await within("all clients know", 10_000, running.transport.announceClose(60_000));
      expect(goaways[0]).toEqual({ code: 0, lastStreamId: lastStreamIdMax });
      expect(await within("the call is answered", 10_000, status)).toBe(0);
      expect(await running.transport.close(10_000)).toBe(true);
    });

    it("loses no call of clients that send all the time", async () => {
      const [first, second] = [await start(echo), await start(echo)];
      let isOver = false;
      const statuses: number[] = [];
      const caller = async (): Promise<void> => {
        // As a proxy does: who is asked to go is left, and the next call goes elsewhere.
        let { session, goaways } = await open(first);
        while (!isOver) {
          if (goaways.length > 0) ({ session, goaways } = await open(second));
          const answer = await sendRaw(session, [question]);
          // REFUSED_STREAM: the client itself has not sent it, for it learned meanwhile.
          if (answer.resetCode !== 7) statuses.push(grpcStatusOf(answer) ?? -1);
        }
      };
      const callers = Array.from({ length: 8 }, caller);
      await waitFor("calls are made", () => statuses.length > 200);
      await first.transport.announceClose(10_000);
      expect(await first.transport.close(10_000)).toBe(true);
      const count = statuses.length;
      await waitFor("calls go on", () => statuses.length > count + 200);
      isOver = true;
      await Promise.all(callers);
      expect(new Set(statuses)).toEqual(new Set([0]));
    });

    it("lets calls in flight finish", async () => {
      let finish: (() => void) | undefined;
      const running = await start({
        kind: "unary",
        name: "Ask",
        handle: (_request, _call, answer) => {
          finish = () => answer.reply(Buffer.from("done"));
        },
      });
      const answer = ask(running);
      await waitFor("the call is in flight", () => finish !== undefined);
      const closed = running.transport.close(10_000);
      finish?.();
      expect([await answer, await closed]).toEqual(["done", true]);
    });

    it("cuts what is not finished when the grace is over, and says so", async () => {
      let hasStarted = false;
      const running = await start({
        kind: "unary",
        name: "Ask",
        handle: () => {
          hasStarted = true;
        },
      });
      const status = statusOf(ask(running));
      await waitFor("the call is in flight", () => hasStarted);
      expect(await running.transport.close(1)).toBe(false);
      expect([1, 13, 14]).toContain(await within("the call fails", 10_000, status));
      await waitFor("the connection is gone", () => running.connectionCount() === 0);
    });

    it("takes no connection any more", async () => {
      const running = await start(echo);
      await running.transport.close(0);
      expect(await statusOf(ask(running, { deadlineMs: 500 }))).not.toBe(0);
      expect(running.connectionCount()).toBe(0);
    });

    it("ends at once where there is no connection", async () => {
      const running = await start(echo);
      await running.transport.announceClose(60_000);
      expect(await running.transport.close(60_000)).toBe(true);
    });
  });

  it("serves 320 connections, one after the other, and keeps none", async () => {
    const running = await start(echo);
    const worker = async (): Promise<void> => {
      for (let i = 0; i < 40; i += 1) {
        const { session } = await openRaw(running);
        expect(grpcStatusOf(await sendRaw(session, [question]))).toBe(0);
        session.close();
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    await waitFor("all are gone", () => running.connectionCount() === 0);
  });
});

/** Such clients write their frames in plaintext. */
describe.each(transportNames)("stopping on %s", (name) => {
  it("does not wait for a client that never answers", async () => {
    const running = await transports.start(name, echo);
    // It greets, and answers nothing.
    const client = await FrameClient.open(running.port);
    transports.atEnd(() => client.close());
    client.sendCalls(askPath, [Buffer.alloc(0)]);
    await waitFor("it is known", () => client.counts.answered > 0);
    await within("announceClose() gives up", 5_000, running.transport.announceClose(1));
  });
});
