import type { ServerHttp2Session } from "node:http2";
import type { ConnectionInjector, Server } from "@grpc/grpc-js";
import type { Clock } from "../../core/base/clock.js";

/** A connection as the transport takes it: a socket, or a stream that stands for a secured one. */
export type Connection = Parameters<ConnectionInjector["injectConnection"]>[0] & {
  readonly bytesWritten: number;
};

/** The connections of a server that is about to stop. */
export interface LeavingClients {
  readonly sockets: Iterable<Connection>;
  readonly sessions: readonly ServerHttp2Session[];
}

/**
 * Asks clients to open no more streams here, and waits until each has answered a ping sent after
 * that: frames arrive in order, so by then every stream it opened before it knew has arrived.
 *
 * A server that closes at once answers nothing to what was on its way, and the proxy in front would
 * fail those requests. Resolves after `waitMs` at the latest.
 */
export async function tellClientsToLeave(
  { sockets, sessions }: LeavingClients,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<void> {
  for (const socket of sockets) askToLeave(socket);
  let cancel = (): void => {};
  const late = new Promise<void>((resolve) => {
    cancel = clock.schedule(waitMs, resolve);
  });
  await Promise.race([Promise.all(sessions.map(pingAnswer)), late]);
  cancel();
}

/**
 * Asks one client to open no more streams; those it has opened, until it knows, are served. It is
 * the client that closes the connection when they have ended.
 *
 * Written past the session, to the socket: when the session itself sends a GOAWAY while no stream
 * is open, Node stops reading from the connection, and what was on its way is never answered. Each
 * write of a session ends with a whole frame, so this one falls between two.
 *
 * Only where it leaves at once: when a write of ours has to wait below HTTP/2, Node takes its end
 * for that of a session's write, and aborts the process. A client that does not read what it has
 * asked for is therefore not told, and cut after the grace.
 */
export function askToLeave(socket: Connection): void {
  // Before our SETTINGS nothing else may be sent; that client has no stream anyway.
  if (socket.bytesWritten === 0 || !socket.writable || unsentBytes(socket) > 0) return;
  socket.write(goawayFrame());
}

/** Bytes below HTTP/2 that the client has not made room for; a private field, read with doubt. */
function unsentBytes(socket: Connection): number {
  const handle: unknown = Reflect.get(socket, "_handle");
  const size: unknown = Reflect.get(Object(handle), "writeQueueSize");
  return typeof size === "number" ? size : 0;
}

/**
 * GOAWAY without an error and with the highest stream number there is: every stream that was opened
 * is served. Source: RFC 9113, sections 4.1, 6.8.
 */
function goawayFrame(): Buffer {
  const frame = Buffer.alloc(17);
  frame.writeUIntBE(8, 0, 3);
  frame.writeUInt8(7, 3);
  frame.writeUInt32BE(2 ** 31 - 1, 9);
  return frame;
}

/** Resolves when the client has answered a ping, or is gone. */
function pingAnswer(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    if (session.closed || session.destroyed) {
      resolve();
      return;
    }
    session.once("close", resolve);
    try {
      if (!session.ping(() => resolve())) resolve();
    } catch {
      // The session ended between the check and here: nobody is left to answer.
      resolve();
    }
  });
}

/**
 * The sessions of a grpc-js server. The library keeps them in a private field and offers no
 * two-step end, so the field is read with doubt: what does not look as expected is left out, and
 * then nobody is waited for.
 */
export function openSessions(server: Server): readonly ServerHttp2Session[] {
  const servers: unknown = Reflect.get(server, "http2Servers");
  if (!(servers instanceof Map)) return [];
  const sessions: ServerHttp2Session[] = [];
  for (const entry of servers.values()) {
    const known: unknown = Reflect.get(Object(entry), "sessions");
    if (known instanceof Set) sessions.push(...[...known].filter(isSession));
  }
  return sessions;
}

function isSession(value: unknown): value is ServerHttp2Session {
  return typeof Reflect.get(Object(value), "ping") === "function";
}
