import type { Dispatcher } from "undici";
import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { httpOutcome } from "../../core/calls/call-outcome.js";
import type { Admission, Attempt } from "../admission.js";
import { type AdapterOptions, holdOptions, type RequestOptions } from "./adapter-options.js";
import {
  httpErrorOutcome,
  idempotencyKeyHeader,
  type Repetition,
  repetitionOf,
} from "./http-calls.js";
import { PermitHold } from "./permit-hold.js";

/** Options of the interceptor for undici. */
export type UndiciOptions = AdapterOptions<[request: Dispatcher.DispatchOptions]>;

/**
 * Returns an interceptor for undici 7: all requests of a dispatcher go through an admission. A
 * refused request fails with an `AdmissionError`. Requests are retried, and permits held, as
 * `admissionFetch` does it. Upgrades and CONNECT pass without admission.
 *
 * @example
 * const agent = new Agent().compose(admissionInterceptor(createAdmission({ name: "orders" })));
 */
export function admissionInterceptor(
  admission: Admission,
  options: UndiciOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (request, handler) => {
    if (request.method === "CONNECT" || request.upgrade) return dispatch(request, handler);
    new Exchange({ admission, dispatch, request, handler, options }).run();
    return true;
  };
}

/**
 * Maximum size of a response that is kept until it is known whether it is retried, in bytes. A
 * small refusal is received as a whole, so that its connection serves the next attempt.
 */
const undecidedBytesMax = 65_536;

type Controller = Dispatcher.DispatchController;
type Handler = Dispatcher.DispatchHandler;
type ResponseStart = Parameters<NonNullable<Handler["onResponseStart"]>>;
type ResponseHeaders = ResponseStart[2];
type RawFields = NonNullable<Controller["rawHeaders"]> | null;

interface ExchangeParts {
  readonly admission: Admission;
  readonly dispatch: Dispatcher.Dispatch;
  readonly request: Dispatcher.DispatchOptions;
  readonly handler: Handler;
  readonly options: UndiciOptions;
}

/** A request as its handler sees it: one request, whatever the number of attempts. */
class Exchange implements Controller {
  readonly parts: ExchangeParts;
  readonly repetition: Repetition;
  paused = false;
  aborted = false;
  reason: Controller["reason"] = null;
  rawHeaders: RawFields = null;
  rawTrailers: RawFields = null;
  /** Number of attempts that have begun. */
  attemptsCount = 0;
  /** The attempt whose response the handler gets. */
  delivered: AttemptHandler | undefined;
  readonly #headers: readonly string[];
  readonly #asked: RequestOptions;
  readonly #givenUp = new AbortController();

  constructor(parts: ExchangeParts) {
    const { request, options } = parts;
    this.parts = parts;
    this.#headers = flatHeaders(request.headers ?? {});
    this.#asked = options.optionsOf?.(request) ?? {};
    this.repetition = repetitionOf({
      method: request.method,
      body: request.body ?? undefined,
      hasIdempotencyKey: this.#headers.some((word) => word.toLowerCase() === idempotencyKeyHeader),
      isIdempotent: this.#asked.isIdempotent ?? request.idempotent,
    });
  }

  run(): void {
    const { admission, handler } = this.parts;
    // A request that still waits for a permit can be aborted, too.
    handler.onRequestStart?.(this, {});
    admission
      .run((attempt) => this.#dispatch(attempt), {
        ...this.#asked,
        isIdempotent: this.repetition.isIdempotent,
        signal: this.#givenUp.signal,
        classify: (settled) =>
          settled.isError
            ? this.repetition.outcome(httpErrorOutcome(settled.error))
            : settled.value.outcome,
      })
      .then(
        (winner) => winner.deliver(),
        (error: unknown) => {
          if (this.delivered === undefined) handler.onResponseError?.(this, errorOf(error));
        },
      );
  }

  pause(): void {
    this.paused = true;
    this.delivered?.pause();
  }

  resume(): void {
    this.paused = false;
    this.delivered?.resume();
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#givenUp.abort(reason);
    this.delivered?.abort(reason);
  }

  #dispatch(attempt: Attempt): Promise<AttemptHandler> {
    const { dispatch, request } = this.parts;
    this.attemptsCount += 1;
    return new Promise((resolve, reject) => {
      const headers = withHeaders(this.#headers, attempt.headers);
      dispatch({ ...request, headers }, new AttemptHandler(this, attempt, { resolve, reject }));
    });
  }
}

/** Callbacks that settle the work of an attempt. */
interface Settling {
  resolve(handler: AttemptHandler): void;
  reject(error: Error): void;
}

/**
 * The response of one attempt. It is kept, up to `undecidedBytesMax`, until it is known that it is
 * not retried. From then on it is passed to the handler of the exchange as it arrives.
 */
class AttemptHandler implements Handler {
  /** Outcome of a response that has begun. */
  outcome: AttemptOutcome = { kind: "failed", retriable: "never" };
  readonly #exchange: Exchange;
  readonly #attempt: Attempt;
  readonly #settling: Settling;
  readonly #kept: ((handler: Handler) => void)[] = [];
  #keptBytes = 0;
  #controller: Controller | undefined;
  #hold: PermitHold | undefined;

  constructor(exchange: Exchange, attempt: Attempt, settling: Settling) {
    this.#exchange = exchange;
    this.#attempt = attempt;
    this.#settling = settling;
    attempt.signal.addEventListener("abort", () => this.abort(errorOf(attempt.signal.reason)));
  }

  /** Passes what is kept, and all that follows, to the handler of the exchange. */
  deliver(): void {
    const exchange = this.#exchange;
    if (exchange.delivered !== undefined) return;
    exchange.delivered = this;
    for (const event of this.#kept.splice(0)) event(exchange.parts.handler);
    if (exchange.paused) this.pause();
    else this.resume();
  }

  pause(): void {
    this.#controller?.pause();
    this.#hold?.rested();
  }

  resume(): void {
    this.#hold?.asked();
    this.#controller?.resume();
  }

  abort(reason: Error): void {
    // A request that still waits for a connection is aborted when it gets one.
    if (this.#controller === undefined) this.#settling.reject(reason);
    else this.#controller.abort(reason);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    const { signal } = this.#attempt;
    if (signal.aborted) this.abort(errorOf(signal.reason));
  }

  onResponseStart(...[controller, status, headers, message]: ResponseStart): void {
    const exchange = this.#exchange;
    const { admission, options, handler } = exchange.parts;
    // Informational responses precede the response and are not part of it.
    if (status < 200) {
      handler.onResponseStart?.(exchange, status, headers, message);
      return;
    }
    this.#hold = new PermitHold(this.#attempt, holdOptions(admission, options));
    const header = (name: string): string | undefined => headerText(headers[name]);
    this.outcome = exchange.repetition.outcome(
      httpOutcome({ status, header }, admission.clock.epochUs() / 1_000),
    );
    this.#kept.push((to) => {
      exchange.rawHeaders = controller.rawHeaders ?? null;
      to.onResponseStart?.(exchange, status, headers, message);
    });
    this.#settling.resolve(this);
    const isDecided = this.outcome.retriable === "never" && exchange.attemptsCount === 1;
    if (isDecided) this.deliver();
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#keptBytes += chunk.length;
    const isKept = this.#exchange.delivered !== this;
    if (isKept && this.#keptBytes > undecidedBytesMax) controller.pause();
    this.#pass((handler) => handler.onResponseData?.(this.#exchange, chunk));
  }

  onResponseEnd(controller: Controller, trailers: ResponseHeaders): void {
    this.#hold?.end();
    this.#pass((handler) => {
      this.#exchange.rawTrailers = controller.rawTrailers ?? null;
      handler.onResponseEnd?.(this.#exchange, trailers);
    });
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#hold === undefined) this.#settling.reject(error);
    this.#hold?.end();
    this.#pass((handler) => handler.onResponseError?.(this.#exchange, error));
  }

  #pass(event: (handler: Handler) => void): void {
    if (this.#exchange.delivered === this) event(this.#exchange.parts.handler);
    else this.#kept.push(event);
  }
}

/** Returns an abort reason, which may be anything, as the Error that `abort` takes. */
function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Returns the headers, in any form that undici accepts, as alternating names and values. */
function flatHeaders(headers: NonNullable<Dispatcher.DispatchOptions["headers"]>): string[] {
  if (Array.isArray(headers)) return headers;
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers);
  const flat: string[] = [];
  for (const [name, value] of pairs) {
    for (const text of [value].flat()) if (text !== undefined) flat.push(name, text);
  }
  return flat;
}

/** Returns the headers with others added. The added headers win. */
function withHeaders(flat: readonly string[], added: Readonly<Record<string, string>>): string[] {
  const merged: string[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [name = "", value = ""] = [flat[i], flat[i + 1]];
    if (!Object.hasOwn(added, name.toLowerCase())) merged.push(name, value);
  }
  return [...merged, ...Object.entries(added).flat()];
}
