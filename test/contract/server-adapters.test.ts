import { once } from "node:events";
import { type ClientRequest, createServer, request as httpRequest } from "node:http";
import { type ClientHttp2Stream, connect as connectHttp2, constants } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import fastify from "fastify";
import { describe, expect, it } from "vitest";
import { fastifyAdmission } from "../../src/client/server/fastify.js";
import { httpAdmission } from "../../src/client/server/node-http.js";
import {
  createServerAdmission,
  type ServerAdmission,
} from "../../src/client/server/server-admission.js";
import type { ServerAdmissionOptions } from "../../src/client/server/server-options.js";
import { type RefusalCause, refusalOf, refusalRows } from "../../src/core/admission/refusal.js";
import {
  type AdmittedWork,
  type ServerKind,
  type ServerWork,
  serverKinds,
  startAdmittingServer,
} from "../support/admitting-server.js";
import { FakeClock } from "../support/fake-clock.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Works that have begun and wait for the test. */
class Works {
  readonly begun: AdmittedWork[] = [];
  readonly begin: ServerWork = (work) => {
    this.begun.push(work);
  };
  answerAll(): void {
    for (const { response } of this.begun.splice(0)) response.end("done");
  }
}

interface Started {
  readonly admission: ServerAdmission;
  readonly port: number;
  readonly http: HttpClient;
}

async function start(
  kind: ServerKind,
  work: ServerWork,
  options: Partial<ServerAdmissionOptions> = {},
): Promise<Started> {
  const priority = { header: "x-request-priority" };
  const retryAfter = { jitterRatio: 0 };
  const shared = { name: "orders", maxInFlight: 2, shedAt: false, priority, retryAfter } as const;
  const admission = createServerAdmission({ ...shared, ...options });
  const server = await startAdmittingServer(kind, admission, work);
  const http = new HttpClient();
  stage.atEnd(() => server.close());
  stage.atEnd(() => http.close());
  return { admission, port: server.port, http };
}

function until(what: string, look: () => boolean): Promise<true> {
  return waitFor(what, look, { withinMs: 5_000 });
}

const idle = { inFlight: 0, waiting: 0 };

async function untilIdle(admission: ServerAdmission): Promise<void> {
  await until("all permits are back", () => {
    const { inFlight, waiting } = admission.snapshot();
    return inFlight === 0 && waiting === 0;
  });
}

/** Each permit taught the law once. */
function expectAllEnded(admission: ServerAdmission, admittedCount: number): void {
  const { admitted, outcomes } = admission.snapshot();
  expect(sum(admitted)).toBe(admittedCount);
  expect(sum(outcomes)).toBe(admittedCount);
  expect(admission.snapshot()).toMatchObject(idle);
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((one, other) => one + other, 0);
}

/** A request that its client can give up at any time, over either version of HTTP. */
interface OpenRequest {
  write(text: string): void;
  abort(): void;
  /** Settles when the response has begun. */
  readonly responded: Promise<unknown>;
}

function openRequest(kind: ServerKind, port: number, path = "/"): OpenRequest {
  return kind === "node:http2" ? openHttp2Request(port, path) : openHttp1Request(port, path);
}

function openHttp1Request(port: number, path: string): OpenRequest {
  const sent: ClientRequest = httpRequest({ port, path, method: "POST", agent: false });
  sent.on("error", () => {});
  sent.flushHeaders();
  const responded = once(sent, "response");
  // Who gives a request up waits for no response.
  responded.catch(() => {});
  return {
    write: (text) => sent.write(text),
    abort: () => sent.destroy(),
    responded,
  };
}

function openHttp2Request(port: number, path: string): OpenRequest {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  stage.atEnd(() => session.destroy());
  const stream: ClientHttp2Stream = session.request(
    { ":path": path, ":method": "POST" },
    { endStream: false },
  );
  stream.on("error", () => {});
  const responded = once(stream, "response");
  responded.catch(() => {});
  return {
    write: (text) => stream.write(text),
    abort: () => stream.close(constants.NGHTTP2_CANCEL),
    responded,
  };
}

describe.each(serverKinds)("admission behind the adapter for %s", (kind) => {
  it("lets no more in than the limit, and gets each permit back with its answer", async () => {
    const works = new Works();
    const { admission, port } = await start(kind, works.begin, {
      queue: { sizeMax: 100, waitMsMax: 60_000 },
    });
    const requests = Array.from({ length: 20 }, () => openRequest(kind, port));
    for (let answered = 0; answered < 20; answered += works.begun.length) {
      await until("the next two have begun", () => works.begun.length === 2);
      expect(admission.snapshot().inFlight).toBe(2);
      const { length } = works.begun;
      works.answerAll();
      answered += length;
    }
    await Promise.all(requests.map(({ responded }) => responded));
    await untilIdle(admission);
    expectAllEnded(admission, 20);
  });

  it("gets the permit back of a client that leaves before it has sent its body", async () => {
    const works = new Works();
    const { admission, port } = await start(kind, works.begin);
    const left = openRequest(kind, port);
    left.write("half of it");
    await until("it has begun", () => works.begun.length === 1);
    const { signal } = works.begun[0]?.permit ?? {};
    left.abort();
    await untilIdle(admission);
    expect(signal?.aborted).toBe(true);
    // The handler answers a connection that is gone.
    works.answerAll();
    expectAllEnded(admission, 1);
    expect(admission.snapshot().outcomes.ignore).toBe(1);
  });

  it("gets the permit back of a client that leaves in the middle of its answer", async () => {
    const works = new Works();
    const { admission, port } = await start(kind, works.begin);
    const left = openRequest(kind, port);
    await until("it has begun", () => works.begun.length === 1);
    works.begun[0]?.response.write("half of it");
    await left.responded;
    expect(admission.snapshot().inFlight).toBe(1);
    left.abort();
    await untilIdle(admission);
    works.answerAll();
    expectAllEnded(admission, 1);
  });

  it("frees the place of a client that leaves while it waits", async () => {
    const works = new Works();
    const { admission, port } = await start(kind, works.begin, {
      maxInFlight: 1,
      queue: { sizeMax: 10, waitMsMax: 60_000 },
    });
    const first = openRequest(kind, port);
    await until("it has begun", () => works.begun.length === 1);
    const left = openRequest(kind, port);
    await until("it waits", () => admission.snapshot().waiting === 1);
    left.abort();
    await until("it has left", () => admission.snapshot().leftCount === 1);
    works.answerAll();
    await first.responded;
    await untilIdle(admission);
    expectAllEnded(admission, 1);
    expect(works.begun).toHaveLength(0);
  });

  it("gets the permit back of a handler that throws", async () => {
    const { admission, port } = await start(kind, () => {
      throw new Error("as handlers do");
    });
    for (let i = 0; i < 5; i += 1) {
      const request = openRequest(kind, port);
      await request.responded;
      request.abort();
    }
    await untilIdle(admission);
    expectAllEnded(admission, 5);
    expect(admission.snapshot().outcomes.ignore).toBe(5);
  });

  it("shows handlers the class of a request, its time and the brownout", async () => {
    const clock = new FakeClock();
    const works = new Works();
    const { port } = await start(kind, works.begin, { clock, maxInFlight: 1 });
    openRequest(kind, port);
    await until("it has begun", () => works.begun.length === 1);
    const permit = works.begun[0]?.permit;
    expect(permit).toMatchObject({ priority: "normal", brownout: false });
    expect(permit?.remainingMs()).toBeUndefined();
    clock.advance(10_000);
    // A request that is refused makes the admission look at its load.
    await openRequest(kind, port).responded;
    expect(permit?.brownout).toBe(true);
    works.answerAll();
  });
});

/** Fields that the servers add themselves. */
const ownFields = new Set([
  "date",
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
  "x-powered-by",
]);

describe.each(serverKinds.filter((kind) => kind !== "node:http2"))(
  "admission over HTTP/1.1 behind the adapter for %s",
  (kind) => {
    it("serves many requests on one connection", async () => {
      const { admission, port, http } = await start(kind, ({ response }) => response.end("done"));
      for (let i = 0; i < 20; i += 1) {
        expect(await http.send({ port, body: "text" })).toMatchObject({
          status: 200,
          body: "done",
        });
      }
      await untilIdle(admission);
      expectAllEnded(admission, 20);
      expect(admission.snapshot().outcomes.success).toBe(20);
    });

    it("gets permits back of pipelined requests whose connection goes", async () => {
      const works = new Works();
      const { admission, port } = await start(kind, works.begin, { maxInFlight: 100 });
      const socket = connect(port, "127.0.0.1");
      socket.write("GET / HTTP/1.1\r\nhost: orders\r\n\r\n".repeat(30));
      await until("all have begun", () => works.begun.length === 30);
      expect(admission.snapshot().inFlight).toBe(30);
      // The first is answered, so the second is the one whose turn it is.
      works.begun[0]?.response.end("done");
      await once(socket, "data");
      socket.destroy();
      await untilIdle(admission);
      expectAllEnded(admission, 30);
      expect(admission.snapshot().outcomes).toMatchObject({ success: 1, ignore: 29 });
    });

    it("begins no work for a pipelined request whose connection goes before its turn", async () => {
      const works = new Works();
      const queue = { sizeMax: 10, waitMsMax: 60_000 };
      const { admission, port } = await start(kind, works.begin, { maxInFlight: 1, queue });
      const socket = connect(port, "127.0.0.1");
      socket.write("GET / HTTP/1.1\r\nhost: orders\r\n\r\n".repeat(5));
      await until("the others wait", () => admission.snapshot().waiting === 4);
      socket.destroy();
      await untilIdle(admission);
      expect(works.begun).toHaveLength(1);
    });

    it.each<readonly [string, RefusalCause, Readonly<Record<string, string>>, string]>([
      ["GET", "concurrency", {}, "/"],
      ["HEAD", "concurrency", {}, "/"],
      ["POST", "deadline", { "x-envoy-expected-rq-timeout-ms": "1" }, "/"],
    ])(
      "refuses %s for %s with the bytes of the proxy layer",
      async (method, cause, headers, path) => {
        const works = new Works();
        const { port, http } = await start(kind, works.begin, { maxInFlight: 1, tellRule: true });
        if (cause === "concurrency") {
          openRequest(kind, port);
          await until("it has begun", () => works.begun.length === 1);
        }
        const refused = await http.send({ port, method, headers, path });
        const disclosure = { header: true, metadata: true, log: true };
        const request = { method, contentType: undefined };
        const expected = refusalOf(
          { statusByCause: {}, disclosure },
          { service: "orders", cause, request, retrySeconds: 1 },
        );
        expect(refused).toMatchObject({ status: expected.status, body: expected.body });
        const fields = Object.entries(refused.headers).filter(([name]) => !ownFields.has(name));
        expect(new Map(fields)).toEqual(
          new Map(expected.headers.map(({ name, value }) => [name, value])),
        );
        works.answerAll();
      },
    );

    it("serves what is critical while ten times as much comes, and sheds the rest", async () => {
      const works = new Works();
      const { admission, port, http } = await start(kind, works.begin, {
        maxInFlight: 5,
        shedAt: {},
        queue: { sizeMax: 20, waitMsMax: 60_000 },
      });
      const send = (priority: string): Promise<HttpAnswer> =>
        http.send({ port, headers: { "x-request-priority": priority } });
      const low = Array.from({ length: 180 }, () => send("low"));
      await until("all that is low has asked", () => {
        const { admitted, refused, waiting } = admission.snapshot();
        return admitted.low + sum(refused.low) + waiting === 180;
      });
      const critical = Array.from({ length: 20 }, () => send("critical"));
      let isSettled = false;
      const answers = Promise.all(critical).finally(() => {
        isSettled = true;
      });
      await until("all that is critical is answered", () => {
        expect(admission.snapshot().inFlight).toBeLessThanOrEqual(5);
        works.answerAll();
        return isSettled;
      });
      expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]));
      await until("the rest has ended", () => {
        works.answerAll();
        return admission.snapshot().inFlight + admission.snapshot().waiting === 0;
      });
      const statuses = (await Promise.all(low)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(150);
    });

    it("reports its load to the proxy layer, and to nobody else if it should not", async () => {
      const answer: ServerWork = ({ response }) => response.end("done");
      const open = await start(kind, answer, { maxInFlight: 2 });
      const { headers } = await open.http.send({ port: open.port });
      expect(headers["endpoint-load-metrics"]).toMatch(/^TEXT application_utilization=0\.5, /);
      const hidden = await start(kind, answer, {
        loadReport: (request) => request.header("x-inside") === "1",
      });
      const outside = await hidden.http.send({ port: hidden.port });
      expect(outside.headers["endpoint-load-metrics"]).toBeUndefined();
      const inside = await hidden.http.send({ port: hidden.port, headers: { "x-inside": "1" } });
      expect(inside.headers["endpoint-load-metrics"]).toBeDefined();
    });

    it("takes a class of a connection's headers that lie for none", async () => {
      const works = new Works();
      const { port } = await start(kind, works.begin, { maxInFlight: 100 });
      const socket = connect(port, "127.0.0.1");
      stage.atEnd(() => socket.destroy());
      const lies = [
        "x-request-priority: critical\r\nx-request-priority: critical",
        `x-request-priority: ${"critical".padEnd(8_000, "l")}`,
        "x-request-priority:\r\ngrpc-timeout: -5S\r\nx-envoy-expected-rq-timeout-ms: 1e99",
      ];
      for (const lie of lies) socket.write(`GET / HTTP/1.1\r\nhost: orders\r\n${lie}\r\n\r\n`);
      await until("all have begun", () => works.begun.length === lies.length);
      for (const { permit } of works.begun) {
        expect(permit.priority).toBe("normal");
        expect(permit.remainingMs()).toBeUndefined();
      }
      works.answerAll();
    });
  },
);

describe("httpAdmission()", () => {
  it("gets the permit back of a handler that throws and answers nothing", async () => {
    const admission = createServerAdmission({ name: "orders", maxInFlight: 1 });
    const admitted = httpAdmission(admission, () => {
      throw new Error("as handlers do");
    });
    const errors: unknown[] = [];
    const server = createServer((request, response) => {
      try {
        admitted(request, response);
      } catch (error) {
        errors.push(error);
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const open = openRequest("node:http", port);
    await until("it has thrown", () => errors.length === 1);
    expectAllEnded(admission, 1);
    open.abort();
  });
});

describe("fastifyAdmission", () => {
  it("sends a refusal with the headers of hooks before it", async () => {
    const admission = createServerAdmission({ name: "orders", load: () => 2 });
    const app = fastify();
    app.addHook("onRequest", async (_request, reply) => {
      reply.header("x-hook", "before");
    });
    await app.register(fastifyAdmission, { admission });
    app.get("/", async () => "served");
    await app.listen({ host: "127.0.0.1", port: 0 });
    stage.atEnd(() => app.close());
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const { port } = app.server.address() as AddressInfo;
    expect(await http.send({ port })).toMatchObject({
      status: 503,
      headers: { "x-hook": "before" },
    });
  });
});

describe("admission of gRPC calls behind the adapter for node:http2", () => {
  it("refuses them by trailers alone, as gRPC clients read them", async () => {
    const works = new Works();
    const { port } = await start("node:http2", works.begin, { maxInFlight: 1 });
    openRequest("node:http2", port);
    await until("it has begun", () => works.begun.length === 1);
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    stage.atEnd(() => client.close());
    const bytes = (message: Buffer): Buffer => message;
    const error = await new Promise<ServiceError | undefined>((resolve) => {
      client.makeUnaryRequest("/a.B/C", bytes, bytes, Buffer.alloc(0), (failure) =>
        resolve(failure ?? undefined),
      );
    });
    const { reason, grpcStatus } = refusalRows.concurrency;
    expect(error).toMatchObject({ code: grpcStatus, details: reason });
    expect(error?.metadata.get("grpc-retry-pushback-ms")).toEqual(["1000"]);
    expect(error?.metadata.get("retry-after")).toEqual(["1"]);
    works.answerAll();
  });
});
