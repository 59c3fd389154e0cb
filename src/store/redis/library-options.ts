import type { ConnectionOptions } from "node:tls";
import type { RedisOptions } from "ioredis";
import { isReadOnlyReply } from "./redis-error.js";
import type { RedisTarget } from "./target.js";

/** To whom we connect, and as whom. */
export interface ConnectionIdentity {
  readonly target: RedisTarget;
  readonly tls?: ConnectionOptions;
  readonly clientName: string;
  readonly role: string;
}

/** The longest a TCP connect and TLS handshake may take. */
const connectMsMax = 1_000;

/** How long a closed socket may linger before it is destroyed. */
const lingerMs = 100;

/**
 * Every option of the client library that matters to us, spelled out.
 *
 * @param nextDelayMs the wait before the next attempt to connect
 */
export function libraryOptions(
  { target, tls, role, clientName }: ConnectionIdentity,
  nextDelayMs: () => number,
): RedisOptions & { readonly replyMapping: "legacy" } {
  const { address } = target;
  const place =
    address.kind === "unix"
      ? { path: address.path }
      : { host: address.host, port: address.port, family: 0 };
  return {
    ...place,
    ...(address.kind === "tcp" && address.isTls
      ? { tls: { ...serverName(address.host), ...tls } }
      : {}),
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
    connectTimeout: connectMsMax,
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

/** What SNI asks for; addresses have no names. */
function serverName(host: string): ConnectionOptions {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}
