import type { RedisOptions } from "ioredis";
import { connectorFor, type Dial, lingerMs, type TlsSource } from "./dial.js";
import { isReadOnlyReply } from "./redis-error.js";
import type { RedisLogin } from "./target.js";

/** The target and the identity of a connection. */
interface ConnectionIdentity {
  readonly target: RedisLogin & Pick<Dial, "address">;
  readonly tls?: TlsSource;
  readonly clientName: string;
  readonly role: string;
  /** Maximum duration of a call or a connect, in ms. A connect has the bounds below as well. */
  readonly timeoutMs?: number;
}

/**
 * Bounds of the time-out for a TCP connect and TLS handshake, in milliseconds. A short time-out for
 * calls must not keep every handshake from completing.
 */
export const connectMsMin = 100;
/** See `connectMsMin`. */
const connectMsMax = 1_000;

/**
 * Returns all relevant options of the client library explicitly.
 *
 * @param nextDelayMs the wait before the next attempt to connect
 */
export function libraryOptions(
  { target, tls, role, clientName, timeoutMs = connectMsMax }: ConnectionIdentity,
  nextDelayMs: () => number,
): RedisOptions & { readonly replyMapping: "legacy" } {
  const { address } = target;
  const connectMs = Math.min(Math.max(timeoutMs, connectMsMin), connectMsMax);
  return {
    Connector: connectorFor({ address, connectMs, ...(tls === undefined ? {} : { tls }) }),
    // Only makes the library wait for the end of the handshake.
    ...(address.kind !== "unix" && address.isTls ? { tls: {} } : {}),
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    db: target.database,
    connectionName: `${clientName}-${role}`,
    // Redis 7.0 does not support CLIENT SETINFO.
    disableClientInfo: true,
    // Replies are strings and counts, which both protocols encode alike; 2 needs no HELLO.
    protocol: 2,
    replyMapping: "legacy",
    lazyConnect: false,
    // The connector has its own, which distinguishes a silent handshake from a missing host.
    connectTimeout: 0,
    disconnectTimeout: lingerMs,
    keepAlive: 10_000,
    noDelay: true,
    retryStrategy: nextDelayMs,
    reconnectOnError: isReadOnlyReply,
    // A queued or repeated call would charge at a time when its caller no longer waits.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    autoResubscribe: false,
    // A server that is loading answers each call with LOADING, and works as soon as it is done.
    enableReadyCheck: false,
    showFriendlyErrorStack: false,
  };
}
