import { httpFilter, type Json } from "./envoy-config.js";

/** The modes of the filter that asks, where requests are decided with their bodies. */
export const bodyProcessing: Json = {
  request_body_mode: "BUFFERED",
  request_trailer_mode: "SEND",
  response_trailer_mode: "SEND",
};

/** Shows responses; stands behind the filter that asks. */
export function usageFilter(fields: Json = {}): Json {
  return httpFilter("ext_proc", "ExternalProcessor", {
    grpc_service: {
      envoy_grpc: { cluster_name: "headgate" },
      initial_metadata: [{ key: "x-headgate-role", value: "usage" }],
    },
    observability_mode: true,
    failure_mode_allow: true,
    // What was not taken by then is lost.
    deferred_close_timeout: "30s",
    processing_mode: {
      request_header_mode: "SKIP",
      response_body_mode: "STREAMED",
      response_trailer_mode: "SEND",
    },
    metadata_options: { forwarding_namespaces: { untyped: ["headgate"] } },
    ...fields,
  });
}
