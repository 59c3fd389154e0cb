import type { Duplex } from "node:stream";
import type { Random } from "../../core/base/clock.js";
import { type Peer, unknownPeer } from "../../core/base/peer.js";
import type { Http2ErrorCode } from "../base/http2-error.js";
import { OutputSlabs } from "../base/output-buffer.js";
import { type ConnectionEnd, Http2Connection } from "../http2/http2-connection.js";
import type { NativeServerParts } from "./grpc-context.js";
import { NativeServer } from "./native-server.js";

/** What a `NativeTransport` is made of. */
export interface NativeTransportParts extends NativeServerParts {
  readonly random: Random;
  /** Age at which a connection is asked to go, plus or minus 10 %. Default a day. */
  readonly connectionAgeMsMax: number;
  /** How long calls on such a connection may still take. Default an hour. */
  readonly connectionAgeGraceMs: number;
  /** Runs a function after what runs now, and before anything is read: see `Http2Connection`. */
  readonly scheduleFlush: (run: () => void) => void;
  /** Told how each connection ended. */
  readonly onConnectionEnd?: (end: ConnectionEnd) => void;
  /** Told of each stream that was reset because its client broke a rule or passed a bound. */
  readonly onStreamError?: (code: Http2ErrorCode) => void;
}

/** A connection as a stream of bytes: a socket, or what stands for a secured one. */
export type Connection = Duplex & { readonly bytesWritten: number };

/** Serves `ServiceHandlers` on our own HTTP/2. It opens no port: sockets are handed to it. */
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

  /** Connections that are open. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /**
   * Serves one connection, from now to its end.
   *
   * @param peer who is at its other end. Default `unknownPeer`
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
   * First step of a graceful end: clients learn that they should go, and what they have sent until
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
   * Second step: no new calls; those in flight may finish for `graceMs`, then connections are cut.
   * Answers whether all ended by themselves.
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

/** Who is told that a connection leaves, where nobody waits for that. */
function ignore(): void {}
