#!/usr/bin/env node
import { exitCodes } from "../app/base/failure.js";
import { optimizeNothing } from "../app/base/v8-flags.js";

/** Node's modules that every service loads, and that `optimizeNothing` would compile again. */
const serviceBuiltins = [
  "node:crypto",
  "node:dgram",
  "node:dns/promises",
  "node:fs/promises",
  "node:http",
  "node:inspector",
  "node:os",
  "node:perf_hooks",
  "node:stream/promises",
  "node:tls",
  "node:v8",
  "node:vm",
  "node:worker_threads",
];

/** What it takes to read its own modules, serve, and have some connections. */
const descriptorsMin = 1_024;

// The service has V8 optimize when there is work: see `LoopActivity.onceWorking`.
if (process.argv[2] === "serve") {
  for (const name of serviceBuiltins) process.getBuiltinModule(name);
  optimizeNothing();
}

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
