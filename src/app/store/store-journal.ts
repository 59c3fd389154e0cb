import type { Clock } from "../../core/base/clock.js";
import { clusterNodesMax } from "../../store/redis/cluster/cluster-topology.js";
import type { RedisEvent } from "../../store/redis/redis-connection.js";
import type { LogEvent, Logger } from "../base/logger.js";
import { remedyOf } from "./store-remedies.js";

/** Maximum number of connections that are remembered: some to each node of the largest cluster. */
export const journalConnectionsMax = 4 * clusterNodesMax;

/** Time that a connection must work, in milliseconds, before its next event is logged again. */
export const newsAfterMs = 10_000;

/** Connections for decisions to one Redis, with one server or many. */
export interface ConnectionCounts {
  readonly activeCount: number;
  /** All connections that were ever opened. */
  readonly openedCount: number;
}

/** Connections for decisions to one Redis. */
export interface StorePool {
  readonly name: "redis_pool" | "redis_per_second_pool";
  readonly counts: ConnectionCounts;
}

interface StoreJournalParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly region?: string | undefined;
}

/** State of the log about one connection. */
interface Entry {
  readonly said: Set<string>;
  connectedMs: number;
  isWell: boolean;
}

/**
 * Logs events of the connections to one Redis, with one server or many: each outage once for each
 * connection and cause, with a remedy, however often it is retried and however briefly it worked in
 * between. Knows whether any server is left for decisions.
 */
export class StoreJournal {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #region: string | undefined;
  /** By role and address. */
  readonly #entries = new Map<string, Entry>();
  /** Addresses with a connection for decisions. */
  readonly #deciding = new Set<string>();
  #openedCount = 0;

  /** @param parts.region of the Redis, if it is another region's */
  constructor({ logger, clock, region }: StoreJournalParts) {
    this.#logger = logger;
    this.#clock = clock;
    this.#region = region;
  }

  /** Whether no server is connected for decisions. */
  get isAway(): boolean {
    return this.#deciding.size === 0;
  }

  /** Connections for decisions, open now and opened ever. */
  get counts(): ConnectionCounts {
    return { activeCount: this.#deciding.size, openedCount: this.#openedCount };
  }

  /** @param address of the server, without credentials */
  note(event: RedisEvent, address: string): void {
    const { kind, ...facts } = event;
    const where = this.#region === undefined ? {} : { region: this.#region };
    const line = { event: kind, address, ...where, ...facts };
    const connection = `${event.role} ${address}`;
    if (event.role === "decision" && event.kind !== "redisRetrying") {
      if (event.kind !== "redisConnected") this.#deciding.delete(address);
      else if (!this.#deciding.has(address)) {
        this.#deciding.add(address);
        this.#openedCount += 1;
      }
    }
    switch (event.kind) {
      case "redisRetrying":
        this.#logger.debug(line, "Reconnecting to Redis.");
        return;
      case "redisClosed":
        this.#entries.delete(connection);
        return;
      case "redisConnected":
        this.#noteConnected(this.#entryOf(connection), line);
        return;
      default:
        this.#noteFailure(this.#entryOf(connection), event, line);
    }
  }

  #noteConnected(entry: Entry, line: LogEvent): void {
    const nowMs = this.#clock.monotonicMs();
    const isNew = nowMs - entry.connectedMs >= newsAfterMs;
    entry.connectedMs = nowMs;
    entry.isWell = true;
    if (isNew) this.#logger.info(line, "Connected to Redis.");
    else this.#logger.debug(line, "Reconnected to Redis.");
  }

  #noteFailure(
    entry: Entry,
    event: Extract<RedisEvent, { kind: "redisFailed" | "redisLost" }>,
    line: LogEvent,
  ): void {
    const { said } = entry;
    const wellMs = entry.isWell ? this.#clock.monotonicMs() - entry.connectedMs : 0;
    if (wellMs >= newsAfterMs) said.clear();
    entry.isWell = false;
    const cause = event.kind === "redisFailed" ? event.code : event.kind;
    // A loss adds nothing to a reason that was already logged.
    const isNew = event.kind === "redisFailed" ? !said.has(cause) : said.size === 0;
    said.add(cause);
    if (!isNew) {
      this.#logger.debug(line, "The connection to Redis failed again.");
      return;
    }
    const ownRemedy = event.kind === "redisFailed" ? remedyOf(event.code) : undefined;
    const remedy =
      this.#region === undefined
        ? ownRemedy
        : ownRemedy?.replaceAll("REDIS_URL", "its entry of HEADGATE_REGION_STORES");
    this.#logger.warn({ ...line, remedy }, "The connection to Redis failed; retrying.");
  }

  #entryOf(connection: string): Entry {
    const found = this.#entries.get(connection);
    if (found !== undefined) return found;
    // Addresses named by sentinels never end explicitly.
    if (this.#entries.size >= journalConnectionsMax) this.#entries.clear();
    const entry: Entry = {
      said: new Set(),
      connectedMs: Number.NEGATIVE_INFINITY,
      isWell: false,
    };
    this.#entries.set(connection, entry);
    return entry;
  }
}
