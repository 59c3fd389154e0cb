import type { Duplex } from "node:stream";
import type { Clock } from "../../core/base/clock.js";
import { type AnswersCommands, RespConnection } from "./resp-connection.js";

interface RespServerParts {
  readonly clock: Clock;
  /** Creates the session of a connection. */
  readonly createSession: () => AnswersCommands;
  /** Runs a callback when this turn has begun all that it can. */
  readonly scheduleFlush: (run: () => void) => void;
  readonly onBug: (thrown: unknown) => void;
}

/** Serves RESP on connections that something else accepts. */
export class RespServer {
  readonly #parts: RespServerParts;
  readonly #connections = new Set<RespConnection>();
  #whenEmpty: (() => void) | undefined;

  constructor(parts: RespServerParts) {
    this.#parts = parts;
  }

  /** Number of open connections. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Serves a half-open connection, so that a client that has sent all still gets its replies. */
  accept(stream: Duplex): void {
    const { clock, createSession, scheduleFlush, onBug } = this.#parts;
    const connection: RespConnection = new RespConnection({
      stream,
      clock,
      answer: createSession(),
      scheduleFlush,
      onBug,
      onEnd: () => {
        this.#connections.delete(connection);
        if (this.#connections.size === 0) this.#whenEmpty?.();
      },
    });
    this.#connections.add(connection);
  }

  /**
   * Ends connections when the commands that they have sent are answered, and cuts them after
   * `graceMs`. Resolves to whether all ended by themselves.
   */
  close(graceMs: number): Promise<boolean> {
    for (const connection of this.#connections) connection.leave();
    if (this.#connections.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.schedule(graceMs, () => {
        this.#whenEmpty = undefined;
        for (const connection of this.#connections) connection.destroy();
        resolve(false);
      });
      this.#whenEmpty = () => {
        cancel();
        resolve(true);
      };
    });
  }
}
