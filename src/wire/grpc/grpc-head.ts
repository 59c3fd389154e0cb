import { grpcStatuses } from "../../core/base/grpc-status.js";
import { parseGrpcTimeout } from "../../core/base/grpc-timeout.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { HeaderFields, SentField } from "../base/http2.js";
import { failureAnswer } from "./grpc-status.js";
import type { MethodHandler, ServiceHandlers } from "./service.js";

/** Methods by their paths. */
export type Routes = ReadonlyMap<string, MethodHandler>;

/** Result of reading a call's header block. */
export type CallHead =
  | {
      readonly kind: "call";
      readonly method: MethodHandler;
      /** How long the caller waits, in milliseconds. Undefined if it does not say. */
      readonly timeoutMs: number | undefined;
      /** `grpc-encoding` as it was sent. */
      readonly encoding: string | undefined;
    }
  /** The call is not served: this is the whole answer. */
  | { readonly kind: "refusal"; readonly answer: readonly SentField[] };

/** Returns all methods by their paths. Source: gRPC over HTTP2, "Path". */
export function routesOf(services: readonly ServiceHandlers[]): Routes {
  return new Map(
    services.flatMap(({ name, methods }) =>
      methods.map((method) => [`/${name}/${method.name}`, method] as const),
    ),
  );
}

/** Reads a header block whose pseudo-fields are known to be complete. */
export function readCallHead(fields: HeaderFields, routes: Routes): CallHead {
  // Source: gRPC over HTTP2, "Requests": what is not gRPC at all is answered in plain HTTP.
  if (!isGrpc(fields.get("content-type")))
    return refusal([[":status", String(httpStatuses.unsupportedMediaType)]]);
  if (fields.get(":method") !== "POST") {
    return refusal([
      [":status", String(httpStatuses.methodNotAllowed)],
      ["allow", "POST"],
    ]);
  }
  const method = routes.get(fields.get(":path") ?? "");
  if (method === undefined) {
    return failure(grpcStatuses.unimplemented, "Unknown method.");
  }
  const timeoutText = fields.get("grpc-timeout");
  const timeoutMs = timeoutText === undefined ? undefined : parseGrpcTimeout(timeoutText);
  if (timeoutText !== undefined && timeoutMs === undefined) {
    return failure(grpcStatuses.internal, "grpc-timeout is invalid.");
  }
  return { kind: "call", method, timeoutMs, encoding: fields.get("grpc-encoding") };
}

/** Handlers read Protobuf, but not gRPC-Web or JSON. */
function isGrpc(contentType: string | undefined): boolean {
  return contentType === "application/grpc" || grpcType.test(contentType ?? "");
}

/** Types are case-insensitive, and parameters may follow. Source: RFC 9110, section 8.3.1. */
const grpcType = /^application\/grpc(?:\+proto)?[ \t]*(?:;|$)/i;

function failure(grpcStatus: number, message: string): CallHead {
  return refusal(failureAnswer({ grpcStatus, message }));
}

function refusal(answer: readonly SentField[]): CallHead {
  return { kind: "refusal", answer };
}
