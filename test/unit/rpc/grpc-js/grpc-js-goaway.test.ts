import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { GrpcJsTransport } from "../../../../src/rpc/grpc-js/grpc-js-transport.js";
import { FrameClient } from "../../../support/http2-frames.js";
import { realClock, realRandom } from "../../../support/real-clock.js";
import { waitFor } from "../../../support/wait.js";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const answerBytes = 1_000_000;

/** A server whose connections soon reach their age, and whose answers are large. */
async function start(ages: { readonly ageMs: number; readonly graceMs: number }) {
  const sockets: Socket[] = [];
  const bugs: unknown[] = [];
  const transport = new GrpcJsTransport({
    services: [
      {
        name: "test.Service",
        methods: [
          {
            kind: "unary",
            name: "Ask",
            handle: (_bytes, _context, answer) => answer.reply(new Uint8Array(answerBytes)),
          },
        ],
      },
    ],
    clock: realClock,
    random: realRandom,
    connectionAgeMsMax: ages.ageMs,
    connectionAgeGraceMs: ages.graceMs,
    onBug: (thrown) => bugs.push(thrown),
    isLate: () => false,
    onDropped: () => {},
  });
  const server = createServer((socket) => {
    sockets.push(socket);
    transport.accept(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = await FrameClient.open((server.address() as AddressInfo).port);
  cleanups.push(
    () => server.close(),
    () => transport.close(0),
    () => client.close(),
  );
  return { transport, client, sockets, bugs };
}

/** Bytes that wait for the client, below HTTP/2. */
function queueBytes(socket: Socket | undefined): number {
  return Number(Reflect.get(Object(Reflect.get(Object(socket), "_handle")), "writeQueueSize"));
}

const emptyMessages = Array.from({ length: 30 }, () => Buffer.alloc(0));

describe("askToLeave()", () => {
  it("tells a client whose connection has reached its age", async () => {
    const { client } = await start({ ageMs: 50, graceMs: 60_000 });
    await waitFor("it is told", () => client.counts.goaways === 1);
  });

  it("leaves a client alone that does not read, and cuts it after the grace", async () => {
    // The process itself ended here: a frame of ours that had to wait below HTTP/2 came back as
    // the end of a write that HTTP/2 had never begun.
    const { client, sockets, bugs } = await start({ ageMs: 1_000, graceMs: 1_000 });
    client.pause();
    client.sendCalls("/test.Service/Ask", emptyMessages);
    await waitFor("answers wait", () => queueBytes(sockets[0]) > answerBytes);
    await waitFor("it is cut", () => sockets[0]?.destroyed);
    client.resume();
    await waitFor("the client knows", () => client.isClosed);
    expect(client.counts.goaways).toBe(0);
    expect(bugs).toEqual([]);
  });

  it("tells nothing to such a client at the server's end either", async () => {
    const { client, sockets, transport } = await start({ ageMs: 60_000, graceMs: 60_000 });
    client.pause();
    client.sendCalls("/test.Service/Ask", emptyMessages);
    await waitFor("answers wait", () => queueBytes(sockets[0]) > answerBytes);
    await transport.announceClose(100);
    const closed = transport.close(10_000);
    client.resume();
    expect(await closed).toBe(true);
    expect(client.counts.answered).toBeGreaterThanOrEqual(30);
  });
});
