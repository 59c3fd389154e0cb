import type { Duplex } from "node:stream";
import type { Random } from "../../core/base/clock.js";
import { type Peer, unknownPeer } from "../../core/base/peer.js";
import type { Http2ErrorCode } from "../base/http2-error.js";
import { OutputSlabs } from "../base/output-buffer.js";
import { type ConnectionEnd, Http2Connection } from "../http2/http2-connection.js";
import type { NativeServerParts } from "./grpc-context.js";
import { NativeServer } from "./native-server.js";

/** Dependencies and settings of a `NativeTransport`. */
export interface NativeTransportParts extends NativeServerParts {
  readonly random: Random;
  /** Age at which a connection is asked to close, plus or minus 10 %. Default a day. */
  readonly connectionAgeMsMax: number;
  /** How long calls on such a connection may continue. Default an hour. */
  readonly connectionAgeGraceMs: number;
  /** Runs a function after the current one, and before anything is read: see `Http2Connection`. */
  readonly scheduleFlush: (run: () => void) => void;
  /** Called with the reason when a connection has ended. */
  readonly onConnectionEnd?: (end: ConnectionEnd) => void;
  /** Called for each stream that was reset because its client broke a rule or exceeded a limit. */
  readonly onStreamError?: (code: Http2ErrorCode) => void;
}

/** A connection as a stream of bytes: a socket, or the stream that replaces a secured one. */
export type Connection = Duplex & { readonly bytesWritten: number };

/** Serves `ServiceHandlers` on its own HTTP/2. It opens no port: sockets are passed to it. */
export class NativeTransport {
  readonly #parts: NativeTransportParts;
  readonly #server: NativeServer;
  readonly #connections = new Set<Http2Connection>();
  readonly #slabs = new OutputSlabs();
  #isClosing = false;
  #whenEmpty: (() => void) | undefined;

  constructor(parts: NativeTransportParts) {
    this.#parts = parts;
    this.#server = new NativeServer(parts);
  }

  /** Number of open connections. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /**
   * Serves one connection until its end.
   *
   * @param peer the peer at its other end. Default `unknownPeer`
   */
  accept(socket: Connection, peer: Peer = unknownPeer): void {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    const { clock, random, scheduleFlush, onBug, onConnectionEnd, onStreamError } = this.#parts;
    const connection = new Http2Connection(socket, {
      acceptor: this.#server.openConnection(peer),
      events: {
        onEnd: (end) => {
          this.#forget(connection);
          onConnectionEnd?.(end);
        },
        onStreamError: (code) => onStreamError?.(code),
        onBug,
      },
      clock,
      random,
      scheduleFlush,
      slabs: this.#slabs,
      ageMsMax: this.#parts.connectionAgeMsMax,
      ageGraceMs: this.#parts.connectionAgeGraceMs,
    });
    this.#connections.add(connection);
  }

  /**
   * First step of a graceful shutdown: clients are told to close, and what they have sent until
   * then is still served. Resolves when all know, or after `waitMs`.
   */
  async announceClose(waitMs: number): Promise<void> {
    const known = [...this.#connections].map(
      (connection) => new Promise<void>((resolve) => connection.leave(resolve)),
    );
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#parts.clock.schedule(waitMs, resolve);
    });
    await Promise.race([Promise.all(known), late]);
    cancel();
  }

  /**
   * Second step: no new calls are accepted. Those in flight may finish for `graceMs`, then
   * connections are cut. Resolves to whether all ended by themselves.
   */
  async close(graceMs: number): Promise<boolean> {
    this.#isClosing = true;
    this.#server.close();
    for (const connection of [...this.#connections]) connection.leave(ignore);
    if (this.#connections.size === 0) return true;
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.schedule(graceMs, () => {
        this.#whenEmpty = undefined;
        for (const connection of [...this.#connections]) connection.destroy();
        resolve(false);
      });
      this.#whenEmpty = () => {
        cancel();
        resolve(true);
      };
    });
  }

  #forget(connection: Http2Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#whenEmpty?.();
  }
}

/** Used if no caller waits until a connection leaves. */
function ignore(): void {}
