import { exitCodes, StartFailure } from "../app/base/failure.js";
import { createStyle, isColorWanted } from "../app/base/style.js";
import { isServiceError } from "../core/base/errors.js";
import { type DemoFlags, parseDemoOptions } from "./demo-options.js";
import { play } from "./demo-play.js";
import { DemoScope } from "./demo-scope.js";

interface DemoSources {
  readonly flags: DemoFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Runs the demo until a signal, or until its Envoy ends by itself: Headgate in this process, a real
 * Envoy in front of a small service, and callers. Returns the exit code. Nothing keeps running.
 */
export async function runDemo({ flags, env }: DemoSources): Promise<number> {
  const parsed = parseDemoOptions({ flags, env });
  if (parsed.kind === "problems") {
    console.error(parsed.problems.join("\n"));
    return exitCodes.usage;
  }
  const { options } = parsed;
  const scope = new DemoScope();
  const style = createStyle(isColorWanted(env, process.stdout.isTTY === true));
  const print = (text: string): void => console.log(text);
  // The reader of our output may exit early (`npm start | head`), which must not cause a crash.
  process.stdout.on("error", () => process.exit(exitCodes.failure));
  const signal = nextSignal();
  const played = play({ options, env, scope, style, print });
  try {
    return await Promise.race([played, signal]);
  } catch (thrown) {
    if (!(thrown instanceof StartFailure) && !isServiceError(thrown)) throw thrown;
    console.error(thrown.message);
    return thrown instanceof StartFailure ? thrown.exitCode : exitCodes.failure;
  } finally {
    // Errors of a start in progress after a signal are ignored.
    played.catch(() => {});
    await scope.close();
  }
}

/** Resolves with the exit code at the first signal. A second one ends the process at once. */
function nextSignal(): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (isStopping) process.exit(exitCodes.failure);
        isStopping = true;
        resolve(exitCodes.ok);
      });
    }
  });
}
