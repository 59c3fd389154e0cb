import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ServerStream, StreamReader } from "../../../../src/wire/base/http2.js";
import {
  type ConnectionEnd,
  Http2Connection,
} from "../../../../src/wire/http2/http2-connection.js";
import { realClock, realRandom } from "../../../support/real-clock.js";
import { seedCount } from "../../../support/seeds.js";
import { waitFor } from "../../../support/wait.js";

/** Answers with the bytes that came, each part as it comes. */
class Echo implements StreamReader {
  readonly #stream: ServerStream;
  #isGone = false;
  #hasAnswered = false;

  constructor(stream: ServerStream) {
    this.#stream = stream;
  }

  onData(bytes: Uint8Array, isEnd: boolean): void {
    this.#begin();
    this.#stream.sendData(new Uint8Array(bytes), false);
    this.#stream.consumed(bytes.length);
    if (isEnd) this.onEnd();
  }

  onEnd(): void {
    this.#begin();
    this.#stream.sendHeaders([["grpc-status", "0"]], true);
  }

  onReset(): void {
    if (this.#isGone) throw new Error("reset twice");
    this.#isGone = true;
    this.#stream.release();
  }

  onDrain(): void {}

  #begin(): void {
    if (this.#hasAnswered) return;
    this.#hasAnswered = true;
    this.#stream.sendHeaders([[":status", "200"]], false);
  }
}

interface Served {
  readonly port: number;
  readonly server: Server;
  readonly sockets: Set<Socket>;
  readonly connections: Http2Connection[];
  readonly ends: ConnectionEnd[];
  readonly bugs: unknown[];
}

const open: { close(): void }[] = [];

afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function serve(): Promise<Served> {
  const sockets = new Set<Socket>();
  const connections: Http2Connection[] = [];
  const ends: ConnectionEnd[] = [];
  const bugs: unknown[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    const connection = new Http2Connection(socket, {
      acceptor: { onStream: (stream) => new Echo(stream) },
      events: {
        onEnd: (end) => ends.push(end),
        onStreamError: () => {},
        onBug: (thrown) => bugs.push(thrown),
      },
      clock: realClock,
      random: realRandom,
      scheduleFlush: queueMicrotask,
      ageMsMax: 86_400_000,
      ageGraceMs: 3_600_000,
    });
    connections.push(connection);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  });
  const { port } = server.address() as AddressInfo;
  return { port, server, sockets, connections, ends, bugs };
}

function clientOf(port: number, initialWindowSize = 65_535): ClientHttp2Session {
  const client = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize } });
  // A cut connection is what some of these tests are about.
  client.on("error", () => {});
  open.push({ close: () => client.destroy() });
  return client;
}

interface Call {
  readonly stream: ClientHttp2Stream;
  readonly answer: Promise<{ readonly body: Buffer; readonly status: unknown }>;
}

function call(client: ClientHttp2Session): Call {
  const stream = client.request({ ":method": "POST", ":path": "/headgate.Test/Echo" });
  const chunks: Buffer[] = [];
  let status: unknown;
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.on("trailers", (trailers) => {
    status = trailers["grpc-status"];
  });
  const answer = new Promise<{ readonly body: Buffer; readonly status: unknown }>(
    (resolve, reject) => {
      stream.once("error", reject);
      stream.once("close", () => resolve({ body: Buffer.concat(chunks), status }));
    },
  );
  return { stream, answer };
}

function echo(client: ClientHttp2Session, body: Buffer): Call["answer"] {
  const { stream, answer } = call(client);
  stream.end(body);
  return answer;
}

describe("Http2Connection, with Node's client", () => {
  it("serves thousands of streams on one connection, 500 at a time", async () => {
    const { port, bugs, connections } = await serve();
    const client = clientOf(port);
    const body = Buffer.from("body of a small request");
    for (let round = 0; round < seedCount(4); round += 1) {
      const answers = Array.from({ length: 500 }, () => echo(client, body));
      for (const answer of await Promise.all(answers)) {
        expect(answer).toEqual({ body, status: "0" });
      }
    }
    expect(bugs).toEqual([]);
    expect(connections[0]?.streamCount).toBe(0);
  });

  it("holds 1,000 open streams on each of several connections, and answers each", async () => {
    const { port, connections } = await serve();
    const connectionCount = Math.min(10, seedCount(3));
    const calls: Call[] = [];
    for (let count = 0; count < connectionCount; count += 1) {
      const client = clientOf(port);
      for (let i = 0; i < 1_000; i += 1) calls.push(call(client));
    }
    for (const { stream } of calls) stream.write("open");
    await waitFor("every stream to be open", () => {
      return connections.reduce((sum, { streamCount }) => sum + streamCount, 0) === calls.length;
    });
    for (const { stream } of calls) stream.end("ended");
    for (const { answer } of calls) {
      expect(await answer).toMatchObject({ body: Buffer.from("openended"), status: "0" });
    }
  });

  it.each([1, 10, 1_000, 65_535, 1_000_000])(
    "echoes bodies of every size through windows of %i bytes",
    async (windowBytes) => {
      const { port, bugs } = await serve();
      const client = clientOf(port, windowBytes);
      const sizes = [0, 1, 9, 16_384, 16_385, 70_000].map((size) =>
        Math.min(size, windowBytes * 200),
      );
      const bodies = sizes.map((size, i) => Buffer.alloc(size, i));
      const answers = await Promise.all(bodies.map((body) => echo(client, body)));
      for (const [i, { body, status }] of answers.entries()) {
        expect(body.equals(bodies[i] ?? Buffer.alloc(0))).toBe(true);
        expect(status).toBe("0");
      }
      expect(bugs).toEqual([]);
    },
  );

  it("echoes a body larger than every window, beside small ones", async () => {
    const { port } = await serve();
    const client = clientOf(port);
    const large = Buffer.alloc(9_000_000, "large");
    const [answer, ...small] = await Promise.all([
      echo(client, large),
      ...Array.from({ length: 100 }, () => echo(client, Buffer.from("small"))),
    ]);
    expect(answer?.body.equals(large)).toBe(true);
    for (const { body } of small) expect(body.toString()).toBe("small");
  });

  it("goes on when streams are cancelled at random moments", async () => {
    const { port, bugs, connections } = await serve();
    const client = clientOf(port, 1_000);
    for (let round = 0; round < 50; round += 1) {
      const calls = Array.from({ length: 20 }, () => call(client));
      for (const { stream, answer } of calls) {
        answer.catch(() => {});
        stream.end(Buffer.alloc(5_000));
      }
      for (const [i, { stream }] of calls.entries()) {
        if (i % 2 === round % 2) stream.close(8);
      }
      await Promise.allSettled(calls.map(({ answer }) => answer));
    }
    expect(await echo(client, Buffer.from("still here"))).toMatchObject({ status: "0" });
    expect(bugs).toEqual([]);
    expect(connections[0]?.streamCount).toBe(0);
  });

  it("leaves without losing a call", async () => {
    const { port, connections, ends } = await serve();
    const client = clientOf(port);
    const calls = Array.from({ length: 50 }, () => call(client));
    for (const { stream } of calls) stream.write("before");
    await waitFor("the streams to be open", () => connections[0]?.streamCount === 50);
    const known = new Promise<void>((resolve) => connections[0]?.leave(resolve));
    await known;
    for (const { stream } of calls) stream.end(" and after");
    for (const { answer } of calls) {
      expect((await answer).body.toString()).toBe("before and after");
    }
    await waitFor("the connection to end", () => ends.length === 1);
    expect(ends).toEqual([{ kind: "left" }]);
  });

  it("frees everything when clients are cut off in the middle", async () => {
    const { port, connections, ends, bugs } = await serve();
    for (let count = 0; count < 10; count += 1) {
      const client = clientOf(port, 100);
      const calls = Array.from({ length: 20 }, () => call(client));
      for (const { stream, answer } of calls) {
        answer.catch(() => {});
        stream.write(Buffer.alloc(1_000));
      }
      await waitFor("the streams to be open", () => connections[count]?.streamCount === 20);
      client.destroy();
    }
    await waitFor("every connection to end", () => ends.length === 10);
    for (const { streamCount } of connections) expect(streamCount).toBe(0);
    expect(bugs).toEqual([]);
  });
});
