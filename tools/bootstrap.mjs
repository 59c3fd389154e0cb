/**
 * Where every `npm start`, `npm test` and `npm run serve` begins, so that a fresh clone needs Node
 * and nothing else: install, generate and build what is missing or stale, then run the command.
 * Plain JavaScript on Node's built-ins, since nothing is installed when it starts.
 *
 * Usage: node tools/bootstrap.mjs demo|serve|dev|test|all|soak|bench|mutate|pack [ARGUMENT...]
 */
import { fileURLToPath } from "node:url";
import { Supervisor } from "./child.mjs";
import { prepare, StepError } from "./prepare.mjs";

const nodeMinimum = [20, 19];
const program = "dist/cli/main.js";

/**
 * The processes of each command, as arguments of `node`. When one of them ends, the command ends.
 * @type {Record<string, (args: string[]) => string[][]>}
 */
const commands = {
  demo: (args) => [[program, "demo", ...args]],
  serve: (args) => [[program, "serve", ...args]],
  dev: (args) => [
    ["tools/compile.mjs", "--watch"],
    ["--watch", "--watch-preserve-output", program, "serve", ...args],
  ],
  test: (args) => [["--import", "tsx", "test/run.ts", ...args]],
  all: (args) => [["--import", "tsx", "test/run.ts", "quick", ...args]],
  soak: (args) => [["--import", "tsx", "test/run.ts", "soak", ...args]],
  bench: (args) => [["--import", "tsx", "test/bench/main.ts", ...args]],
  mutate: (args) => [["--import", "tsx", "test/mutate/main.ts", ...args]],
  // Before `npm pack`, as its script `prepack`.
  pack: () => [["tools/sbom.mjs"]],
};

process.exitCode = await main(process.argv[2] ?? "", process.argv.slice(3));

/** @returns {Promise<number>} the exit code */
async function main(name, args) {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < nodeMinimum[0] || (major === nodeMinimum[0] && minor < nodeMinimum[1])) {
    process.stderr.write(
      `Headgate needs Node ${nodeMinimum.join(".")} or newer; this is ${process.versions.node}.\n`,
    );
    return 1;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    const names = Object.keys(commands).join("|");
    process.stderr.write(`usage: node tools/bootstrap.mjs ${names} [ARGUMENT...]\n`);
    return 2;
  }
  process.chdir(fileURLToPath(new URL("..", import.meta.url)));
  const supervisor = new Supervisor();
  try {
    await prepare(supervisor);
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    if (supervisor.signalCode === undefined) process.stderr.write(`${error.message}\n`);
    // Whoever reads a test run's last line learns that nothing was tested.
    if (["test", "all", "soak"].includes(name)) process.stdout.write("0 passed, 1 failed\n");
    return supervisor.signalCode ?? 1;
  }
  return supervisor.signalCode ?? (await supervisor.run(command(args)));
}
