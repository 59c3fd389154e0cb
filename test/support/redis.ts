import { createHash } from "node:crypto";
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

/** The password of users that tests make. */
export const userPassword = "a password of a test";

/** The words of an ACL command as we hand it out, with a password's digest where one belongs. */
export function withPassword(command: string): readonly [string, ...string[]] {
  const digest = createHash("sha256").update(userPassword).digest("hex");
  const [first = "", ...words] = command.replace("SHA256_OF_ITS_PASSWORD", digest).split(" ");
  return [first, ...words];
}

/** The settings of a Headgate that keeps its limits there. */
export function redisEnv(port: number): Readonly<Record<string, string>> {
  return {
    BACKEND_TYPE: "redis",
    REDIS_URL: `redis://127.0.0.1:${port}`,
  };
}
