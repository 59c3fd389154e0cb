#!/usr/bin/env node
import { exitCodes } from "../app/base/failure.js";

/** File descriptors needed to load the modules, serve, and have some connections. */
const descriptorsMin = 1_024;

try {
  // Its modules are dozens of files that are opened at the same time.
  const { runCli } = await import("./program.js");
  process.exitCode = await runCli(process.argv.slice(2));
} catch (thrown) {
  const code: unknown = Reflect.get(Object(thrown), "code");
  if (code !== "EMFILE" && code !== "ENFILE") throw thrown;
  process.stderr.write(
    "headgate: too few file descriptors to start: raise the limit to " +
      `${descriptorsMin} or more (ulimit -n, LimitNOFILE).\n`,
  );
  process.exitCode = exitCodes.failure;
}
