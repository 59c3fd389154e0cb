import type { RedisEngine } from "./redis-server.js";

const both: readonly RedisEngine[] = ["redis", "valkey"];
const redis: readonly RedisEngine[] = ["redis"];

/**
 * The servers that a suite of the Redis store runs on, by what it is about. Everything is held
 * against Redis. Valkey has its own say where the server does the work; what we make of its answers
 * is the same on both, and is not looked at twice.
 */
export const enginesFor = {
  /** How they are loaded, run by digest and forgotten; their arithmetic and packed replies. */
  scripts: both,
  /** What an ACL user may do. Here each of our scripts runs once on either server. */
  rights: both,
  /** Slots that move, redirections, and replicas that take over. */
  cluster: both,
  /** When a key goes by itself. */
  expiry: both,
  /** The words by which a server that is full, loads, or is a replica says no. */
  refusals: both,
  /** What Headgate does with its keys, its replies and its connections. */
  behaviour: redis,
} as const;

/** Of so many random histories Redis is asked all, another server a fifth. */
export function historiesOn(engine: RedisEngine, count: number): number {
  return engine === "redis" ? count : count / 5;
}
