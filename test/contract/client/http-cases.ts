import { expect, it } from "vitest";
import type {
  AdapterOptions,
  RequestOptions,
} from "../../../src/client/adapters/adapter-options.js";
import type { Admission, AdmissionOptions } from "../../../src/client/admission.js";
import { AdmissionError } from "../../../src/client/admission-error.js";
import {
  type ClientRig,
  createClientRig,
  promptRetries,
  teachHedges,
} from "../../support/client-rig.js";
import { settlePromises } from "../../support/fake-clock.js";
import { freePort } from "../../support/free-port.js";
import { type ScriptedService, startScriptedService } from "../../support/scripted-service.js";
import { useStage } from "../../support/stage.js";
import { waitFor } from "../../support/wait.js";

/** What a test sends. */
export interface SentRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text, or one that is streamed and cannot be sent twice. */
  readonly body?: string;
  readonly isStreamed?: boolean;
  readonly signal?: AbortSignal;
}

/** A response, as far as all clients have it. */
export interface ReceivedResponse {
  readonly status: number;
  text(): Promise<string>;
  /** Reads one chunk. */
  read(): Promise<unknown>;
  cancel(): Promise<void>;
}

/** A client of HTTP with an adapter. */
export type Send = (url: string, request?: SentRequest) => Promise<ReceivedResponse>;

/** Makes one, for what its requests ask for. */
export type CreateSend = (
  admission: Admission,
  options: Omit<AdapterOptions<[]>, "optionsOf"> & { readonly asked?: RequestOptions },
) => Send;

const envoyOverloaded = { "x-envoy-overloaded": "true" };
const refusedHeaders = { "retry-after": "7" };

/** A client, a service, and the admission between them. */
interface HttpRig extends ClientRig {
  readonly service: ScriptedService;
  readonly send: Send;
}

type Start = (options?: Partial<AdmissionOptions>, asked?: RequestOptions) => Promise<HttpRig>;

/** What every adapter of an HTTP client does. */
export function httpCases(createSend: CreateSend): void {
  const stage = useStage("test");
  const start: Start = async (options = {}, asked = {}) => {
    const rig = createClientRig(options);
    const service = await startScriptedService(stage);
    const send = createSend(rig.admission, { asked, unreadMsMax: 5_000 });
    return { ...rig, service, send };
  };
  describeReading(start);
  describeEndings(start);
  describeWaits(start);
  describeRetries(start);
  describeRefusals(start);
  describeHeaders(start);
  describeHedges(start);
}

/** Permits of responses that are read, or not. */
function describeReading(start: Start): void {
  it("holds the permit until the body is read", async () => {
    const { service, send, inFlight, permitsBack, admission } = await start();
    service.answer = ({ response }) => response.write("x".repeat(300_000));
    const response = await send(service.url);
    await settlePromises();
    expect([response.status, inFlight()]).toEqual([200, 1]);
    service.requests[0]?.response.end("y");
    expect(await response.text()).toHaveLength(300_001);
    await permitsBack();
    expect(admission.snapshot().outcomes.served).toBe(1);
  });

  it("gives the permit back when the body is cancelled", async () => {
    const { service, send, inFlight, permitsBack } = await start();
    service.answer = ({ response }) => response.write("begun");
    const response = await send(service.url);
    expect(inFlight()).toBe(1);
    await response.cancel();
    await permitsBack();
    await service.requests[0]?.closed;
  });

  it("gives the permit back when a response has no body", async () => {
    const { service, send, permitsBack } = await start();
    service.answer = ({ response }, index) => response.writeHead(index === 0 ? 204 : 304).end();
    expect((await send(service.url)).status).toBe(204);
    await permitsBack();
    expect((await send(service.url, { method: "HEAD" })).status).toBe(304);
    await permitsBack();
  });

  it("gives the permit back once nobody reads for a time, and leaves the body", async () => {
    const { service, send, inFlight, clock } = await start();
    service.answer = ({ response }) => response.end("z".repeat(8_000_000));
    const response = await send(service.url);
    await response.read();
    await waitFor("the rest is not read", () => clock.timerCount > 0, { everyMs: 1 });
    clock.advance(4_999);
    await settlePromises();
    expect(inFlight()).toBe(1);
    clock.advance(1);
    await settlePromises();
    expect(inFlight()).toBe(0);
    expect((await response.text()).length).toBeGreaterThan(7_000_000);
    expect(clock.timerCount).toBe(0);
  });

  it("keeps the permit while somebody waits for a slow service", async () => {
    const { service, send, inFlight, clock, permitsBack } = await start();
    service.answer = ({ response }) => response.flushHeaders();
    const text = (await send(service.url)).text();
    await settlePromises();
    clock.advance(60_000);
    await settlePromises();
    expect(inFlight()).toBe(1);
    service.requests[0]?.response.end("late");
    expect(await text).toBe("late");
    await permitsBack();
  });
}

/** Permits of requests that end otherwise. */
function describeEndings(start: Start): void {
  it("gives the permit back when the service kills the connection", async () => {
    const { service, send, permitsBack, admission } = await start();
    service.answer = ({ message }) => message.socket.destroy();
    await expect(send(service.url)).rejects.toThrow();
    await permitsBack();
    service.answer = ({ message, response }) => {
      response.write("begun", () => message.socket.destroy());
    };
    const response = await send(service.url);
    await expect(response.text()).rejects.toThrow();
    await permitsBack();
    expect(admission.snapshot().outcomes).toMatchObject({ failed: 1, served: 1 });
  });

  it("gives the permit back of what is given up, before headers and in the body", async () => {
    const { service, send, permitsBack } = await start();
    const controller = new AbortController();
    service.answer = () => controller.abort(new Error("no longer wanted"));
    await expect(send(service.url, { signal: controller.signal })).rejects.toThrow("no longer");
    await service.requests[0]?.closed;
    await permitsBack();
    service.answer = ({ response }) => response.write("begun");
    const later = new AbortController();
    const response = await send(service.url, { signal: later.signal });
    const text = response.text();
    later.abort(new Error("no longer wanted"));
    await expect(text).rejects.toThrow();
    await service.requests[1]?.closed;
    await permitsBack();
  });

  it("gives up a request that waits for a permit, and one that is given up already", async () => {
    const { service, send, admission, permitsBack } = await start({
      concurrency: { law: "fixed", initial: 1 },
      queue: {},
    });
    service.answer = ({ response }) => response.write("begun");
    const first = await send(service.url);
    const controller = new AbortController();
    const second = send(service.url, { signal: controller.signal });
    await waitFor("the second waits", () => admission.snapshot().waiting === 1, { everyMs: 1 });
    controller.abort(new Error("no longer wanted"));
    await expect(second).rejects.toThrow("no longer wanted");
    await expect(send(service.url, { signal: controller.signal })).rejects.toThrow("no longer");
    expect(admission.snapshot().waiting).toBe(0);
    await first.cancel();
    await permitsBack();
    expect(service.requests).toHaveLength(1);
  });
}

/** Refusals here, and how long a service makes a retry wait. */
function describeWaits(start: Start): void {
  it("refuses with an error of the admission, before anything is sent", async () => {
    const { service, send } = await start({ concurrency: { law: "fixed", initial: 1 } });
    service.answer = ({ response }) => response.write("begun");
    const first = await send(service.url);
    const thrown = await send(service.url).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(AdmissionError);
    expect(thrown).toMatchObject({ reason: "concurrency", admission: "orders" });
    expect(service.requests).toHaveLength(1);
    await first.cancel();
  });

  it("waits before a retry as long as the service asks", async () => {
    const { service, send, admission, clock, retries, inFlight } = await start({
      retry: promptRetries,
      concurrency: { law: "fixed", initial: 1 },
    });
    service.answer = ({ response }, index) => {
      if (index === 0) response.writeHead(503, refusedHeaders).end("refused");
      else response.end("served");
    };
    const sent = send(service.url, { method: "POST", body: "order" });
    await retries(1);
    expect(inFlight()).toBe(0);
    clock.advance(6_999);
    expect(admission.snapshot().attemptsCount).toBe(1);
    clock.advance(1);
    const response = await sent;
    expect([response.status, await response.text()]).toEqual([200, "served"]);
    expect(service.connectionCount).toBe(1);
  });

  it.each([
    ["negative", ["-1"]],
    ["huge", ["1e99"]],
    ["no number", ["NaN"]],
    ["long", ["9".repeat(10_000)]],
    ["two", ["1", "2"]],
    ["fractional", ["0.5"]],
    ["a day that there is not", ["Fri, 31 Feb 2026 08:00:00 GMT"]],
  ])("passes over a Retry-After that is %s", async (_, values) => {
    const { service, send, clock, retries } = await start({ retry: promptRetries });
    service.answer = ({ response }, index) => {
      if (index === 0)
        response.writeHead(
          503,
          values.flatMap((value) => ["retry-after", value]),
        );
      response.end("end");
    };
    const sent = send(service.url);
    await retries(1);
    clock.advance(1);
    expect((await sent).status).toBe(200);
    expect(service.requests).toHaveLength(2);
  });

  it("answers the refusal of a service that asks for a longer wait than it follows", async () => {
    const { service, send } = await start({ retry: promptRetries });
    service.answer = ({ response }) =>
      response.writeHead(429, { "retry-after": "4294967296" }).end("tomorrow");
    const response = await send(service.url);
    expect([response.status, await response.text()]).toEqual([429, "tomorrow"]);
    expect(service.requests).toHaveLength(1);
  });
}

/** What is repeated. */
function describeRetries(start: Start): void {
  it.each([
    ["a refused POST", { method: "POST", body: "b" }, 429, {}, 3],
    ["a POST that Envoy refused", { method: "POST", body: "b" }, 503, envoyOverloaded, 3],
    ["a failed POST", { method: "POST", body: "b" }, 503, {}, 1],
    [
      "a failed POST with a key",
      { method: "POST", body: "b", headers: { "Idempotency-Key": "k" } },
      500,
      {},
      3,
    ],
    ["a failed PUT", { method: "PUT", body: "b" }, 502, {}, 3],
    ["a failed PATCH", { method: "PATCH", body: "b" }, 502, {}, 1],
    [
      "a PUT that is streamed",
      { method: "PUT", body: "b", isStreamed: true },
      503,
      refusedHeaders,
      1,
    ],
    ["what is not implemented", {}, 501, {}, 1],
    ["what is not found", {}, 404, {}, 1],
  ] as const)("repeats as is safe: %s", async (_, request, status, headers, attempts) => {
    const { service, send, clock, retries, permitsBack } = await start({ retry: promptRetries });
    const bodies: Promise<string>[] = [];
    service.answer = (received) => {
      bodies.push(received.body());
      received.response.writeHead(status, headers).end("the last one");
    };
    const sent = send(service.url, request);
    for (let retry = 1; retry < attempts; retry += 1) {
      await retries(retry);
      clock.advance(10_000);
    }
    const response = await sent;
    expect([response.status, await response.text()]).toEqual([status, "the last one"]);
    expect(await Promise.all(bodies)).toEqual(
      Array.from({ length: attempts }, () => ("body" in request ? "b" : "")),
    );
    expect(service.requests.map(({ message }) => message.headers["x-headgate-attempt"])).toEqual(
      ["1", "2", "3"].slice(0, attempts),
    );
    await permitsBack();
  });
}

/** What becomes of the response that is repeated. */
function describeRefusals(start: Start): void {
  it("repeats a request whose connection was refused or lost", async () => {
    const { service, send, clock, retries, permitsBack, admission } = await start({
      retry: promptRetries,
    });
    service.answer = ({ message, response }, index) => {
      if (index === 0) message.socket.destroy();
      else response.end("served");
    };
    const sent = send(service.url);
    await retries(1);
    clock.advance(1);
    expect(await (await sent).text()).toBe("served");
    const away = send(`http://127.0.0.1:${await freePort()}/`, { method: "POST", body: "b" });
    const failed = expect(away).rejects.toThrow();
    for (let retry = 2; retry <= 3; retry += 1) {
      await retries(retry);
      clock.advance(1);
    }
    await failed;
    await permitsBack();
    expect(admission.snapshot().outcomes.failed).toBe(4);
  });

  it("cancels the body of a refusal before the retry", async () => {
    const { service, send, clock, retries, permitsBack } = await start({ retry: promptRetries });
    service.answer = ({ response }, index) => {
      if (index > 0) response.end("served");
      else response.writeHead(503, refusedHeaders).write("without an end");
    };
    const sent = send(service.url);
    await retries(1);
    clock.advance(7_000);
    expect(await (await sent).text()).toBe("served");
    await service.requests[0]?.closed;
    await permitsBack();
  });

  it("answers the refusal if its retry is refused here, with all of its body", async () => {
    const { service, send, clock, retries, permitsBack } = await start({
      retry: promptRetries,
      concurrency: { law: "fixed", initial: 1 },
    });
    const long = "r".repeat(500_000);
    service.answer = ({ response }, index) => {
      if (index === 0) response.writeHead(503, refusedHeaders).end(long);
      else response.write("begun");
    };
    const sent = send(service.url);
    await retries(1);
    const other = await send(service.url);
    clock.advance(7_000);
    const response = await sent;
    expect([response.status, await response.text()]).toEqual([503, long]);
    await other.cancel();
    await permitsBack();
  });
}

/** What the service is told, and when a request is out of time. */
function describeHeaders(start: Start): void {
  it("tells the service the priority, the attempt and the time left", async () => {
    const { service, send, clock, retries } = await start(
      { retry: promptRetries, deadline: { marginMs: 10, header: "x-timeout-ms" } },
      { priority: "critical", timeoutMs: 9_000 },
    );
    service.answer = ({ response }, index) => {
      response.writeHead(index === 0 ? 503 : 200, refusedHeaders).end();
    };
    const sent = send(service.url, { headers: { "X-Request-Priority": "low", "x-own": "kept" } });
    await retries(1);
    clock.advance(7_000);
    await sent;
    const told = service.requests.map(({ message: { headers } }) => [
      headers["x-request-priority"],
      headers["x-headgate-attempt"],
      headers["grpc-timeout"],
      headers["x-timeout-ms"],
      headers["x-own"],
    ]);
    expect(told).toEqual([
      ["critical", "1", "8990m", "8990", "kept"],
      ["critical", "2", "1990m", "1990", "kept"],
    ]);
  });

  it("ends a request whose time is over, before headers and in the body", async () => {
    const { service, send, clock, permitsBack, admission } = await start({}, { timeoutMs: 800 });
    service.answer = () => clock.advance(800);
    await expect(send(service.url)).rejects.toMatchObject({ name: "TimeoutError" });
    await service.requests[0]?.closed;
    await permitsBack();
    service.answer = ({ response }) => response.write("begun");
    const response = await send(service.url);
    const text = response.text();
    await settlePromises();
    clock.advance(800);
    await expect(text).rejects.toThrow();
    await service.requests[1]?.closed;
    await permitsBack();
    expect(admission.snapshot().outcomes.overloaded).toBe(1);
  });
}

/** Attempts beside each other. */
function describeHedges(start: Start): void {
  it("cancels the attempt that loses against its hedge", async () => {
    const rig = await start({ hedge: {}, retry: promptRetries });
    const { service, send, clock, permitsBack, admission } = rig;
    await teachHedges(rig);
    service.answer = ({ response }, index) => {
      if (index === 1) response.end("served");
    };
    const sent = send(service.url);
    await waitFor("the first is there", () => service.requests.length === 1, { everyMs: 1 });
    clock.advance(10);
    expect(await (await sent).text()).toBe("served");
    await service.requests[0]?.closed;
    await permitsBack();
    expect(admission.snapshot()).toMatchObject({ hedgesCount: 1 });
    const headers = service.requests.map(({ message }) => message.headers["x-headgate-attempt"]);
    expect(headers).toEqual(["1", "2"]);
  });

  it("hedges no request whose body is streamed, whatever it asks for", async () => {
    const rig = await start({ hedge: {}, retry: promptRetries }, { isIdempotent: true });
    const { service, send, clock, admission } = rig;
    await teachHedges(rig);
    service.answer = () => {};
    const sent = send(service.url, { method: "PUT", body: "b", isStreamed: true });
    await waitFor("it is there", () => service.requests.length === 1, { everyMs: 1 });
    clock.advance(60_000);
    service.requests[0]?.response.end("served");
    expect(await (await sent).text()).toBe("served");
    expect(admission.snapshot().hedgesCount).toBe(0);
  });
}
