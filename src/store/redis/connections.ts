import type { Clock, Random } from "../../core/base/clock.js";
import type { Dial, TlsSource } from "./dial.js";
import { PatientConnection } from "./patient-connection.js";
import { RedisConnection, type RedisEvent } from "./redis-connection.js";
import type { StoreConnection } from "./scripts/connection.js";
import type { RedisLogin } from "./target.js";

/** Options of `openRedis`. */
export interface OpenRedisOptions {
  /** From `parseRedisTarget`. */
  readonly target: RedisLogin & Pick<Dial, "address">;
  /** TLS settings such as CAs and a client certificate, if the target uses TLS. */
  readonly tls?: TlsSource;
  /** Whether to disconnect at once from a server that reports it is no primary. Default: false. */
  readonly isPrimaryOnly?: boolean;
  /** Maximum wait of one call, whatever its deadline. Default and maximum: a minute. */
  readonly timeoutMs?: number;
  /** How long a server that owes a reply may be silent. Default: `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** Name of the connections in CLIENT LIST, without blanks. Default: `headgate`. */
  readonly clientName?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: (event: RedisEvent) => void;
}

/** One connection for each kind of work, so that no kind waits for another. */
export interface RedisConnections {
  /** Never repeats a call, and fails at once while there is no connection. */
  readonly decision: StoreConnection;
  /**
   * The same connection, for calls that may run twice and can wait, such as the check at start.
   */
  readonly decisionPatiently: StoreConnection;
  /** For messages between replicas. Waits and repeats until the deadline. */
  readonly fleet: StoreConnection;
  /**
   * For users' requests (inspect, forget) and large data (reports and snapshots of the fleet).
   * Waits and repeats until the deadline.
   */
  readonly background: StoreConnection;
  /** Closes all connections. Calls in flight reject with STORE_CLOSED. */
  close(): Promise<void>;
}

/** The connections to one server. They can reconnect if the server's address has changed. */
interface ServerConnections extends RedisConnections {
  /** Drops all connections and reconnects. Calls in flight fail, and may have run. */
  reconnect(): void;
}

/**
 * Maximum number of batches with an outstanding reply, including late ones. A store that hangs
 * reaches this long before memory runs short: 64 batches of 512 charges are 6 MB.
 */
export const batchesInFlightMax = 64;

/** The same for fleet calls and for background calls. */
export const waitingCallsInFlightMax = 16;

/**
 * Maximum wait before the decision connection reconnects. It is shorter than for the others, so
 * that decisions recover within a second after the server does.
 */
export const decisionReconnectMsMax = 500;
/** Maximum wait before the other connections reconnect. */
export const reconnectMsMax = 2_000;

/** Connects at once and reconnects until `close`. Never rejects and never throws. */
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
