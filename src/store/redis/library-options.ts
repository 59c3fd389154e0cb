import type { RedisOptions } from "ioredis";
import { connectorFor, type Dial, lingerMs, type TlsSource } from "./dial.js";
import { isReadOnlyReply } from "./redis-error.js";
import type { RedisLogin } from "./target.js";

/** To whom we connect, and as whom. */
interface ConnectionIdentity {
  readonly target: RedisLogin & Pick<Dial, "address">;
  readonly tls?: TlsSource;
  readonly clientName: string;
  readonly role: string;
  /** The longest that a call or a connect may take, in milliseconds; a connect also as below. */
  readonly timeoutMs?: number;
}

/**
 * The least and the longest that a TCP connect and TLS handshake may take. A time-out that was
 * meant for calls must not keep a handshake from ever ending.
 */
export const connectMsMin = 100;
/** See `connectMsMin`. */
const connectMsMax = 1_000;

/**
 * Every option of the client library that matters to us, spelled out.
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
    // Only tells the library to wait for the end of the handshake.
    ...(address.kind !== "unix" && address.isTls ? { tls: {} } : {}),
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    db: target.database,
    connectionName: `${clientName}-${role}`,
    // Redis 7.0 does not know CLIENT SETINFO.
    disableClientInfo: true,
    // Our replies are strings and counts, which both protocols say alike; 2 needs no HELLO.
    protocol: 2,
    replyMapping: "legacy",
    lazyConnect: false,
    // The connector has its own, which tells a silent handshake from a host that is not there.
    connectTimeout: 0,
    disconnectTimeout: lingerMs,
    keepAlive: 10_000,
    noDelay: true,
    retryStrategy: nextDelayMs,
    reconnectOnError: isReadOnlyReply,
    // A queue or a repeat would charge at a time of which no caller knows any more.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    autoResubscribe: false,
    // A server that loads answers LOADING to each call by itself, and is well the moment it is
    // done.
    enableReadyCheck: false,
    showFriendlyErrorStack: false,
  };
}
