import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { admissionKey, connectAdmission } from "../../src/client/server/connect.js";
import type { RequestPermit } from "../../src/client/server/request-permit.js";
import {
  createServerAdmission,
  type ServerAdmission,
} from "../../src/client/server/server-admission.js";
import type { ServerAdmissionOptions } from "../../src/client/server/server-options.js";
import { refusalOf, refusalRows } from "../../src/core/admission/refusal.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { LimitService } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** What handlers do: they wait until the test lets them go. */
class Handlers {
  readonly permits: RequestPermit[] = [];
  #letGo: (() => void)[] = [];
  isFailing = false;

  wait(permit: RequestPermit | undefined): Promise<void> {
    if (permit === undefined) throw new Error("it went past the interceptor");
    this.permits.push(permit);
    return new Promise((resolve) => this.#letGo.push(resolve));
  }

  letGo(): void {
    for (const go of this.#letGo.splice(0)) go();
  }
}

async function start(options: Partial<ServerAdmissionOptions> = {}) {
  const handlers = new Handlers();
  const priority = { header: "x-request-priority" };
  const shared = { name: "limits", maxInFlight: 1, shedAt: false, priority } as const;
  const retryAfter = { jitterRatio: 0 };
  const admission = createServerAdmission({ ...shared, retryAfter, ...options });
  const handler = connectNodeAdapter({
    interceptors: [connectAdmission(admission)],
    routes: (router) =>
      router.service(LimitService, {
        async listRules(_request, { values }) {
          await handlers.wait(values.get(admissionKey));
          if (handlers.isFailing) throw new ConnectError("full", Code.ResourceExhausted);
          return {};
        },
        async *tailDecisions(_request, { values }) {
          yield {};
          await handlers.wait(values.get(admissionKey));
          yield {};
        },
      }),
  });
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer(handler).on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    handlers.letGo();
    for (const session of sessions) session.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { admission, handlers, baseUrl: `http://127.0.0.1:${port}` };
}

interface Protocol {
  readonly protocol: string;
  readonly transport: (baseUrl: string) => Transport;
}

const protocols: readonly Protocol[] = [
  { protocol: "gRPC", transport: (baseUrl) => createGrpcTransport({ baseUrl }) },
  {
    protocol: "gRPC-Web",
    transport: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  },
  {
    protocol: "Connect",
    transport: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
  },
];

function until(what: string, look: () => boolean): Promise<true> {
  return waitFor(what, look, { withinMs: 5_000 });
}

async function untilIdle(admission: ServerAdmission): Promise<void> {
  await until("all permits are back", () => admission.snapshot().inFlight === 0);
}

function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => {
      throw new Error("it was served");
    },
    (error: unknown) => ConnectError.from(error),
  );
}

describe.each(protocols)("admission of calls over $protocol", ({ transport }) => {
  const clientOf = (baseUrl: string) => createClient(LimitService, transport(baseUrl));

  it("holds a permit while a call is in work, and refuses others with its cause", async () => {
    const { admission, handlers, baseUrl } = await start();
    const client = clientOf(baseUrl);
    const first = client.listRules({});
    await until("it has begun", () => handlers.permits.length === 1);
    const error = await errorOf(client.listRules({}));
    expect(error.code).toBe(Code.Unavailable);
    expect(error.rawMessage).toBe(refusalRows.concurrency.reason);
    expect(error.metadata.get("retry-after")).toBe("1");
    handlers.letGo();
    await first;
    await untilIdle(admission);
    expect(admission.snapshot().outcomes).toEqual({ success: 1, ignore: 0, dropped: 0 });
  });

  it("refuses what has too little time left, however the protocol states it", async () => {
    const { baseUrl } = await start({ deadline: { minRemainingMs: 60_000 } });
    const error = await errorOf(clientOf(baseUrl).listRules({}, { timeoutMs: 30_000 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(error.rawMessage).toBe(refusalRows.deadline.reason);
  });

  it("gets the permit back of a handler that fails", async () => {
    const { admission, handlers, baseUrl } = await start();
    handlers.isFailing = true;
    const call = errorOf(clientOf(baseUrl).listRules({}));
    await until("it has begun", () => handlers.permits.length === 1);
    handlers.letGo();
    expect((await call).code).toBe(Code.ResourceExhausted);
    await untilIdle(admission);
    expect(admission.snapshot().outcomes.dropped).toBe(1);
  });

  it("gets the permit back of a client that cancels, in work and in the queue", async () => {
    const { admission, handlers, baseUrl } = await start({ queue: { waitMsMax: 60_000 } });
    const client = clientOf(baseUrl);
    const aborts = [new AbortController(), new AbortController()] as const;
    const calls = aborts.map(({ signal }) => errorOf(client.listRules({}, { signal })));
    await until("one waits", () => admission.snapshot().waiting === 1);
    aborts[1].abort();
    await until("it waits no more", () => admission.snapshot().waiting === 0);
    expect(admission.snapshot()).toMatchObject({ inFlight: 1, leftCount: 1 });
    aborts[0].abort();
    for (const error of await Promise.all(calls)) expect(error.code).toBe(Code.Canceled);
    await untilIdle(admission);
    expect(handlers.permits).toHaveLength(1);
    handlers.letGo();
  });

  it("holds the permit of a stream until its last message, or its reader has gone", async () => {
    const { admission, handlers, baseUrl } = await start();
    const client = clientOf(baseUrl);
    const messages = client.tailDecisions({})[Symbol.asyncIterator]();
    await messages.next();
    await until("it has begun", () => handlers.permits.length === 1);
    expect(admission.snapshot().inFlight).toBe(1);
    handlers.letGo();
    await messages.next();
    expect((await messages.next()).done).toBe(true);
    await untilIdle(admission);
    const abort = new AbortController();
    const left = client.tailDecisions({}, { signal: abort.signal })[Symbol.asyncIterator]();
    await left.next();
    await until("it has begun", () => handlers.permits.length === 2);
    abort.abort();
    await untilIdle(admission);
    expect(handlers.permits[1]?.signal.aborted).toBe(true);
    const { admitted, outcomes } = admission.snapshot();
    expect({ admitted, outcomes }).toMatchObject({
      admitted: { normal: 2 },
      outcomes: { success: 1, ignore: 1, dropped: 0 },
    });
  });

  it("reports its load, and takes the class of a call from its header", async () => {
    const { handlers, baseUrl } = await start({ maxInFlight: 2 });
    let report: string | undefined;
    const call = clientOf(baseUrl).listRules(
      {},
      {
        headers: { "x-request-priority": "critical" },
        onHeader: (headers) => {
          report = headers.get("endpoint-load-metrics") ?? undefined;
        },
      },
    );
    await until("it has begun", () => handlers.permits.length === 1);
    expect(handlers.permits[0]?.priority).toBe("critical");
    handlers.letGo();
    await call;
    expect(report).toMatch(/^TEXT application_utilization=0\.5, /);
  });
});

describe("a refusal over gRPC", () => {
  it("has the status, details and pushback of the proxy layer", async () => {
    const { handlers, baseUrl } = await start();
    const client = createClient(LimitService, createGrpcTransport({ baseUrl }));
    const first = client.listRules({});
    await until("it has begun", () => handlers.permits.length === 1);
    const { metadata } = await errorOf(client.listRules({}));
    const request = { method: "POST", contentType: "application/grpc+proto" };
    const question = { service: "limits", cause: "concurrency", request, retrySeconds: 1 } as const;
    const { headers, grpcStatus, body } = refusalOf({ statusByCause: {} }, question);
    for (const { name, value } of headers) expect(metadata.get(name)).toBe(value);
    expect(metadata.get("grpc-retry-pushback-ms")).toBe("1000");
    const details = metadata.get("grpc-status-details-bin") ?? "";
    const status = fromBinary(StatusSchema, Buffer.from(details, "base64"));
    expect(status).toMatchObject({ code: grpcStatus, message: body });
    handlers.letGo();
    await first;
  });
});
