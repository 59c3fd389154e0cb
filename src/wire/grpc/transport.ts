import type { Duplex } from "node:stream";
import type { Peer } from "../../core/base/peer.js";

/** A connection as a stream of bytes: a socket, or what stands for a secured one. */
export type Connection = Duplex & { readonly bytesWritten: number };

/**
 * Serves gRPC on connections that somebody else accepts. There are two, our own and that of a
 * library; one suite of tests holds them to the same behaviour.
 */
export interface Transport {
  /**
   * Serves one connection, from now to its end.
   *
   * @param peer who is at its other end. Default `unknownPeer`
   */
  accept(connection: Connection, peer?: Peer): void;
  /**
   * First step of a graceful end: clients learn that they should go, and what they have sent until
   * then is still served. Resolves when all know, or after `waitMs`.
   */
  announceClose(waitMs: number): Promise<void>;
  /**
   * Second step: no new calls; those in flight may finish for `graceMs`, then connections are cut.
   * Answers whether all ended by themselves.
   */
  close(graceMs: number): Promise<boolean>;
}
