import {
  type OpenRedisOptions,
  openRedis,
  type RedisConnections,
  reconnectMsMax,
} from "../connections.js";
import { RedisConnection, type RedisEvent } from "../redis-connection.js";
import type { HostPort, SentinelTarget } from "../target.js";
import { SentinelWatch } from "./sentinel-watch.js";

interface OpenSentinelOptions
  extends Omit<OpenRedisOptions, "target" | "onEvent" | "isPrimaryOnly"> {
  /** From `parseSentinelTarget`. */
  readonly target: SentinelTarget;
  /** Receives the events of the connections, including those to the sentinels. */
  readonly onEvent: (event: RedisEvent, place: HostPort | undefined) => void;
}

/** Two questions of the current poll, and those of an earlier poll that timed out. */
const questionsInFlightMax = 8;

/**
 * Opens connections like those of `openRedis` to the primary that the sentinels report. If they
 * report another one, all connections are made again. So is a connection that leads to a replica.
 *
 * Connects at once and reconnects until `close`. Never rejects and never throws.
 */
export function openRedisSentinel(options: OpenSentinelOptions): RedisConnections {
  const { target, clock, onEvent } = options;
  const { primaryName, sentinels, isTls, sentinelLogin: _, ...login } = target;
  const links = sentinels.map((place) => {
    // The first poll runs before any sentinel is connected.
    return openSentinel(options, { place, onConnected: () => watch.doubt() });
  });
  const watch = new SentinelWatch({
    primaryName,
    sentinels: links.map((link) => (words, deadlineMs) => link.sentinel(words, deadlineMs)),
    clock,
    onMoved: () => connections.reconnect(),
  });
  let found: HostPort | undefined;
  const find = async (): Promise<HostPort> => {
    found = await watch.find();
    return found;
  };
  const connections = openRedis({
    ...options,
    target: { ...login, address: { kind: "moving", isTls, find } },
    isPrimaryOnly: true,
    onEvent: (event) => {
      if (event.kind === "redisLost" || event.kind === "redisFailed") watch.doubt();
      onEvent(event, found);
    },
  });
  const close = async (): Promise<void> => {
    watch.close();
    for (const link of links) link.close();
    await connections.close();
  };
  return { ...connections, close };
}

function openSentinel(
  {
    target,
    clientName = "headgate",
    tls,
    silenceMsMax,
    clock,
    random,
    onEvent,
  }: OpenSentinelOptions,
  { place, onConnected }: { readonly place: HostPort; readonly onConnected: () => void },
): RedisConnection {
  const { sentinelLogin, isTls } = target;
  return new RedisConnection({
    role: "sentinel",
    target: { ...sentinelLogin, database: 0, address: { kind: "tcp", ...place, isTls } },
    ...(tls === undefined ? {} : { tls }),
    ...(silenceMsMax === undefined ? {} : { silenceMsMax }),
    clientName,
    callsInFlightMax: questionsInFlightMax,
    reconnectMsMax,
    clock,
    random,
    onEvent: (event) => {
      if (event.kind === "redisConnected") onConnected();
      onEvent(event, place);
    },
  });
}
