import { Code } from "@connectrpc/connect";
import { httpStatuses } from "../../core/base/http-status.js";
import { codeName } from "./connect-errors.js";

/** A response that is sent before a request is read. */
export interface RefusalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Source: Connect protocol reference, "Error codes". */
const statusByCode: ReadonlyMap<Code, number> = new Map([
  [Code.Unauthenticated, httpStatuses.unauthorized],
  [Code.PermissionDenied, httpStatuses.forbidden],
  [Code.ResourceExhausted, httpStatuses.tooManyRequests],
  [Code.Unavailable, httpStatuses.serviceUnavailable],
  [Code.Unimplemented, httpStatuses.notImplemented],
]);

/** The flag that ends a stream in Connect. Source: Connect protocol reference. */
const endOfStreamFlag = 2;

/**
 * Returns a refusal in the protocol of the request, so that the body of a request without
 * permission is never read.
 *
 * @param contentType of the request; one of no known protocol is treated as Connect's JSON
 */
export function refusalAnswer(
  contentType: string,
  { code, message }: { readonly code: Code; readonly message: string },
): RefusalAnswer {
  const mediaType = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  if (mediaType.startsWith("application/grpc")) {
    return {
      status: httpStatuses.ok,
      headers: {
        "content-type": mediaType,
        "grpc-status": String(code),
        "grpc-message": encodeURIComponent(message),
      },
      body: "",
    };
  }
  const error = { code: codeName(code), message };
  if (mediaType.startsWith("application/connect+")) {
    const text = Buffer.from(JSON.stringify({ error }));
    const head = Buffer.alloc(5);
    head.writeUInt8(endOfStreamFlag, 0);
    head.writeUInt32BE(text.length, 1);
    const body = Buffer.concat([head, text]);
    return { status: httpStatuses.ok, headers: { "content-type": mediaType }, body };
  }
  const status = statusByCode.get(code) ?? httpStatuses.internalServerError;
  const headers: Record<string, string> = { "content-type": "application/json" };
  // Source: RFC 9110 section 11.6.1: a 401 states how to authenticate.
  if (status === httpStatuses.unauthorized) headers["www-authenticate"] = "Bearer";
  return { status, headers, body: JSON.stringify(error) };
}
