import { RedisServer, type RedisServerOptions } from "./redis-server.js";
import type { Stage } from "./stage.js";

/** Starts a Redis that ends with the stage. */
export async function startRedis(
  stage: Stage,
  options: Partial<RedisServerOptions> = {},
): Promise<RedisServer> {
  const server = await RedisServer.start({ engine: "redis", ...options });
  stage.atEnd(() => server.stop());
  return server;
}

/** The settings of a Headgate that keeps its limits there. */
export function redisEnv(port: number): Readonly<Record<string, string>> {
  return {
    BACKEND_TYPE: "redis",
    REDIS_URL: `redis://127.0.0.1:${port}`,
  };
}
