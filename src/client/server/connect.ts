import {
  Code,
  ConnectError,
  type ContextKey,
  createContextKey,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { orcaHeader } from "../../core/admission/orca.js";
import { refusalRows } from "../../core/admission/refusal.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { RequestEnding } from "../../core/calls/request-outcome.js";
import type { RequestPermit, ServerRefusal, ServerVerdict } from "./request-permit.js";
import type { ServerAdmission, ServerAnswer } from "./server-admission.js";
import type { ServerRequest } from "./server-options.js";

/** Key by which a handler finds the permit of its request: `context.values.get(admissionKey)`. */
export const admissionKey: ContextKey<RequestPermit | undefined> = createContextKey<
  RequestPermit | undefined
>(undefined, { description: "headgate admission" });

/**
 * Returns an interceptor for the server side of Connect, gRPC and gRPC-Web, such as of
 * `connectNodeAdapter`. A refused request gets an error with the code of its cause, when to retry,
 * and the reason. A permit is held until the last message of the response.
 */
export function connectAdmission(admission: ServerAdmission): Interceptor {
  return (next) => async (request) => {
    if (request.signal.aborted) throw clientLeft();
    const asked = new ConnectServerRequest(request);
    const verdict = await decided(admission.begin(asked), request.signal);
    if (verdict.kind === "left") throw clientLeft();
    if (verdict.kind === "refused") throw refusalError(verdict);
    const { permit } = verdict;
    const left = (): void => permit.end("left");
    request.signal.addEventListener("abort", left, { once: true });
    const end = (ending: RequestEnding, grpcStatus?: number): void => {
      request.signal.removeEventListener("abort", left);
      permit.end(ending, grpcStatus === undefined ? undefined : { grpcStatus });
    };
    try {
      request.contextValues.set(admissionKey, permit);
      const response = await next(request);
      const report = admission.loadReport(asked);
      if (report !== undefined) response.header.set(orcaHeader, report);
      if (response.stream) return { ...response, message: followed(response.message, end) };
      end("completed", grpcStatuses.ok);
      return response;
    } catch (error) {
      end("completed", ConnectError.from(error).code);
      throw error;
    }
  };
}

/** Waits for the verdict on a request. A client that leaves gives up its place or permit. */
async function decided(answer: ServerAnswer, signal: AbortSignal): Promise<ServerVerdict> {
  if (answer.kind !== "waiting") return answer;
  signal.addEventListener("abort", answer.leave, { once: true });
  const verdict = await answer.decided;
  signal.removeEventListener("abort", answer.leave);
  return signal.aborted ? { kind: "left" } : verdict;
}

type End = (ending: RequestEnding, grpcStatus?: number) => void;

async function* followed<T>(messages: AsyncIterable<T>, end: End): AsyncIterable<T> {
  let status: number | undefined;
  try {
    yield* messages;
    status = grpcStatuses.ok;
  } catch (error) {
    status = ConnectError.from(error).code;
    throw error;
  } finally {
    // Without a status, the reader stopped before the last message.
    end(status === undefined ? "left" : "completed", status);
  }
}

function clientLeft(): ConnectError {
  return new ConnectError("the client left", Code.Canceled);
}

/** Returns a refusal as an error: its headers are metadata, the content type is the protocol's. */
function refusalError({ cause, refusal }: ServerRefusal): ConnectError {
  const metadata = new Headers();
  for (const { name, value } of refusal.headers) {
    if (name !== "content-type") metadata.set(name, value);
  }
  const { reason, grpcStatus } = refusalRows[cause];
  return new ConnectError(reason, codes.get(grpcStatus) ?? Code.Unavailable, metadata);
}

const codes: ReadonlyMap<number, Code> = new Map([
  [grpcStatuses.resourceExhausted, Code.ResourceExhausted],
  [grpcStatuses.unavailable, Code.Unavailable],
  [grpcStatuses.deadlineExceeded, Code.DeadlineExceeded],
]);

class ConnectServerRequest implements ServerRequest {
  readonly remoteAddress = undefined;
  readonly #request: UnaryRequest | StreamRequest;

  constructor(request: UnaryRequest | StreamRequest) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.requestMethod;
  }

  get path(): string {
    const { service, method } = this.#request;
    return `/${service.typeName}/${method.name}`;
  }

  header(name: string): string | undefined {
    const value = this.#request.header.get(name) ?? undefined;
    if (value !== undefined || name !== "grpc-timeout") return value;
    // Connect's own timeout header is in milliseconds, too.
    const timeoutMs = this.#request.header.get("connect-timeout-ms") ?? undefined;
    return timeoutMs === undefined ? undefined : `${timeoutMs}m`;
  }
}
