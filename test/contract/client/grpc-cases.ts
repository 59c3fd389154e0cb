import { expect, it } from "vitest";
import type {
  AdapterOptions,
  RequestOptions,
} from "../../../src/client/adapters/adapter-options.js";
import type { Admission, AdmissionOptions } from "../../../src/client/admission.js";
import { grpcStatuses, othersGrpcStatuses } from "../../../src/core/base/grpc-status.js";
import {
  type ClientRig,
  createClientRig,
  promptRetries,
  teachHedges,
} from "../../support/client-rig.js";
import { settlePromises } from "../../support/fake-clock.js";
import { type Stage, useStage } from "../../support/stage.js";
import { waitFor } from "../../support/wait.js";
import { type GrpcService, type StartService, startGrpcJsService } from "./grpc-servers.js";

/** What a test calls with. */
export interface SentCall {
  readonly signal?: AbortSignal;
  /** The deadline, in milliseconds from now. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client with an adapter. Errors have a `code`. */
export interface GrpcClient {
  unary(message: string, call?: SentCall): Promise<string>;
  /** Messages of a client stream. */
  put(messages: readonly string[]): Promise<string>;
  /** Messages of a server stream. */
  stream(message: string, call?: SentCall): AsyncIterable<string>;
}

/** What serves the calls of a client. */
export interface ServedBy {
  readonly startService: StartService;
  /** Whether a service gets to see `grpc-timeout`. */
  readonly showsTimeout: boolean;
}

/** A stream of messages waits for a permit before the first of them. */
export function describeSending(createClient: CreateClient): void {
  const stage = useStage("test");

  it("sends a stream of messages once it has a permit", async () => {
    const { admission, permitsBack } = createClientRig({
      concurrency: { law: "fixed", initial: 1 },
      queue: {},
    });
    const service = await startGrpcJsService(stage);
    const client = createClient(admission, { asked: {}, port: service.port, stage });
    service.answer = () => {};
    const first = client.unary("order");
    await arrived(service);
    const messages = Array.from({ length: 100 }, (_, i) => `${i},`);
    const sent = client.put(messages);
    await waitFor("the stream waits", () => admission.snapshot().waiting === 1, { everyMs: 1 });
    service.calls[0]?.end();
    await first;
    expect(await sent).toBe(messages.join(""));
    await permitsBack();
    expect(admission.snapshot().outcomes.served).toBe(2);
  });
}

/** Makes a client, for what its requests ask for; it ends with the stage. */
export type CreateClient = (
  admission: Admission,
  options: Omit<AdapterOptions<[]>, "optionsOf"> & {
    readonly asked: RequestOptions;
    readonly port: number;
    readonly stage: Stage;
  },
) => GrpcClient;

const { unavailable, resourceExhausted, internal, deadlineExceeded } = grpcStatuses;

const oneRetry = { retry: promptRetries, concurrency: { law: "fixed", initial: 1 } } as const;

/** A client, a service, and the admission between them. */
interface GrpcRig extends ClientRig {
  readonly service: GrpcService;
  readonly client: GrpcClient;
}

type Start = (options?: Partial<AdmissionOptions>, asked?: RequestOptions) => Promise<GrpcRig>;

const arrived = (service: GrpcService, count = 1) =>
  waitFor(`call ${count} is there`, () => service.calls.length >= count, { everyMs: 1 });

/** What every adapter of a gRPC client does, whatever serves it. */
export function grpcCases(createClient: CreateClient, served: ServedBy): void {
  const stage = useStage("test");
  const start: Start = async (options = {}, asked = {}) => {
    const rig = createClientRig(options);
    const service = await served.startService(stage);
    const { port } = service;
    const client = createClient(rig.admission, { asked, port, stage, unreadMsMax: 5_000 });
    return { ...rig, service, client };
  };
  describeHeaders(start, served);
  describeCalls(start);
  describeRefusals(start);
  describeRetries(start);
  describeSafety(start);
  describeStreams(start);
  describeSlowStreams(start);
}

/** Calls that end well, or not. */
function describeCalls(start: Start): void {
  it("answers a call, and gives its permit back", async () => {
    const { client, service, inFlight, permitsBack, admission } = await start();
    service.answer = (call) => {
      expect(inFlight()).toBe(1);
      call.send("served");
      call.end();
    };
    expect(await client.unary("order")).toBe("served");
    await permitsBack();
    expect(admission.snapshot().outcomes.served).toBe(1);
  });

  it("fails as the service fails, and gives the permit back", async () => {
    const { client, service, permitsBack, admission } = await start();
    service.answer = (call) => call.end({ code: internal });
    await expect(client.unary("order")).rejects.toMatchObject({ code: internal });
    await permitsBack();
    expect(admission.snapshot().outcomes.failed).toBe(1);
  });

  it("ends a call whose time is over, and does not begin one", async () => {
    const { client, service, clock, permitsBack, admission } = await start({}, { timeoutMs: 800 });
    service.answer = () => clock.advance(800);
    await expect(client.unary("order")).rejects.toMatchObject({ code: deadlineExceeded });
    await service.calls[0]?.closed;
    await permitsBack();
    const late = client.unary("order", { timeoutMs: 1 });
    await expect(late).rejects.toMatchObject({ code: deadlineExceeded });
    expect(service.calls).toHaveLength(1);
    expect(admission.snapshot().refused.deadline).toBe(1);
  });

  it("gives up a call that is cancelled", async () => {
    const { client, service, permitsBack } = await start();
    const controller = new AbortController();
    service.answer = () => controller.abort();
    const called = client.unary("order", { signal: controller.signal });
    await expect(called).rejects.toMatchObject({ code: othersGrpcStatuses.cancelled });
    await service.calls[0]?.closed;
    await permitsBack();
  });

  it("gives the permit back when the service kills the connection", async () => {
    const { client, service, permitsBack } = await start();
    service.answer = () => service.kill();
    await expect(client.unary("order")).rejects.toMatchObject({ code: expect.any(Number) });
    await permitsBack();
  });
}

/** Calls that get no permit. */
function describeRefusals(start: Start): void {
  it("gives up a call that waits for a permit", async () => {
    const { client, service, admission, permitsBack } = await start({
      concurrency: { law: "fixed", initial: 1 },
      queue: {},
    });
    service.answer = () => {};
    const first = client.unary("order");
    await arrived(service);
    const controller = new AbortController();
    const second = client.unary("order", { signal: controller.signal });
    await waitFor("the second waits", () => admission.snapshot().waiting === 1, { everyMs: 1 });
    controller.abort();
    await expect(second).rejects.toMatchObject({ code: othersGrpcStatuses.cancelled });
    expect(admission.snapshot().waiting).toBe(0);
    service.calls[0]?.send("served");
    service.calls[0]?.end();
    expect(await first).toBe("served");
    await permitsBack();
    expect(service.calls).toHaveLength(1);
  });

  it("refuses with the status of a proxy, before anything is sent", async () => {
    const { client, service } = await start({ concurrency: { law: "fixed", initial: 1 } });
    service.answer = () => {};
    const first = client.unary("order");
    await arrived(service);
    await expect(client.unary("order")).rejects.toMatchObject({
      code: unavailable,
      message: expect.stringContaining("orders: all permits are in use"),
    });
    const messages = client.stream("order")[Symbol.asyncIterator]();
    await expect(messages.next()).rejects.toMatchObject({ code: unavailable });
    expect(service.calls).toHaveLength(1);
    service.calls[0]?.end();
    await first;
  });
}

/** What is repeated, and when. */
function describeRetries(start: Start): void {
  it("waits before a retry as long as a pushback says, without a permit", async () => {
    const { client, service, clock, retries, inFlight, admission } = await start(oneRetry);
    service.answer = (call, index) => {
      if (index === 0) {
        call.end({ code: unavailable, metadata: { "grpc-retry-pushback-ms": "7000" } });
      } else {
        call.send("served");
        call.end();
      }
    };
    const called = client.unary("order");
    await retries(1);
    expect(inFlight()).toBe(0);
    clock.advance(6_999);
    expect(admission.snapshot().attemptsCount).toBe(1);
    clock.advance(1);
    expect(await called).toBe("served");
    expect(service.calls.map(({ headers }) => headers["x-headgate-attempt"])).toEqual(["1", "2"]);
  });

  it.each([
    ["negative", "-1"],
    ["no number", "NaN"],
    ["huge", "1e99"],
    ["of more than 32 bits", "4294967296"],
    ["long", "9".repeat(2_000)],
    ["two", ["1", "2"]],
  ] as const)("does not repeat a call after a pushback that is %s", async (_, value) => {
    const { client, service } = await start({ retry: promptRetries }, { isIdempotent: true });
    service.answer = (call) =>
      call.end({ code: unavailable, metadata: { "grpc-retry-pushback-ms": value } });
    await expect(client.unary("order")).rejects.toMatchObject({ code: unavailable });
    expect(service.calls).toHaveLength(1);
  });
}

/** What is repeated. */
function describeSafety(start: Start): void {
  it.each([
    ["refused, as it says", resourceExhausted, { "retry-after": "2" }, false, 3],
    ["refused by Envoy", unavailable, { "x-envoy-overloaded": "true" }, false, 3],
    ["not served", unavailable, {}, false, 1],
    ["not served, but idempotent", unavailable, {}, true, 3],
    ["failed", internal, {}, false, 1],
    ["failed, but idempotent", internal, {}, true, 3],
    ["wrong", grpcStatuses.invalidArgument, { "retry-after": "2" }, true, 1],
  ] as const)("repeats as is safe: a call that is %s", async (...row) => {
    const [, code, metadata, isIdempotent, attempts] = row;
    const { client, service, clock, retries, permitsBack } = await start(
      { retry: promptRetries },
      { isIdempotent },
    );
    service.answer = (call) => call.end({ code, metadata });
    const failed = expect(client.unary("order")).rejects.toMatchObject({ code });
    for (let retry = 1; retry < attempts; retry += 1) {
      await retries(retry);
      clock.advance(10_000);
    }
    await failed;
    expect(service.calls).toHaveLength(attempts);
    await permitsBack();
  });

  it("cancels the attempt that loses against its hedge", async () => {
    const rig = await start({ hedge: {}, retry: promptRetries }, { isIdempotent: true });
    const { client, service, clock, permitsBack, admission } = rig;
    await teachHedges(rig);
    service.answer = (call, index) => {
      if (index === 0) return;
      call.send("served");
      call.end();
    };
    const called = client.unary("order");
    await arrived(service);
    clock.advance(10);
    expect(await called).toBe("served");
    await service.calls[0]?.closed;
    await permitsBack();
    expect(admission.snapshot().hedgesCount).toBe(1);
  });

  it("survives metadata without bounds", async () => {
    const { client, service, permitsBack } = await start({ retry: promptRetries });
    const many = Array.from({ length: 200 }, (_, i) => `${i}`);
    service.answer = (call) =>
      call.end({
        code: unavailable,
        metadata: { "retry-after": many, "grpc-status-details": "x".repeat(6_000) },
      });
    await expect(client.unary("order")).rejects.toMatchObject({ code: expect.any(Number) });
    await permitsBack();
    expect(service.calls).toHaveLength(1);
  });
}

/** Permits of streams. */
function describeStreams(start: Start): void {
  it("holds the permit of a stream until it ends", async () => {
    const { client, service, inFlight, permitsBack, admission } = await start();
    service.answer = (call) => call.send("first");
    const messages = client.stream("order")[Symbol.asyncIterator]();
    expect(await messages.next()).toMatchObject({ value: "first" });
    expect(inFlight()).toBe(1);
    service.calls[0]?.send("second");
    expect(await messages.next()).toMatchObject({ value: "second" });
    service.calls[0]?.end();
    expect(await messages.next()).toMatchObject({ done: true });
    await permitsBack();
    expect(admission.snapshot()).toMatchObject({ attemptsCount: 1, outcomes: { served: 1 } });
  });

  it("never repeats a stream", async () => {
    const { client, service, permitsBack, admission } = await start(
      { retry: promptRetries },
      { isIdempotent: true },
    );
    service.answer = (call) => call.end({ code: unavailable, metadata: { "retry-after": "1" } });
    const messages = client.stream("order")[Symbol.asyncIterator]();
    await expect(messages.next()).rejects.toMatchObject({ code: unavailable });
    await permitsBack();
    expect(service.calls).toHaveLength(1);
    expect(admission.snapshot()).toMatchObject({ retriesCount: 0, outcomes: { overloaded: 1 } });
  });

  it("gives the permit of a stream back when it breaks off or is given up", async () => {
    const { client, service, permitsBack } = await start();
    service.answer = (call) => call.send("first");
    const broken = client.stream("order")[Symbol.asyncIterator]();
    await broken.next();
    service.calls[0]?.end({ code: internal });
    await expect(broken.next()).rejects.toMatchObject({ code: internal });
    await permitsBack();
    const controller = new AbortController();
    const dropped = client.stream("order", { signal: controller.signal })[Symbol.asyncIterator]();
    await dropped.next();
    controller.abort();
    await expect(dropped.next()).rejects.toMatchObject({ code: othersGrpcStatuses.cancelled });
    await service.calls[1]?.closed;
    await permitsBack();
  });
}

/** Streams that take long. */
function describeSlowStreams(start: Start): void {
  it("ends a stream whose time is over while it is read", async () => {
    const { client, service, clock, permitsBack } = await start({}, { timeoutMs: 800 });
    service.answer = (call) => call.send("first");
    const messages = client.stream("order")[Symbol.asyncIterator]();
    await messages.next();
    const next = messages.next();
    const ended = expect(next).rejects.toMatchObject({ code: expect.any(Number) });
    await settlePromises();
    clock.advance(800);
    await ended;
    await service.calls[0]?.closed;
    await permitsBack();
  });

  it("gives the permit of a stream back that nobody reads any more", async () => {
    const { client, service, clock, inFlight, permitsBack } = await start();
    service.answer = (call) => {
      for (let i = 0; i < 1_000; i += 1) call.send("x".repeat(1_000));
    };
    const messages = client.stream("order")[Symbol.asyncIterator]();
    await messages.next();
    await waitFor("the rest is not read", () => clock.timerCount > 0, { everyMs: 1 });
    expect(inFlight()).toBe(1);
    clock.advance(5_000);
    await permitsBack();
    expect(await messages.next()).toMatchObject({ done: false });
  });
}

/** What the service is told. */
function describeHeaders(start: Start, { showsTimeout }: ServedBy): void {
  it("tells the service the priority, the attempt and the lesser of the times left", async () => {
    const { client, service, clock, retries } = await start(
      { retry: promptRetries, deadline: { marginMs: 10, header: "x-timeout-ms" } },
      { priority: "high", timeoutMs: 60_000 },
    );
    service.answer = (call, index) => {
      if (index === 0) call.end({ code: unavailable, metadata: { "retry-after": "7" } });
      else {
        call.send("served");
        call.end();
      }
    };
    const called = client.unary("order", { timeoutMs: 9_000, headers: { "x-own": "kept" } });
    await retries(1);
    clock.advance(7_000);
    await called;
    const told = service.calls.map(({ headers }) => [
      headers["x-request-priority"],
      headers["x-headgate-attempt"],
      ...(showsTimeout ? [headers["grpc-timeout"]] : []),
      headers["x-timeout-ms"],
      headers["x-own"],
    ]);
    expect(told).toEqual([
      ["high", "1", ...(showsTimeout ? ["8990m"] : []), "8990", "kept"],
      ["high", "2", ...(showsTimeout ? ["1990m"] : []), "1990", "kept"],
    ]);
  });
}
