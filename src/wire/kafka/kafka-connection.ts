import type { Duplex } from "node:stream";
import { ServiceError, toServiceError } from "../../core/base/errors.js";
import type { KafkaApi } from "./kafka-apis.js";
import { KafkaFields, KafkaOutput, malformed } from "./kafka-fields.js";
import { type FrameBounds, KafkaFrames } from "./kafka-frames.js";
import { kafkaWaitingMax } from "./kafka-limits.js";

interface KafkaConnectionParts {
  /** A socket that is connected, or secured; the connection destroys it. */
  readonly stream: Duplex;
  /** Describes a failure without the address. */
  readonly describe: (error: Error) => ServiceError;
}

interface WaitingRequest extends FrameBounds {
  readonly id: number;
  take(fields: KafkaFields): void;
  fail(failure: ServiceError): void;
}

/**
 * A connection to one broker. Requests may be sent before earlier ones are answered; a broker
 * answers in their order. Responses that cannot be assigned end the connection. The caller limits
 * the time with `destroy`.
 */
export class KafkaConnection {
  readonly #stream: Duplex;
  readonly #frames = new KafkaFrames();
  #waiting: WaitingRequest[] = [];
  #correlationId = 0;
  #failure: ServiceError | undefined;

  constructor({ stream, describe }: KafkaConnectionParts) {
    this.#stream = stream;
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", (error) => this.destroy(describe(error)));
    const ended = "The broker closed the connection.";
    stream.on("end", () => this.destroy(new ServiceError("SIGNAL_UNAVAILABLE", ended)));
    stream.on("close", () => this.destroy(new ServiceError("SIGNAL_UNAVAILABLE", ended)));
  }

  /**
   * Sends a request and resolves with its response.
   *
   * @throws ServiceError SIGNAL_UNAVAILABLE, SIGNAL_REFUSED, SIGNAL_MALFORMED, SIGNAL_TOO_LARGE,
   *   SIGNAL_EMPTY, or that of `destroy`
   */
  ask<Request, Answer>(api: KafkaApi<Request, Answer>, request: Request): Promise<Answer> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#waiting.length >= kafkaWaitingMax) {
      return Promise.reject(new ServiceError("SIGNAL_TOO_LARGE"));
    }
    const id = this.#correlationId;
    this.#correlationId += 1;
    const output = new KafkaOutput();
    output.int16(api.key).int16(api.version).int32(id).text("headgate");
    api.encode(request, output);
    this.#stream.write(new KafkaOutput().bytes(output.whole()).whole());
    return new Promise((resolve, reject) => {
      const { bytesMax, keptBytesMax } = api;
      const take = (fields: KafkaFields): void => resolve(api.decode(fields));
      this.#waiting.push({ id, bytesMax, keptBytesMax, take, fail: reject });
    });
  }

  /** Ends the connection. Requests without an answer fail with the first failure that is given. */
  destroy(failure: ServiceError): void {
    this.#failure ??= failure;
    this.#stream.destroy();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const request of waiting) request.fail(this.#failure);
  }

  #receive(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    try {
      this.#frames.add(
        chunk,
        () => this.#waiting[0],
        (frame) => this.#take(frame),
      );
    } catch (thrown) {
      this.destroy(toServiceError(thrown));
    }
  }

  #take(frame: Buffer): void {
    const fields = new KafkaFields(frame);
    const [request] = this.#waiting;
    if (fields.int32() !== request?.id) malformed();
    this.#waiting.shift();
    try {
      request.take(fields);
    } catch (thrown) {
      request.fail(toServiceError(thrown));
    }
  }
}
