import { silentLogger } from "../../src/app/base/logger.js";
import { type Config, loadConfig } from "../../src/app/config/config.js";
import type { OpenStore } from "../../src/app/store/open-store.js";
import { openStore } from "../../src/app/store/store.js";
import { realClock, realRandom } from "./real-clock.js";
import type { Stage } from "./stage.js";

/** Settings by their environment names. */
export type Env = Readonly<Record<string, string>>;

/**
 * Free ports on loopback, and no wait at the end. What runs in the process of a test shares its
 * event loop: where that is busy, requests are not to be refused for it, nor Redis taken for slow.
 */
export const quietEnv: Env = {
  HOST: "127.0.0.1",
  GRPC_HOST: "127.0.0.1",
  PORT: "0",
  GRPC_PORT: "0",
  HEADGATE_ADMIN_ADDR: "127.0.0.1:0",
  HEADGATE_CONTROL_ADDR: "127.0.0.1:0",
  HEADGATE_DRAIN_DELAY_MS: "0",
  HEADGATE_LOOP_DELAY_MS_MAX: "10000",
  HEADGATE_STORE_BUDGET_MS: "1000",
};

/** The configuration that an environment makes; every mistake in it fails the test. */
export function configOf(env: Env): Config {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

/** The store that an environment names, opened as the service does, until the stage's end. */
export async function openConfiguredStore(
  stage: Stage,
  env: Env,
  logger = silentLogger,
): Promise<OpenStore> {
  const opened = await openStore({
    config: configOf(env),
    clock: realClock,
    random: realRandom,
    logger,
    onBadBuckets: () => {},
  });
  for (const { store } of [opened, ...opened.peers]) stage.atEnd(() => store.close());
  return opened;
}
