import type { Clock } from "../../core/base/clock.js";
import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { httpOutcome } from "../../core/calls/call-outcome.js";
import type { Admission, Attempt } from "../admission.js";
import { type AdapterOptions, holdOptions } from "./adapter-options.js";
import { httpErrorOutcome, idempotencyKeyHeader, repetitionOf } from "./http-calls.js";
import { type HoldOptions, PermitHold } from "./permit-hold.js";

/** Options of `admissionFetch`. */
export interface FetchOptions extends AdapterOptions<Parameters<typeof fetch>> {
  /** Function that sends requests. Default: the global `fetch` */
  readonly fetch?: typeof fetch;
}

/**
 * Returns a `fetch` whose requests go through an admission. A refused request rejects with an
 * `AdmissionError`. A request that was sent resolves with the last response, whatever its status.
 *
 * Requests are retried if that is safe: always if they were refused, otherwise if they are
 * idempotent, and never if the body is a stream, which can be sent only once. A permit is held
 * until the body of the response has been read or cancelled.
 *
 * @example
 * const callOrders = admissionFetch(createAdmission({ name: "orders", retry: {} }));
 * const response = await callOrders("http://orders.example/1", { signal });
 */
export function admissionFetch(admission: Admission, options: FetchOptions = {}): typeof fetch {
  const { fetch: send = fetch, optionsOf } = options;
  const hold = holdOptions(admission, options);
  const call: typeof fetch = async (input, init) => {
    // `init` may be a Request. A copy of an object would lose its inherited properties.
    if (init instanceof Request) return call(new Request(input, init));
    const request = input instanceof Request ? input : undefined;
    const headers = new Headers(init?.headers ?? request?.headers);
    const signal = init?.signal === undefined ? request?.signal : (init.signal ?? undefined);
    const asked = optionsOf?.(input, init) ?? {};
    const { isIdempotent, outcome } = repetitionOf({
      method: init?.method ?? request?.method ?? "GET",
      body: init?.body ?? request?.body ?? undefined,
      hasIdempotencyKey: headers.has(idempotencyKeyHeader),
      isIdempotent: asked.isIdempotent,
    });
    return admission.run(
      async (attempt) => {
        const sent = new Headers(headers);
        for (const [name, value] of Object.entries(attempt.headers)) sent.set(name, value);
        const response = await send(input, { ...init, headers: sent, signal: attempt.signal });
        return heldResponse(response, attempt, hold);
      },
      {
        ...asked,
        isIdempotent,
        ...(signal && { signal }),
        classify: (settled) =>
          outcome(
            settled.isError
              ? httpErrorOutcome(settled.error)
              : responseOutcome(settled.value, admission.clock),
          ),
      },
    );
  };
  return call;
}

function responseOutcome({ status, headers }: Response, clock: Clock): AttemptOutcome {
  const header = (name: string): string | undefined => headers.get(name) ?? undefined;
  return httpOutcome({ status, header }, clock.epochUs() / 1_000);
}

/** Returns the response and holds its permit until its body ends. Chunks pass unchanged. */
function heldResponse(response: Response, attempt: Attempt, options: HoldOptions): Response {
  const { body } = response;
  if (!body) return response;
  const hold = new PermitHold(attempt, options);
  const reader = body.getReader();
  reader.closed.then(hold.end, hold.end);
  hold.rested();
  const watched = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      hold.asked();
      let chunk = await reader.read();
      // A byte stream does not accept an empty chunk.
      while (!chunk.done && chunk.value.byteLength === 0) chunk = await reader.read();
      hold.rested();
      if (!chunk.done) return controller.enqueue(chunk.value);
      controller.close();
      // A read into the reader's own buffer (BYOB) waits for this.
      controller.byobRequest?.respond(0);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, headers } = response;
  return likeResponse(new Response(watched, { status, headers }), response);
}

/** Sets what the constructor of a response cannot set, or not to every value a service may send. */
function likeResponse(response: Response, original: Response): Response {
  const { url, redirected, type, statusText } = original;
  return Object.defineProperties(response, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    statusText: { value: statusText },
    clone: { value: () => likeResponse(Response.prototype.clone.call(response), original) },
  });
}
