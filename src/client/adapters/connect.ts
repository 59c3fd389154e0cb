import {
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
} from "@connectrpc/connect";
import { grpcTimeoutHeader } from "../../core/admission/deadline.js";
import { decodeBase64 } from "../../core/base/base64.js";
import { parseGrpcTimeout } from "../../core/base/grpc-timeout.js";
import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { grpcOutcome } from "../../core/calls/call-outcome.js";
import type { Admission, Attempt, CallOptions } from "../admission.js";
import { type AdapterOptions, holdOptions } from "./adapter-options.js";
import { callFailure, callTimeoutMs } from "./grpc-calls.js";
import { httpErrorOutcome } from "./http-calls.js";
import { PermitHold } from "./permit-hold.js";

type Request = UnaryRequest | StreamRequest;
type Next = Parameters<Interceptor>[0];

/** Options of the interceptor for Connect. */
export type ConnectOptions = AdapterOptions<[request: Request]>;

/**
 * Returns an interceptor for clients of Connect 2, with any of its protocols: all calls go through
 * an admission. A call that the admission refuses fails with the code that a proxy would return,
 * with the `AdmissionError` as its cause. The shorter of a call's own timeout and `timeoutMs`
 * applies to all attempts together.
 *
 * Unary calls are retried: always if they were refused, otherwise if `optionsOf`, or the
 * idempotency level of their method, says that they are idempotent. Streaming calls are admitted
 * and never retried. Their outcome is how they begin, up to the first message of the response. A
 * permit is held until the call ends.
 *
 * @example
 * const interceptors = [admissionInterceptor(createAdmission({ name: "orders" }))];
 * const transport = createGrpcTransport({ baseUrl: "https://orders.example", interceptors });
 */
export function admissionInterceptor(
  admission: Admission,
  options: ConnectOptions = {},
): Interceptor {
  return (next) => (request) => {
    const parts = { admission, options, next };
    return request.stream
      ? callStream(parts, request)
      : admission
          .run((attempt) => next(sentRequest(request, attempt)), callOptions(parts, request))
          .catch((error: unknown) => Promise.reject(connectError(error)));
  };
}

interface CallParts {
  readonly admission: Admission;
  readonly options: ConnectOptions;
  readonly next: Next;
}

/**
 * Runs a call with a stream. The response is passed on when it arrives. The attempt is judged by
 * the first message, because a refusal may come after the headers.
 */
function callStream(parts: CallParts, request: StreamRequest): Promise<StreamResponse> {
  const { admission, options, next } = parts;
  return new Promise((pass, reject) => {
    const work = async (attempt: Attempt): Promise<void> => {
      const response = await next(sentRequest(request, attempt));
      if (!response.stream) throw new TypeError("a stream was answered without one");
      const hold = new PermitHold(attempt, holdOptions(admission, options));
      await new Promise<void>((begun, failed) => {
        const message = readMessages(response.message, { hold, begun, failed, judged });
        hold.ended.then(begun);
        hold.rested();
        pass({ ...response, message });
      });
    };
    const judged = admission
      .run(work, callOptions(parts, request))
      .catch((error: unknown) => reject(connectError(error)));
  });
}

interface Reading {
  readonly hold: PermitHold;
  /** Reports that the first message, or the end, has arrived. */
  begun(): void;
  failed(error: unknown): void;
  /** Resolves when the admission knows the outcome of the attempt. */
  readonly judged: Promise<void>;
}

async function* readMessages<T>(
  messages: AsyncIterable<T>,
  { hold, begun, failed, judged }: Reading,
): AsyncGenerator<T, void, undefined> {
  try {
    hold.asked();
    for await (const message of messages) {
      begun();
      hold.rested();
      yield message;
      hold.asked();
    }
  } catch (error) {
    failed(error);
    // A transport cancels a call when it sees its error, and a cancelled call has no outcome.
    await judged;
    throw error;
  } finally {
    hold.end();
  }
}

/** Returns the request of one attempt. */
function sentRequest<R extends Request>(request: R, { headers, signal }: Attempt): R {
  const header = new Headers(request.header);
  for (const [name, value] of Object.entries(headers)) header.set(name, value);
  const timeoutMs = parseGrpcTimeout(headers[grpcTimeoutHeader] ?? "");
  if (timeoutMs !== undefined && header.has(connectVersionHeader)) {
    header.set(connectTimeoutHeader, String(Math.floor(timeoutMs)));
  }
  return { ...request, header, signal };
}

/** Source: Connect Protocol Reference, "Unary-Request". */
const connectVersionHeader = "connect-protocol-version";
const connectTimeoutHeader = "connect-timeout-ms";

/** Returns the time that a request has left, in milliseconds. Undefined if it states none. */
function statedTimeoutMs({ header }: Request): number | undefined {
  const ms = header.get(connectTimeoutHeader);
  if (ms) return Number(ms);
  return parseGrpcTimeout(header.get(grpcTimeoutHeader) ?? "");
}

function callOptions<T>({ admission, options }: CallParts, request: Request): CallOptions<T> {
  const asked = options.optionsOf?.(request) ?? {};
  const timeoutMs = callTimeoutMs([statedTimeoutMs(request), asked.timeoutMs]);
  // Idempotency level 0 means unspecified.
  const { isIdempotent = request.method.idempotency !== 0 } = asked;
  return {
    ...asked,
    ...(timeoutMs !== undefined && { timeoutMs }),
    isIdempotent: !request.stream && isIdempotent,
    signal: request.signal,
    classify: (settled) => {
      if (!settled.isError) return { kind: "served", retriable: "never" };
      const outcome = errorOutcome(settled.error, admission.clock.epochUs() / 1_000);
      return request.stream ? { ...outcome, retriable: "never" } : outcome;
    },
  };
}

function errorOutcome(error: unknown, epochMs: number): AttemptOutcome {
  if (!(error instanceof ConnectError)) return httpErrorOutcome(error);
  const { code, metadata, cause } = error;
  // For a refused connection, the cause says more than the code.
  const ofCause = httpErrorOutcome(cause);
  if (ofCause.retriable === "always") return ofCause;
  const header = (name: string): string | undefined => metadata.get(name) ?? undefined;
  const details = header("grpc-status-details-bin");
  const statusDetails = details === undefined ? undefined : decodeBase64(details);
  return grpcOutcome({ code, header, statusDetails }, epochMs);
}

function connectError(error: unknown): unknown {
  const failure = callFailure(error);
  if (failure === undefined) return error;
  return new ConnectError(failure.details, failure.code, undefined, undefined, error);
}
