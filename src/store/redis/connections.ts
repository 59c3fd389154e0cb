import type { Clock, Random } from "../../core/base/clock.js";
import type { Dial, TlsSource } from "./dial.js";
import { PatientConnection } from "./patient-connection.js";
import { RedisConnection, type RedisEvent } from "./redis-connection.js";
import type { StoreConnection } from "./scripts/connection.js";
import type { RedisLogin } from "./target.js";

/** What `openRedis` needs. */
export interface OpenRedisOptions {
  /** From `parseRedisTarget`. */
  readonly target: RedisLogin & Pick<Dial, "address">;
  /** Certificate authorities, a client certificate and the like, when the target speaks TLS. */
  readonly tls?: TlsSource;
  /** Whether a server that says it is no primary is left at once. Default false. */
  readonly isPrimaryOnly?: boolean;
  /** The longest that one call waits, whatever its deadline. Default and most: a minute. */
  readonly timeoutMs?: number;
  /** How long a server may be silent that owes a reply. Default `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** How CLIENT LIST shows our connections: no blanks. Default `headgate`. */
  readonly clientName?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: (event: RedisEvent) => void;
}

/** One connection for each kind of work, so that none of them waits behind another. */
export interface RedisConnections {
  /** Never repeats a call, and fails at once while there is no connection. */
  readonly decision: StoreConnection;
  /**
   * The same connection, for calls that may run twice and can wait; to check the store at start.
   */
  readonly decisionPatiently: StoreConnection;
  /** For what replicas tell each other: waits and repeats until the deadline. */
  readonly fleet: StoreConnection;
  /**
   * For what people ask (inspect, forget) and for what is large (reports and snapshots of the
   * fleet): waits and repeats until the deadline.
   */
  readonly background: StoreConnection;
  /** Ends all of them; calls in flight reject with STORE_CLOSED. */
  close(): Promise<void>;
}

/** The connections to one server that may be told that it is elsewhere. */
interface ServerConnections extends RedisConnections {
  /** Drops all connections and makes them anew; what is in flight fails, and may have run. */
  reconnect(): void;
}

/**
 * Batches whose reply is outstanding, late ones included. A store that stands still is noticed here
 * long before memory is: 64 batches of 512 charges are 6 MB.
 */
export const batchesInFlightMax = 64;

/** The same for fleet and for background calls. */
export const waitingCallsInFlightMax = 16;

/**
 * Decisions are well again within a second after the server is: they reconnect at a quicker pace.
 */
export const decisionReconnectMsMax = 500;
/** The longest wait before the others reconnect. */
export const reconnectMsMax = 2_000;

/** Connects at once and keeps reconnecting until `close`; never rejects and never throws. */
export function openRedis(options: OpenRedisOptions): ServerConnections {
  const { clock, random } = options;
  const common = { ...options, clientName: options.clientName ?? "headgate" };
  const waiting = { ...common, callsInFlightMax: waitingCallsInFlightMax, reconnectMsMax };
  const decision = new RedisConnection({
    ...common,
    role: "decision",
    callsInFlightMax: batchesInFlightMax,
    reconnectMsMax: decisionReconnectMsMax,
  });
  const fleet = new RedisConnection({ ...waiting, role: "fleet" });
  const background = new RedisConnection({ ...waiting, role: "background" });
  const patiently = (connection: StoreConnection): PatientConnection =>
    new PatientConnection({ connection, clock, random });
  const patient = {
    decisionPatiently: patiently(decision),
    fleet: patiently(fleet),
    background: patiently(background),
  };
  const close = async (): Promise<void> => {
    for (const connection of [decision, fleet, background]) connection.close();
    for (const connection of Object.values(patient)) connection.wake();
  };
  const reconnect = (): void => {
    for (const connection of [decision, fleet, background]) connection.reconnect();
  };
  return { decision, ...patient, reconnect, close };
}
