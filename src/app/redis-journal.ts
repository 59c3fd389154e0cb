import { clusterNodesMax } from "../store/redis/cluster-topology.js";
import type { RedisEvent } from "../store/redis/redis-connection.js";
import type { Logger } from "./logger.js";
import { remedyOf } from "./store-remedies.js";

/** Connections that are known to fail: some to each node of the largest cluster. */
export const failuresMax = 4 * clusterNodesMax;

/**
 * Logs what happens to the connections to one Redis, of one server or many: each outage once a
 * connection and cause, however often it is retried, with what to do next. Knows whether any is
 * left to decide over.
 */
export class RedisJournal {
  readonly #logger: Logger;
  /** By role and address: what was said of a connection since it was well. */
  readonly #failures = new Map<string, Set<string>>();
  /** Addresses with a connection for decisions. */
  readonly #deciding = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Whether no server can be asked for a decision. */
  get isAway(): boolean {
    return this.#deciding.size === 0;
  }

  /** @param address of the server, without credentials */
  note(event: RedisEvent, address: string): void {
    const { kind, ...facts } = event;
    const line = { event: kind, address, ...facts };
    const connection = `${event.role} ${address}`;
    if (event.kind === "redisRetrying") {
      this.#logger.debug(line, "Connecting to Redis again.");
      return;
    }
    if (event.role === "decision") {
      if (event.kind === "redisConnected") this.#deciding.add(address);
      else this.#deciding.delete(address);
    }
    if (event.kind === "redisConnected" || event.kind === "redisClosed") {
      this.#failures.delete(connection);
      if (event.kind === "redisConnected") this.#logger.info(line, "Connected to Redis.");
      return;
    }
    const said = this.#failures.get(connection) ?? new Set();
    const isNew = event.kind === "redisFailed" ? !said.has(event.code) : said.size === 0;
    // Addresses that sentinels name have no end of their own.
    if (this.#failures.size >= failuresMax) this.#failures.clear();
    this.#failures.set(connection, said.add(event.kind === "redisFailed" ? event.code : kind));
    if (!isNew) {
      this.#logger.debug(line, "The connection to Redis failed again.");
      return;
    }
    const remedy = event.kind === "redisFailed" ? remedyOf(event.code) : undefined;
    this.#logger.warn({ ...line, remedy }, "The connection to Redis failed; it is tried again.");
  }
}
