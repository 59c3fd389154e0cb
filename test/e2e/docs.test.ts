import { cp, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { patternOf, type Step, steps } from "../support/console-steps.js";
import { blocksOf, markedBlock, markedBlocks, readPages } from "../support/docs.js";
import { freePort } from "../support/free-port.js";
import { requireProgram } from "../support/programs.js";
import { hostedCommandScript, readerFolder, runShell } from "../support/reader-shell.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const root = resolve(".");
const stage = useStage("test");

/** For what runs commands of all pages. */
const fileStage = useStage("file");
let headgateScript: string;

beforeAll(async () => {
  headgateScript = await hostedCommandScript(fileStage);
});

/** In which a bucket of the demo's free plan empties. */
const drainedMs = 10_500;

/** Programs that need a cluster or a server: here they only look whether files are there. */
const farPrograms = ["curl", "docker", "envoy", "helm", "istioctl", "kubectl", "redis-cli"];

/** Ends with 1 where a file or folder that is handed in is not there. */
const farScript = `#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -c | -f | -k) [ "$2" = - ] || [ -e "$2" ] || { echo "no $2" >&2; exit 1; } ;;
  esac
  shift
done
`;

/** A folder as a reader has it, with the examples of this repository. */
async function exampleFolder(): Promise<{ readonly folder: string; readonly path: string }> {
  const reader = await readerFolder(stage.folder, headgateScript);
  for (const example of ["envoy", "k8s"]) {
    await cp(join(root, example), join(reader.folder, example), { recursive: true });
  }
  return reader;
}

async function installFarPrograms(folder: string): Promise<void> {
  for (const program of farPrograms) {
    await writeFile(join(folder, ".bin", program), farScript, { mode: 0o755 });
  }
}

/** A text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Runs a step; it prints what is shown, no more. */
async function expectPrinted(
  { command, lines }: Step,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  let printed = "";
  const isAsShown = async (): Promise<boolean> => {
    printed = await runShell(command, { cwd: folder, env });
    return patternOf(lines).test(`${printed}\n`);
  };
  // On a machine full of other work even that Envoy waits too shortly now and then. What was used
  // has drained when callers of the demo's policy come again.
  const again = command.startsWith("for ")
    ? { withinMs: 30_000, everyMs: drainedMs }
    : command.startsWith("curl ")
      ? { withinMs: 5_000, everyMs: 100 }
      : undefined;
  if (again === undefined) await isAsShown();
  else await waitFor(command, isAsShown, again).catch(() => {});
  expect(`${printed}\n`, command).toMatch(patternOf(lines));
}

/**
 * An Envoy that waits longer for a limit: on a machine full of other work the usual wait is over
 * too often, and calls pass.
 */
async function patientEnvoy(): Promise<string> {
  const path = join(stage.folder, "envoy");
  const script = `#!/bin/sh
for word; do
  case "$word" in */envoy.yaml) sed -i 's/timeout: 0.02s/timeout: 1s/' "$word" ;; esac
done
exec '${await requireProgram("envoy")}' "$@"
`;
  await writeFile(path, script, { mode: 0o755 });
  return path;
}

/** A demo on ports of its own, of which the documentation names the usual ones. */
async function startDemo(
  flags: readonly string[],
  settings: Readonly<Record<string, string>> = {},
) {
  const envoyPort = await freePort();
  const httpPort = await freePort();
  const grpcPort = await freePort();
  const adminPort = await freePort();
  const demo = stage.spawn({
    name: "demo",
    file: process.execPath,
    args: ["dist/cli/main.js", "demo", "--no-install", ...flags],
    env: {
      ENVOY_PORT: String(envoyPort),
      PORT: String(httpPort),
      GRPC_PORT: String(grpcPort),
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`,
      ENVOY_BIN: await patientEnvoy(),
      ...settings,
    },
  });
  await waitFor("the demo is ready", () => demo.output.includes("Try it"), { withinMs: 60_000 });
  const [, envoyAdminPort = ""] = /admin +http:\/\/127\.0\.0\.1:(\d+)/.exec(demo.output) ?? [];
  return { envoyPort, httpPort, adminPort, envoyAdminPort };
}

/** Pages with commands that need nothing but the program and the files that the page shows. */
const runnablePages = readPages().filter((page) =>
  blocksOf(page).some(({ mark }) => mark === "run"),
);

describe("the documentation", () => {
  it("shows a tour that goes as it says", async () => {
    const { envoyPort, httpPort } = await startDemo(["--no-traffic"]);
    const { folder, path } = await exampleFolder();
    const tour = markedBlocks("tour").flatMap(({ text }) => steps(text));
    expect(tour.length).toBeGreaterThanOrEqual(3);
    for (const { command, lines } of tour) {
      const here = command
        .replaceAll(":10000/", `:${envoyPort}/`)
        .replaceAll(":8080/", `:${httpPort}/`);
      await expectPrinted({ command: here, lines }, folder, { PATH: path });
    }
  });

  it("shows how to operate a demo as it answers", async () => {
    const [start, ...tour] = markedBlocks("operate").flatMap(({ text }) => steps(text));
    expect(tour.length).toBeGreaterThanOrEqual(18);
    const [, settings = "", flags = ""] =
      /^((?:\w+=\w+ )+)npm start -- (.*)$/.exec(start?.command ?? "") ?? [];
    const pairs = settings
      .trim()
      .split(" ")
      .map((pair) => pair.split("="));
    const ports = await startDemo(flags.split(" "), Object.fromEntries(pairs));
    const { folder, path } = await exampleFolder();
    const env = { PATH: path, HEADGATE_ADMIN_URL: `http://127.0.0.1:${ports.adminPort}` };
    for (const { command, lines } of tour) {
      const here = command
        .replaceAll(":10000/", `:${ports.envoyPort}/`)
        .replaceAll(":8080", `:${ports.httpPort}`)
        .replaceAll(":9901", `:${ports.envoyAdminPort}`);
      await expectPrinted({ command: here, lines }, folder, env);
    }
  });

  it("shows commands with what they print on many pages", () => {
    expect(runnablePages.length).toBeGreaterThanOrEqual(15);
  });

  it.each(runnablePages.map((page) => [page.path, page] as const))(
    "shows what commands print: %s",
    async (_, page) => {
      const { folder, path } = await exampleFolder();
      for (const { mark = "", text } of blocksOf(page)) {
        const [kind, name] = mark.split(" ");
        if (name !== undefined) await writeFile(join(folder, name), `${text}\n`);
        if (kind !== "run") continue;
        for (const step of steps(text)) await expectPrinted(step, folder, { PATH: path });
      }
    },
  );

  it("names files that are there in commands for a cluster", async () => {
    const { folder, path } = await exampleFolder();
    await installFarPrograms(folder);
    for (const page of readPages()) {
      for (const { mark = "", text, line } of blocksOf(page)) {
        const [kind, name] = mark.split(" ");
        if (name !== undefined) await writeFile(join(folder, name), `${text}\n`);
        if (kind !== "cluster") continue;
        const env = { PATH: path, REDIS_PASSWORD: "secret" };
        const checked = text.replace(/^headgate serve --policy /gm, "headgate check ");
        const ran = await runShell(`set -e\n${checked}\necho done`, { cwd: folder, env });
        expect(ran, `${page.path}:${line}`).toMatch(/(^|\n)done(\n|$)/);
      }
    }
  });

  it("asks what runs by commands that there are", async () => {
    const lines = new Set(markedBlocks("diagnose").flatMap(({ text }) => text.split("\n")));
    expect(lines.size).toBeGreaterThanOrEqual(20);
    // Nobody answers there, which has an exit code of its own; a wrong word is a usage error.
    const env = { HEADGATE_ADMIN_URL: "http://127.0.0.1:1" };
    for (const line of lines) {
      const [program, ...args] = line.split(" ");
      if (program === "headgate") {
        expect(line, "no work for a shell").toMatch(/^[\w .:,/-]+$/);
        const { code, err } = await captureCli(args, { env });
        expect([0, 5], `${line}: ${err}`).toContain(code);
      } else {
        const command = `echo ${quoted(line)} | bash -n; echo "code $?"`;
        expect(await runShell(command, { cwd: root }), line).toMatch(/(^|\n)code 0(\n|$)/);
      }
    }
  });

  it("starts the service by the command that it names", async () => {
    const command = markedBlock("serve");
    const httpPort = await freePort();
    const [file = "", ...args] = command.split(" ");
    const service = stage.spawn({
      name: "npm run serve",
      file,
      args,
      env: {
        HOST: "127.0.0.1",
        GRPC_HOST: "127.0.0.1",
        PORT: String(httpPort),
        GRPC_PORT: "0",
        HEADGATE_DRAIN_DELAY_MS: "0",
      },
    });
    await waitFor(
      "the service is ready",
      async () => (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok,
      { withinMs: 60_000 },
    );
    service.signal("SIGTERM");
    expect(await within("the service ends", 15_000, service.exited)).toEqual({ code: 0 });
  });
});
