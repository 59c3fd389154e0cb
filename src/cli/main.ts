#!/usr/bin/env node
import { exitCodes } from "../app/base/failure.js";

/** What it takes to read its own modules, serve, and have some connections. */
const descriptorsMin = 1_024;

try {
  // Its modules are dozens of files, opened at once.
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
