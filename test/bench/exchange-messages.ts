import { create, toBinary } from "@bufbuild/protobuf";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import type { LoadCalls } from "./load-client.js";

/** Different callers among the messages, so that no server is asked one question alone. */
const messageCount = 1_000;

/**
 * Exchanges of a request's and a response's headers, as Envoy's ext_proc filter sends them: values
 * as bytes, attributes of the request, and how it processes with the first message.
 */
export function exchangeCalls(): LoadCalls {
  const indexes = Array.from({ length: messageCount }, (_, i) => i);
  return {
    kind: "exchange",
    path: "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
    first: indexes.map((i) => encode(requestHeaders(i))),
    second: indexes.map((i) => encode(responseHeaders(i))),
  };
}

/** About 600 bytes, and 12 headers. */
function requestHeaders(i: number): ProcessingRequest {
  const id = String(i).padStart(12, "0");
  return create(ProcessingRequestSchema, {
    request: {
      case: "requestHeaders",
      value: {
        headers: headerMap([
          [":authority", "shop.example.com"],
          [":path", `/api/v1/orders/${id}?page=2`],
          [":method", "GET"],
          [":scheme", "https"],
          ["user-agent", "okhttp/4.12.0"],
          ["accept", "application/json"],
          ["accept-encoding", "gzip, deflate, br"],
          ["x-forwarded-for", "203.0.113.7"],
          ["x-forwarded-proto", "https"],
          ["x-request-id", `5f0c54f9-7a1e-4c0f-9f57-${id}`],
          ["x-account", `account-${id}`],
          ["authorization", `Bearer ${"0123456789abcdef".repeat(6)}`],
        ]),
        endOfStream: true,
      },
    },
    attributes: {
      "envoy.filters.http.ext_proc": { "xds.route_name": "orders", "xds.cluster_name": "orders" },
    },
    protocolConfig: {},
  });
}

/** About 300 bytes, and 8 headers. */
function responseHeaders(i: number): ProcessingRequest {
  return create(ProcessingRequestSchema, {
    request: {
      case: "responseHeaders",
      value: {
        headers: headerMap([
          [":status", "200"],
          ["content-type", "application/json; charset=utf-8"],
          ["content-length", String(1_000 + i)],
          ["date", "Sat, 21 Nov 2026 12:00:00 GMT"],
          ["server", "orders"],
          ["cache-control", "private, max-age=0"],
          ["vary", "accept-encoding, authorization"],
          ["x-envoy-upstream-service-time", "12"],
        ]),
      },
    },
  });
}

function headerMap(fields: readonly (readonly [key: string, value: string])[]): {
  headers: { key: string; rawValue: Uint8Array }[];
} {
  return {
    headers: fields.map(([key, value]) => ({ key, rawValue: Buffer.from(value, "latin1") })),
  };
}

function encode(message: ProcessingRequest): string {
  return Buffer.from(toBinary(ProcessingRequestSchema, message)).toString("base64");
}
