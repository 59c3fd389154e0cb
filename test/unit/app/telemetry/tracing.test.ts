import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import type { TracingChoice } from "../../../../src/app/config/tracing-choice.js";
import { closeMsMax } from "../../../../src/app/telemetry/otlp-export.js";
import { type OpenTracing, openTracing } from "../../../../src/app/telemetry/tracing.js";
import type { Clock } from "../../../../src/core/base/clock.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { RateLimitRequestSchema } from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { createRateLimitService } from "../../../../src/rpc/rls/rls.js";
import type { CallContext, UnaryHandler } from "../../../../src/wire/grpc/service.js";
import { createTestDecider } from "../../../support/decider.js";
import { plainExtras } from "../../../support/extras.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import {
  type OtlpServer,
  startOtlpGrpcServer,
  startOtlpServer,
} from "../../../support/otlp-server.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { realClock, realRandom } from "../../../support/real-clock.js";
import { answerOf } from "../../../support/unary.js";
import { waitFor, within } from "../../../support/wait.js";

const endpointName = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const names = [endpointName, "OTEL_BSP_SCHEDULE_DELAY", "OTEL_EXPORTER_OTLP_TIMEOUT"] as const;

let closers: (() => unknown)[];
let before: readonly (readonly [string, string | undefined])[];
let server: OtlpServer;

beforeEach(async () => {
  closers = [];
  server = await startOtlpServer({ atEnd: (close) => closers.push(close) });
  before = names.map((name) => [name, process.env[name]]);
  process.env[endpointName] = `http://127.0.0.1:${server.port}/v1/traces`;
  process.env["OTEL_BSP_SCHEDULE_DELAY"] = "20";
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

const events: LogEvent[] = [];
const note = (event: LogEvent): void => {
  events.push(event);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

async function open(
  fields: Partial<TracingChoice> = {},
  clock: Clock = realClock,
): Promise<OpenTracing> {
  const choice = { protocol: "http", serviceName: "limits", samplingRatio: 1, ...fields } as const;
  const tracing = await openTracing(choice, { clock, replica: "replica-1", logger });
  if (clock === realClock) closers.push(() => tracing.close());
  return tracing;
}

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(1)] },
  { path: ["plan=free", "user"], effect: [testLimit(9)] },
]);

function serve({ tracer }: OpenTracing, counters = new DecisionCounters()): UnaryHandler {
  const decider = createTestDecider({
    policies: { current: () => policy },
    clock: realClock,
    counters,
  });
  const service = createRateLimitService({
    decider,
    clock: realClock,
    random: realRandom,
    counters,
    extras: plainExtras,
    isShadow: false,
    tracer,
  });
  const [method] = service.methods;
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  return method.handle;
}

const callerValue = "caller-73";

function ask(handle: UnaryHandler, metadata: Readonly<Record<string, string>> = {}) {
  const entries = [{ key: "user", value: callerValue }];
  const request = create(RateLimitRequestSchema, { domain: "shop", descriptors: [{ entries }] });
  const call: CallContext = {
    deadlineMs: Number.POSITIVE_INFINITY,
    metadata: (name) => metadata[name],
  };
  return answerOf(handle, toBinary(RateLimitRequestSchema, request), call);
}

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const b3 = { "x-b3-traceid": traceId, "x-b3-spanid": parentId };

describe("openTracing()", () => {
  it("sends a span a decision, with the policy's words and no caller's", async () => {
    const tracing = await open({ serviceNamespace: "edge", serviceInstanceId: "pod-7" });
    const handle = serve(tracing);
    await ask(handle);
    await ask(handle);
    await waitFor("both spans arrive", () => server.spans.length === 2);
    const [first, second] = server.spans;
    expect(first).toMatchObject({
      name: "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
      statusCode: 0,
      attributes: {
        "headgate.domain": "shop",
        "headgate.rules": "user",
        "headgate.outcome": "ok",
        "rpc.system.name": "grpc",
      },
      resource: {
        "service.name": "limits",
        "service.namespace": "edge",
        "service.instance.id": "pod-7",
      },
    });
    expect(first?.parentSpanId ?? "").toBe("");
    expect(second?.attributes["headgate.outcome"]).toBe("over_limit");
    expect(server.bodies.join()).not.toContain(callerValue);
  });

  it("gives the latest recorded decision of a latency bucket as its example", async () => {
    const beganMs = realClock.epochUs() / 1_000;
    const counters = new DecisionCounters();
    const handle = serve(await open({ samplingRatio: 0 }), counters);
    await ask(handle);
    await ask(handle, { traceparent: `00-${traceId}-${parentId}-00` });
    expect(counters.latencyExemplars).toEqual([]);
    await ask(handle, { traceparent: `00-${traceId}-${parentId}-01` });
    const [exemplar, ...others] = counters.latencyExemplars.filter((one) => one !== undefined);
    expect(others).toEqual([]);
    expect(exemplar).toMatchObject({ traceId, spanId: expect.stringMatching(/^[0-9a-f]{16}$/) });
    expect(exemplar?.epochMs).toBeGreaterThanOrEqual(beganMs);
    await waitFor("the span arrives", () => server.spans.length === 1);
    expect(server.spans[0]?.traceId).toBe(traceId);
  });

  it("sends the code of a call that fails", async () => {
    const handle = serve(await open());
    const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };
    await expect(answerOf(handle, Buffer.from([0xff]), call)).rejects.toBeDefined();
    await waitFor("the span arrives", () => server.spans.length === 1);
    expect(server.spans[0]).toMatchObject({
      statusCode: 2,
      attributes: { "error.type": "REQUEST_INVALID", "headgate.outcome": "error" },
    });
  });

  it.each([
    ["W3C", { traceparent: `00-${traceId}-${parentId}-01` }],
    ["B3 in one field", { b3: `${traceId}-${parentId}-1` }],
    ["B3 in several fields", { ...b3, "x-b3-sampled": "1" }],
  ])("goes on with a caller's trace: %s", async (_, metadata) => {
    // Only callers' traces are recorded: nothing else could have made the span.
    await ask(serve(await open({ samplingRatio: 0 })), metadata);
    await waitFor("the span arrives", () => server.spans.length === 1);
    expect(server.spans[0]).toMatchObject({ traceId, parentSpanId: parentId });
  });

  it.each([
    ["W3C", { traceparent: `00-${traceId}-${parentId}-00` }],
    ["B3", { ...b3, "x-b3-sampled": "0" }],
  ])("records nothing of a trace that its caller does not record: %s", async (_, metadata) => {
    const handle = serve(await open());
    await ask(handle, metadata);
    await ask(handle);
    await waitFor("the other span arrives", () => server.spans.length === 1);
    expect(server.spans[0]?.traceId).not.toBe(traceId);
  });

  it("begins no trace where the rate is 0, and takes broken fields for none", async () => {
    const { tracer } = await open({ samplingRatio: 0 });
    expect(tracer.begin(() => undefined)).toBeUndefined();
    expect(tracer.begin(() => "nonsense")).toBeUndefined();
  });

  it("sends what is left when it ends", async () => {
    process.env["OTEL_BSP_SCHEDULE_DELAY"] = "600000";
    const tracing = await open();
    await ask(serve(tracing));
    expect(server.spans).toEqual([]);
    await tracing.close();
    expect(server.spans).toHaveLength(1);
  });

  it("ends although the collector is not there", async () => {
    process.env[endpointName] = "http://127.0.0.1:9/v1/traces";
    process.env["OTEL_EXPORTER_OTLP_TIMEOUT"] = "60000";
    const clock = new FakeClock();
    const tracing = await open({}, clock);
    await ask(serve(tracing));
    let hasEnded = false;
    const ending = tracing.close().then(() => {
      hasEnded = true;
    });
    clock.advance(closeMsMax - 1);
    await settlePromises();
    expect(hasEnded).toBe(false);
    clock.advance(1);
    await within("it ends", 1_000, ending);
  });

  it("sends over gRPC where it is told", async () => {
    const collector = await startOtlpGrpcServer({ atEnd: (close) => closers.push(close) });
    process.env[endpointName] = `http://127.0.0.1:${collector.port}`;
    const tracing = await open({ protocol: "grpc" });
    await ask(serve(tracing));
    await waitFor("the span arrives", () => collector.messages.length === 1);
    const text = String(collector.messages[0]);
    expect(text).toContain("RateLimitService/ShouldRateLimit");
    expect(text).toContain("headgate.outcome");
    expect(text).not.toContain(callerValue);
  });
});
