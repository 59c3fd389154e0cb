import { roleHeader } from "../../../core/admission/exchange-messages.js";
import { fallbackHeader } from "../../../core/limits/request-marks.js";
import { observesBodies, readsRequestBody } from "../../../policy/budgets/budget-policy.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { softAnswers } from "../../../policy/services/soft-answers.js";
import { defaultBlocks } from "../../../policy/upstream/default-upstream.js";
import { noted, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature, reportOld } from "../base/envoy-features.js";
import { envoyGrpc, httpFilter } from "../base/http-filter.js";
import { isAskedHere } from "../base/sides.js";
import { durationText, typed } from "../base/values.js";

/** The second ext_proc filter, which sends Headgate responses that report their usage. */
export const usageFilterName = "envoy.filters.http.ext_proc.usage";

/**
 * How long Envoy keeps the stream of an observed response open after the response, in milliseconds:
 * less than Headgate waits for it (`usageGraceMs`), and long enough for messages in transit.
 */
const observerCloseMs = 1_000;

/**
 * Returns the filter that sends Headgate response bodies without waiting. Undefined if no service
 * reports usage there. It follows the admission filter, whose metadata names the reservation.
 *
 * Source: envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor, `observability_mode`.
 */
export function usageFilter(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): TreeMap | undefined {
  const first = services.find(observesBodies);
  if (first === undefined) return undefined;
  if (!hasFeature(context, "observedBodies")) {
    reportOld(context, {
      service: first.name,
      path: ["usage", "from"],
      feature: "observedBodies",
      what: "showing bodies to Headgate without delaying them",
      instead: "let responses report their usage in headers or trailers",
    });
  }
  const { typed_config: config } = httpFilter("ext_proc", "ExternalProcessor", {
    grpc_service: {
      ...envoyGrpc(context.headgateClusters.decisions),
      initial_metadata: [{ key: roleHeader, value: "usage" }],
    },
    stat_prefix: "headgate_usage",
    failure_mode_allow: noted("A failure here never harms a request.", true),
    observability_mode: noted("Responses never wait for Headgate.", true),
    deferred_close_timeout: durationText(observerCloseMs),
    disable_immediate_response: true,
    processing_mode: {
      request_header_mode: "SKIP",
      response_header_mode: "SEND",
      request_body_mode: "NONE",
      response_body_mode: "STREAMED",
      request_trailer_mode: "SKIP",
      response_trailer_mode: "SEND",
    },
    forward_rules: {
      allowed_headers: { patterns: observedHeaders.map((exact) => ({ exact })) },
    },
    metadata_options: noted("Names the reservation that the response settles.", {
      forwarding_namespaces: { untyped: ["headgate"] },
    }),
  });
  return { name: usageFilterName, typed_config: config };
}

/** Headers without which a body cannot be parsed. */
const observedHeaders: readonly string[] = [":status", "content-encoding", "content-type"];

/** Returns the second filter's settings for a service. Other services disable it. */
export function usagePerRoute(service: ServicePolicy): TreeMap {
  const type = "envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute";
  if (!observesBodies(service)) return typed(type, { disabled: true });
  return typed(type, {
    overrides: {
      grpc_initial_metadata: [{ key: "x-headgate-service", value: service.name }],
    },
  });
}

/** Returns virtual host settings for a service whose calls are measured or redirected. */
export function measuredHost(service: ServicePolicy, context: EnvoyContext): TreeMap {
  if (!isAskedHere(context)) return {};
  const { usage } = service;
  const isRead = usage !== undefined && readsRequestBody(usage);
  const removed = [
    // The usage in compressed responses cannot be read.
    ...(observesBodies(service) ? ["accept-encoding"] : []),
    // Only Headgate may set it.
    ...(softAnswers(context.policy)(service).isRouted ? [fallbackHeader] : []),
  ];
  return {
    request_headers_to_remove: removed.length === 0 ? undefined : removed,
    request_body_buffer_limit:
      isRead && hasFeature(context, "requestBodyBufferLimit")
        ? noted("Larger bodies are refused with 413.", usage.requestBytesMax)
        : undefined,
  };
}

/** Reports that listeners that we do not generate may buffer less of a body than Headgate reads. */
export function reportBodyLimit({ name, usage }: ServicePolicy, context: EnvoyContext): void {
  if (usage === undefined || !readsRequestBody(usage) || !isAskedHere(context)) return;
  if (hasFeature(context, "requestBodyBufferLimit")) return;
  reportOld(context, {
    service: name,
    path: ["usage", "requestBody"],
    feature: "requestBodyBufferLimit",
    what: "a limit of buffered request bodies for one service",
    instead: "let requests state their model and maximum in headers",
  });
}

/**
 * Returns what a listener must buffer for bodies that Headgate reads, in bytes; 0 if virtual hosts
 * set it, or if no body is read.
 */
export function listenerBodyBytes(context: EnvoyContext): number {
  if (hasFeature(context, "requestBodyBufferLimit") || !isAskedHere(context)) return 0;
  const sizes = context.policy.services.map(({ usage }) =>
    usage !== undefined && readsRequestBody(usage) ? usage.requestBytesMax : 0,
  );
  return Math.max(0, ...sizes);
}

/**
 * Returns the maximum duration of a service's requests, in milliseconds; 0: unlimited. By default,
 * measured calls may last as long as they are measured, because streams run for minutes.
 */
export function servedMsMax({ timeouts, usage }: ServicePolicy): number {
  const isDefault = timeouts.requestMs === defaultBlocks.timeouts.requestMs;
  return usage !== undefined && isDefault ? usage.callMsMax : timeouts.requestMs;
}
