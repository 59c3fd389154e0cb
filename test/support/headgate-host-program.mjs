/**
 * Headgates of the built program, any number in this process, told over its channel which to start
 * and which to end. What `headgate serve` does besides is about processes: signals and exit codes.
 */
import { openSync } from "node:fs";

const built = new URL("../../dist/app/", import.meta.url);
const { startApp } = await import(new URL("app.js", built).href);
const { keepNewObjectsYoung } = await import(new URL("base/v8-flags.js", built).href);
const { loadConfig } = await import(new URL("config/config.js", built).href);
const { createLogger } = await import(new URL("base/logger.js", built).href);

/** Those that run, by the names that they were started under. */
const apps = new Map();

/** Starts one; answers nothing, or why it could not be started and how its process would end. */
async function start({ name, env, logPath }) {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") return { exitCode: 2, message: loaded.problems.join("\n") };
  const logger = await createLogger(loaded.config, {
    fd: openSync(logPath, "a"),
    isTerminal: false,
  });
  try {
    apps.set(name, await startApp(loaded.config, { logger }));
    return {};
  } catch (thrown) {
    if (thrown.exitCode === undefined) throw thrown;
    return { exitCode: thrown.exitCode, message: thrown.message };
  }
}

/** Ends one: as SIGTERM does, or as SIGINT does, which is without the drain delay. */
async function close({ name, isPatient }) {
  const app = apps.get(name);
  apps.delete(name);
  return { isClean: await (isPatient ? app.close() : app.close(0)) };
}

keepNewObjectsYoung();
process.on("message", async ({ id, order, ...parts }) => {
  const answer = await (order === "start" ? start(parts) : close(parts));
  process.send({ id, ...answer });
});
process.on("disconnect", () => process.exit());
process.send({ id: 0 });
