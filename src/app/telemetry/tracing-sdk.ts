import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import { CompositePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as HttpExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { B3Propagator } from "@opentelemetry/propagator-b3";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { ErrorCode } from "../../core/base/errors.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { DecisionTrace } from "../../decide/rate-limit/counters.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import type { DecisionSpan, DecisionTracer } from "../../rpc/grpc/decision-trace.js";
import { readVersion } from "../base/version.js";
import type { TracingChoice } from "../config/tracing-choice.js";
import { resourceOf } from "./resource-sdk.js";

/**
 * The part of `openTracing` that needs OpenTelemetry's SDK, and loads it. The SDK reads the
 * destination of spans, and how many wait and for how long, from its standard variables
 * (`OTEL_EXPORTER_OTLP_...`, `OTEL_BSP_...`). At most 2,048 wait by default; more are dropped.
 */

/** The method that spans are named after. Source: semantic conventions, "RPC". */
const method = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

type Metadata = (name: string) => string | undefined;

/** Creates a tracer, and the function that closes it. */
export function createTracing(choice: TracingChoice & { readonly serviceInstanceId: string }): {
  readonly tracer: DecisionTracer;
  close(): Promise<void>;
} {
  const { samplingRatio } = choice;
  const sampler =
    samplingRatio === undefined
      ? undefined
      : new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplingRatio) });
  const exporter = choice.protocol === "grpc" ? new GrpcExporter() : new HttpExporter();
  const provider = new BasicTracerProvider({
    resource: resourceOf(choice),
    spanProcessors: [new BatchSpanProcessor(exporter)],
    ...(sampler === undefined ? {} : { sampler }),
  });
  const tracer = provider.getTracer("headgate", readVersion());
  return { tracer: new OtelDecisionTracer(tracer), close: () => provider.shutdown() };
}

/** Reads a call's metadata. A propagator only gets what it asks for by name. */
const getter: TextMapGetter<Metadata> = {
  keys: () => [],
  get: (metadata, name) => metadata(name.toLowerCase()),
};

class OtelDecisionTracer implements DecisionTracer {
  readonly #tracer: Tracer;
  /** If a call has both, the W3C context applies, because it is read last. */
  readonly #propagator = new CompositePropagator({
    propagators: [new B3Propagator(), new W3CTraceContextPropagator()],
  });

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  begin(metadata: Metadata): DecisionSpan | undefined {
    const context: Context = this.#propagator.extract(ROOT_CONTEXT, metadata, getter);
    const attributes = { "rpc.system.name": "grpc", "rpc.method": method };
    const options = { kind: SpanKind.SERVER, attributes };
    const span = this.#tracer.startSpan(method, options, context);
    return span.isRecording() ? new OtelDecisionSpan(span) : undefined;
  }
}

class OtelDecisionSpan implements DecisionSpan {
  readonly trace: DecisionTrace | undefined;
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.trace = (traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : { traceId, spanId };
  }

  decided(prepared: PreparedQuery, verdict: Verdict): void {
    this.#span.setAttributes({
      "rpc.response.status_code": "OK",
      "headgate.outcome": verdict.isDenied ? "over_limit" : "ok",
      ...rulesOf(prepared),
    });
    this.#span.end();
  }

  failed(code: ErrorCode): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.setAttributes({ "error.type": code, "headgate.outcome": "error" });
    this.#span.end();
  }
}

/** Returns the matched rules, in the policy's own words, without the request's values. */
function rulesOf({ descriptors }: PreparedQuery): Attributes {
  const labels: string[] = [];
  let domain: string | undefined;
  for (const descriptor of descriptors) {
    if (descriptor.kind === "unmatched" || descriptor.rule === undefined) continue;
    domain = descriptor.rule.domain;
    labels.push(descriptor.rule.label);
  }
  if (domain === undefined) return {};
  return { "headgate.domain": domain, "headgate.rules": labels };
}
