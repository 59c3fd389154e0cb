import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from "../../../../src/gen/grpc/health/v1/health_pb.js";
import { createHealthService, Health, healthWatchersMax } from "../../../../src/rpc/grpc/health.js";
import type {
  ServerStreamHandler,
  ServiceHandlers,
  StreamContext,
} from "../../../../src/wire/grpc/service.js";
import { answerOf } from "../../../support/unary.js";

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };

function unary({ methods }: ServiceHandlers, name: string) {
  const found = methods.find((method) => method.name === name);
  if (found?.kind !== "unary") throw new Error(`no unary ${name}`);
  return (bytes: Uint8Array) => answerOf(found.handle, bytes, call);
}

function serverStream({ methods }: ServiceHandlers, name: string): ServerStreamHandler {
  const found = methods.find((method) => method.name === name);
  if (found?.kind !== "serverStream") throw new Error(`no server stream ${name}`);
  return found.handle;
}

function request(service: string): Uint8Array {
  return toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
}

function decodeStatus(bytes: Uint8Array): HealthCheckResponse_ServingStatus {
  return fromBinary(HealthCheckResponseSchema, bytes).status;
}

/** A Watch stream, read one answer at a time. */
function watch(service: ServiceHandlers, name: string) {
  const abort = new AbortController();
  const context: StreamContext = { ...call, signal: abort.signal };
  const answers = serverStream(service, "Watch")(request(name), context);
  const iterator = answers[Symbol.asyncIterator]();
  return {
    abort,
    next: async (): Promise<HealthCheckResponse_ServingStatus | "ended"> => {
      const { value, done } = await iterator.next();
      return done === true ? "ended" : decodeStatus(value);
    },
  };
}

describe("Check", () => {
  it.each(["", "ratelimit"])('knows the name "%s" and follows the state', async (name) => {
    const health = new Health();
    const check = unary(createHealthService(health), "Check");
    expect(decodeStatus(await check(request(name)))).toBe(NOT_SERVING);
    health.serve();
    expect(decodeStatus(await check(request(name)))).toBe(SERVING);
    health.stopServing();
    expect(decodeStatus(await check(request(name)))).toBe(NOT_SERVING);
  });

  it("answers NOT_FOUND for any other name, without echoing it", async () => {
    const check = unary(createHealthService(new Health()), "Check");
    const thrown: unknown = await check(request("other-73")).catch((error) => error);
    expect(thrown).toMatchObject({ grpcStatus: 5 });
    expect(String(thrown)).not.toContain("other-73");
  });

  it("refuses bytes that are no request", async () => {
    const check = unary(createHealthService(new Health()), "Check");
    await expect(check(Uint8Array.of(0x0a, 0x7f))).rejects.toMatchObject({
      code: "REQUEST_INVALID",
    });
  });
});

describe("List", () => {
  it("answers the state of every known name", async () => {
    const health = new Health();
    health.serve();
    const list = unary(createHealthService(health), "List");
    const { statuses } = fromBinary(HealthListResponseSchema, await list(new Uint8Array()));
    expect(Object.keys(statuses).sort()).toEqual(["", "ratelimit"]);
    expect(Object.values(statuses).map(({ status }) => status)).toEqual([SERVING, SERVING]);
  });
});

describe("Watch", () => {
  it("tells the state at once and then every change, until the caller goes", async () => {
    const health = new Health();
    const stream = watch(createHealthService(health), "");
    expect(await stream.next()).toBe(NOT_SERVING);
    const second = stream.next();
    health.serve();
    expect(await second).toBe(SERVING);
    health.stopServing();
    expect(await stream.next()).toBe(NOT_SERVING);
    const last = stream.next();
    stream.abort.abort();
    expect(await last).toBe("ended");
  });

  it("leaves out changes that were taken back before anybody read them", async () => {
    const health = new Health();
    const stream = watch(createHealthService(health), "ratelimit");
    expect(await stream.next()).toBe(NOT_SERVING);
    health.serve();
    health.stopServing();
    const next = stream.next();
    health.serve();
    expect(await next).toBe(SERVING);
  });

  it("answers SERVICE_UNKNOWN for any other name and stays open", async () => {
    const health = new Health();
    const stream = watch(createHealthService(health), "other");
    expect(await stream.next()).toBe(SERVICE_UNKNOWN);
    const last = stream.next();
    health.serve();
    stream.abort.abort();
    expect(await last).toBe("ended");
  });

  it(`takes ${healthWatchersMax} watchers, and one more when one has left`, async () => {
    const service = createHealthService(new Health());
    const streams = Array.from({ length: healthWatchersMax }, () => watch(service, ""));
    for (const stream of streams) await stream.next();
    await expect(watch(service, "").next()).rejects.toMatchObject({ grpcStatus: 8 });
    streams[0]?.abort.abort();
    expect(await streams[0]?.next()).toBe("ended");
    expect(await watch(service, "").next()).toBe(NOT_SERVING);
  });
});
