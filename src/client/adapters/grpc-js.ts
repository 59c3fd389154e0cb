import {
  InterceptingCall,
  type InterceptingListener,
  type Interceptor,
  type InterceptorOptions,
  Metadata,
  type NextCall,
  type StatusObject,
} from "@grpc/grpc-js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { grpcOutcome } from "../../core/calls/call-outcome.js";
import type { Admission, Attempt, CallOptions } from "../admission.js";
import { type AdapterOptions, holdOptions } from "./adapter-options.js";
import { callFailure, callTimeoutMs, type GrpcCallFailure } from "./grpc-calls.js";
import { PermitHold } from "./permit-hold.js";

/** Options of the interceptor for grpc-js. */
export type GrpcJsOptions = AdapterOptions<[path: string, metadata: Metadata]>;

/**
 * Returns an interceptor for clients of grpc-js: all calls go through an admission. A call that the
 * admission refuses ends with the status that a proxy would return. The shorter of a call's own
 * deadline and `timeoutMs` applies to all attempts together.
 *
 * Unary calls are retried: always if they were refused, otherwise if `optionsOf`, or the option
 * `idempotentRequest` of their metadata, says that they are idempotent. Their message is kept
 * without a copy. Streaming calls are admitted and never retried. Their outcome is how they begin,
 * up to the first message of the response. A permit is held until the call ends.
 *
 * @example
 * const options = { interceptors: [admissionInterceptor(createAdmission({ name: "orders" }))] };
 * const client = new OrdersClient("orders.example:50051", credentials.createSsl(), options);
 */
export function admissionInterceptor(
  admission: Admission,
  options: GrpcJsOptions = {},
): Interceptor {
  return (callOptions, nextCall) =>
    new InterceptingCall(new AdmittedCall({ admission, options, callOptions, nextCall }));
}

type SentCall = ReturnType<NextCall>;
type MessageContext = Parameters<SentCall["sendMessageWithContext"]>[0];
type Step = (call: SentCall, attemptNumber: number) => void;

interface CallParts {
  readonly admission: Admission;
  readonly options: GrpcJsOptions;
  readonly callOptions: InterceptorOptions;
  readonly nextCall: NextCall;
}

/** Outcome of an attempt, and the answer that the caller gets if the attempt is the last one. */
interface CallAnswer {
  readonly outcome: AttemptOutcome;
  deliver(): void;
}

const served: AttemptOutcome = { kind: "served", retriable: "never" };

/** A call as its client sees it: one call, whatever the number of attempts. */
class AdmittedCall implements SentCall {
  readonly #parts: CallParts;
  readonly #isUnary: boolean;
  readonly #givenUp = new AbortController();
  /** Steps of the client: all of a unary call; of other calls, those before the call is sent. */
  readonly #steps: Step[] = [];
  #metadata = new Metadata();
  #listener: Partial<InterceptingListener> = {};
  #isRunning = false;
  #isEnded = false;
  #cancelled: GrpcCallFailure | undefined;
  /** The call of the last attempt. */
  #sent: SentCall | undefined;
  #hold: PermitHold | undefined;

  constructor(parts: CallParts) {
    const { requestStream, responseStream } = parts.callOptions.method_definition;
    this.#parts = parts;
    this.#isUnary = !requestStream && !responseStream;
  }

  start(metadata: Metadata, listener: Partial<InterceptingListener> = {}): void {
    this.#metadata = metadata;
    this.#listener = listener;
    if (!this.#isUnary) this.#run();
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    const { callback: _, ...repeated } = context;
    this.#take((call, attemptNumber) =>
      call.sendMessageWithContext(attemptNumber === 1 ? context : repeated, message),
    );
  }

  startRead(): void {
    this.#take((call) => {
      this.#hold?.asked();
      call.startRead();
    });
  }

  halfClose(): void {
    this.#take((call) => call.halfClose());
    if (this.#isUnary) this.#run();
  }

  cancelWithStatus(code: number, details: string): void {
    this.#cancelled ??= { code, details };
    if (this.#isRunning) this.#givenUp.abort(new Error(details));
    else this.#fail(this.#cancelled);
  }

  getPeer(): string {
    return this.#sent?.getPeer() ?? "unknown";
  }

  getAuthContext(): ReturnType<SentCall["getAuthContext"]> {
    return this.#sent?.getAuthContext() ?? null;
  }

  /** Keeps the steps of a unary call until it is complete. Other calls are sent step by step. */
  #take(step: Step): void {
    if (this.#isUnary || this.#sent === undefined) this.#steps.push(step);
    else step(this.#sent, 1);
  }

  #run(): void {
    const { admission } = this.#parts;
    this.#isRunning = true;
    if (this.#isEnded) return;
    admission
      .run((attempt) => this.#send(attempt), this.#callOptions())
      .then(
        (answer) => answer.deliver(),
        (error: unknown) => this.#fail(this.#failure(error)),
      );
  }

  #callOptions(): CallOptions<CallAnswer> {
    const { admission, callOptions, options } = this.#parts;
    const asked = options.optionsOf?.(callOptions.method_definition.path, this.#metadata) ?? {};
    const deadlineMs = Number(callOptions.deadline ?? Number.POSITIVE_INFINITY);
    const remainingMs = deadlineMs - admission.clock.epochUs() / 1_000;
    const timeoutMs = callTimeoutMs([remainingMs, asked.timeoutMs]);
    const { isIdempotent = this.#metadata.getOptions().idempotentRequest === true } = asked;
    return {
      ...asked,
      ...(timeoutMs !== undefined && { timeoutMs }),
      isIdempotent: this.#isUnary && isIdempotent,
      signal: this.#givenUp.signal,
      classify: (settled) =>
        settled.isError ? { kind: "failed", retriable: "never" } : settled.value.outcome,
    };
  }

  #send(attempt: Attempt): Promise<CallAnswer> {
    const { callOptions, nextCall } = this.#parts;
    const metadata = this.#metadata.clone();
    for (const [name, value] of Object.entries(attempt.headers)) metadata.set(name, value);
    // The admission enforces the deadline, and the metadata states it.
    const call = nextCall({ ...callOptions, deadline: Number.POSITIVE_INFINITY });
    this.#sent = call;
    attempt.signal.addEventListener("abort", () => {
      const { code, details } = this.#failure(attempt.signal.reason);
      call.cancelWithStatus(code, details);
    });
    return new Promise((resolve) => {
      call.start(metadata, this.#isUnary ? this.#unary(resolve) : this.#streamed(attempt, resolve));
      for (const step of this.#isUnary ? this.#steps : this.#steps.splice(0)) {
        step(call, attempt.number);
      }
    });
  }

  /** Keeps the answer until the attempt is known to be the last one. */
  #unary(resolve: (answer: CallAnswer) => void): InterceptingListener {
    const kept: ((listener: Partial<InterceptingListener>) => void)[] = [];
    let headers: Metadata | undefined;
    return {
      onReceiveMetadata: (metadata) => {
        headers = metadata;
        kept.push((listener) => listener.onReceiveMetadata?.(metadata));
      },
      onReceiveMessage: (message) => {
        kept.push((listener) => listener.onReceiveMessage?.(message));
      },
      onReceiveStatus: (status) => {
        resolve({
          outcome: this.#outcome(status, headers),
          deliver: () => {
            if (this.#isEnded) return;
            for (const event of kept) event(this.#listener);
            this.#end(status);
          },
        });
      },
    };
  }

  /** Passes everything on at once. A first message shows that the service accepted the call. */
  #streamed(attempt: Attempt, resolve: (answer: CallAnswer) => void): InterceptingListener {
    const { admission, callOptions, options } = this.#parts;
    const { responseStream } = callOptions.method_definition;
    const hold = new PermitHold(attempt, holdOptions(admission, options));
    this.#hold = hold;
    const begun = (): void => resolve({ outcome: served, deliver: () => {} });
    hold.ended.then(begun);
    if (responseStream) hold.rested();
    return {
      onReceiveMetadata: (metadata) => {
        if (!this.#isEnded) this.#listener.onReceiveMetadata?.(metadata);
      },
      onReceiveMessage: (message) => {
        if (responseStream) {
          hold.rested();
          begun();
        }
        if (!this.#isEnded) this.#listener.onReceiveMessage?.(message);
      },
      onReceiveStatus: (status) => {
        const outcome: AttemptOutcome = { ...this.#outcome(status), retriable: "never" };
        resolve({ outcome, deliver: () => {} });
        hold.end();
        this.#end(status);
      },
    };
  }

  #outcome(status: StatusObject, headers?: Metadata): AttemptOutcome {
    const valuesOf = (name: string) => [
      ...status.metadata.get(name),
      ...(headers?.get(name) ?? []),
    ];
    const [details] = valuesOf("grpc-status-details-bin");
    return grpcOutcome(
      {
        code: status.code,
        header: (name) => {
          const values = valuesOf(name);
          return values.length === 0 ? undefined : values.join(", ");
        },
        statusDetails: typeof details === "string" ? undefined : details,
      },
      this.#parts.admission.clock.epochUs() / 1_000,
    );
  }

  #failure(error: unknown): GrpcCallFailure {
    const code = grpcStatuses.internal;
    return this.#cancelled ?? callFailure(error) ?? { code, details: String(error) };
  }

  #fail({ code, details }: GrpcCallFailure): void {
    this.#end({ code, details, metadata: new Metadata() });
  }

  #end(status: StatusObject): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#listener.onReceiveStatus?.(status);
  }
}
