import type { IncomingMessage, ServerResponse } from "node:http";
import type { Refusal } from "../../core/admission/exchange-messages.js";
import { orcaHeader } from "../../core/admission/orca.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { RequestPermit } from "./request-permit.js";
import type { ServerAdmission } from "./server-admission.js";
import type { ServerRequest } from "./server-options.js";

/** The members used of a request of node:http, or of the compatibility API of node:http2. */
export interface HttpRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Set by Express, where `url` is relative to the path of a router. */
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: HttpSocket;
}

/** The members used of its connection; with HTTP/2, of its stream. */
export interface HttpSocket {
  readonly destroyed: boolean;
  readonly remoteAddress?: string | undefined;
  once(event: "close", listener: () => void): unknown;
}

/** The members used of its response. */
export interface HttpResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  /** Null or undefined while it waits behind another response on its connection. */
  readonly socket: unknown;
  setHeader(name: string, value: string): unknown;
  end(): unknown;
  end(body: string): unknown;
  once(event: "close" | "finish", listener: () => void): unknown;
}

/** Callbacks for the verdict on a request. Neither is called once its client has left. */
interface Admittance {
  admitted(permit: RequestPermit): void;
  refused(refusal: Refusal): void;
}

/** Requests admission for a request, and follows it to its end. */
export type AdmitHttp = (
  request: HttpRequest,
  response: HttpResponse,
  admittance: Admittance,
) => void;

/** A handler of node:http or node:http2 that also gets the permit of its request. */
type AdmittedHandler<Request, Response> = (
  request: Request,
  response: Response,
  permit: RequestPermit,
) => unknown;

/**
 * Returns a handler of node:http, or of node:http2's compatibility API, behind an admission. The
 * given handler is called for admitted requests. If it throws or rejects, the permit is released,
 * and the error propagates as it would have without an admission.
 */
export function httpAdmission<
  Request extends HttpRequest = IncomingMessage,
  Response extends HttpResponse = ServerResponse,
>(
  admission: ServerAdmission,
  handler: AdmittedHandler<Request, Response>,
): (request: Request, response: Response) => void {
  const admit = createHttpAdmitter(admission);
  return (request, response) => {
    admit(request, response, {
      refused: (refusal) => sendRefusal(response, refusal),
      admitted: (permit) => {
        const failed = (error: unknown): never => {
          permit.end("broken");
          throw error;
        };
        try {
          const result = handler(request, response, permit);
          if (result instanceof Promise) result.catch(failed);
        } catch (error) {
          failed(error);
        }
      },
    });
  };
}

/**
 * Creates a function that admits HTTP requests. It releases a permit when the response has been
 * handed to the system, or when its connection or stream closes before.
 */
export function createHttpAdmitter(admission: ServerAdmission): AdmitHttp {
  const pipelined = new PipelinedResponses();
  const onceLeft = ({ socket }: HttpRequest, response: HttpResponse, left: () => void): void => {
    response.once("close", left);
    if (!response.socket) response.once("finish", pipelined.watch(socket, left));
  };
  return (request, response, admittance) => {
    // Earlier middleware may have taken so long that the client left.
    if (request.socket.destroyed) return;
    const asked = new HttpServerRequest(request);
    const enter = (permit: RequestPermit): void => {
      const report = admission.loadReport(asked);
      if (report !== undefined) response.setHeader(orcaHeader, report);
      // An HTTP/2 stream also emits "finish" when its client resets it.
      response.once("finish", () => {
        permit.end(response.writableEnded ? "completed" : "left", startedStatus(response));
      });
      onceLeft(request, response, () => permit.end("left", startedStatus(response)));
      admittance.admitted(permit);
    };
    const answer = admission.begin(asked);
    if (answer.kind === "admitted") enter(answer.permit);
    else if (answer.kind === "refused") admittance.refused(answer.refusal);
    else {
      let isLeft = false;
      onceLeft(request, response, () => {
        isLeft = true;
        answer.leave();
      });
      void answer.decided.then((verdict) => {
        if (isLeft) return;
        if (verdict.kind === "admitted") enter(verdict.permit);
        else if (verdict.kind === "refused") admittance.refused(verdict.refusal);
      });
    }
  };
}

/** Answers a refusal as Envoy does for the proxy layer: gRPC gets its status without a body. */
export function sendRefusal(response: HttpResponse, refusal: Refusal): void {
  const { status, grpcStatus, headers, body } = refusal;
  for (const { name, value } of headers) response.setHeader(name, value);
  if (grpcStatus === undefined) {
    response.statusCode = status;
    response.end(body);
  } else {
    response.statusCode = httpStatuses.ok;
    response.setHeader("content-type", "application/grpc");
    response.setHeader("grpc-status", String(grpcStatus));
    response.setHeader("grpc-message", body);
    response.end();
  }
}

function startedStatus({ headersSent, statusCode }: HttpResponse) {
  return headersSent ? { status: statusCode } : undefined;
}

class HttpServerRequest implements ServerRequest {
  readonly #request: HttpRequest;

  constructor(request: HttpRequest) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.method ?? "";
  }

  get path(): string {
    return this.#request.originalUrl ?? this.#request.url ?? "";
  }

  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }
}

/**
 * Responses that wait behind others on their connections. Node tells a response that its connection
 * is closed only while it is that response's turn. There is one listener for each connection,
 * because there may be hundreds of responses.
 */
class PipelinedResponses {
  readonly #bySocket = new WeakMap<HttpSocket, Set<() => void>>();

  /** Calls `left` if the connection closes. @returns a function that ends the watch */
  watch(socket: HttpSocket, left: () => void): () => void {
    const waiting = this.#bySocket.get(socket) ?? this.#begin(socket);
    waiting.add(left);
    return () => waiting.delete(left);
  }

  #begin(socket: HttpSocket): Set<() => void> {
    const waiting = new Set<() => void>();
    this.#bySocket.set(socket, waiting);
    socket.once("close", () => {
      for (const left of waiting) left();
    });
    return waiting;
  }
}
