import { execFile } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const root = resolve(".");
const main = resolve("dist/cli/main.js");
const stage = useStage("test");

/** A command of a console block, and the lines it must print; `…` stands for any text. */
interface Step {
  readonly command: string;
  readonly lines: readonly string[];
}

async function blocks(mark: string, language: string): Promise<readonly string[]> {
  const text = await readFile("README.md", "utf8");
  const pattern = new RegExp(`<!-- test: ${mark} -->\n\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g");
  return [...text.matchAll(pattern)].map(([, block = ""]) => block.trimEnd());
}

function steps(block: string): readonly Step[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [command = "", ...lines] = text.trimEnd().split("\n");
      return { command, lines };
    });
}

/** What a command must print, and nothing else; a line of `…` stands for any lines. */
function patternOf(lines: readonly string[]): RegExp {
  const parts = (lines.length === 0 ? [""] : lines).map((line) => {
    if (line === "…") return "(?:.*\\n)*";
    const texts = line.split("…").map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    return `${texts.join(".*")}\n`;
  });
  return new RegExp(`^${parts.join("")}$`);
}

/** In which a bucket of the demo's free plan empties. */
const drainedMs = 10_500;

/** Runs a command as a person's shell would; a refused policy has an exit code of its own. */
async function runShell(
  command: string,
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const all = { ...process.env, ...env };
  const run = promisify(execFile)("bash", ["-c", command], { cwd, env: all });
  const output = await run.catch((error: { stdout: string; stderr: string }) => error);
  return (output.stdout + output.stderr).replaceAll("\r", "").trimEnd();
}

/** Runs a step in a folder, with files of this repository; it prints what is shown, no more. */
async function expectPrinted(
  { command, lines }: Step,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const here = command
    .replaceAll("dist/cli/main.js", `${root}/dist/cli/main.js`)
    .replaceAll("envoy/demo/", `${root}/envoy/demo/`);
  let printed = "";
  const isAsShown = async (): Promise<boolean> => {
    printed = await runShell(here, { cwd: folder, env });
    return patternOf(lines).test(`${printed}\n`);
  };
  // On a machine full of other work even that Envoy waits too shortly now and then. What was used
  // has drained when callers of the demo's policy come again.
  const again = here.startsWith("for ")
    ? { withinMs: 30_000, everyMs: drainedMs }
    : here.startsWith("curl ")
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

/** A demo on ports of its own, of which the README names the usual ones. */
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

describe("README.md", () => {
  it("shows a tour that goes as it says", async () => {
    const { envoyPort, httpPort } = await startDemo(["--no-traffic"]);
    const { folder } = stage;
    const tour = (await blocks("tour", "console")).flatMap(steps);
    expect(tour.length).toBeGreaterThanOrEqual(5);
    for (const { command, lines } of tour) {
      const here = command
        .replaceAll(":10000/", `:${envoyPort}/`)
        .replaceAll(":8080/", `:${httpPort}/`);
      await expectPrinted({ command: here, lines }, folder);
    }
  });

  it("shows how to operate a demo as it answers", async () => {
    const [start, ...tour] = (await blocks("operate", "console")).flatMap(steps);
    expect(tour.length).toBeGreaterThanOrEqual(18);
    const [, settings = "", flags = ""] =
      /^((?:\w+=\w+ )+)npm start -- (.*)$/.exec(start?.command ?? "") ?? [];
    const pairs = settings
      .trim()
      .split(" ")
      .map((pair) => pair.split("="));
    const ports = await startDemo(flags.split(" "), Object.fromEntries(pairs));
    const { folder } = stage;
    await writeFile(
      join(folder, "headgate"),
      `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`,
    );
    await chmod(join(folder, "headgate"), 0o755);
    const env = {
      PATH: `${folder}:${process.env["PATH"] ?? ""}`,
      HEADGATE_ADMIN_URL: `http://127.0.0.1:${ports.adminPort}`,
    };
    for (const { command, lines } of tour) {
      const here = command
        .replaceAll(":10000/", `:${ports.envoyPort}/`)
        .replaceAll(":8080", `:${ports.httpPort}`)
        .replaceAll(":9901", `:${ports.envoyAdminPort}`);
      await expectPrinted({ command: here, lines }, folder, env);
    }
  });

  it("shows what an existing configuration means here, as it is printed", async () => {
    const found = (await blocks("move", "console")).flatMap(steps);
    expect(found).toHaveLength(2);
    for (const step of found) await expectPrinted(step, stage.folder);
  });

  it("shows tests of a policy and a replay as they are printed", async () => {
    const found = (await blocks("try", "console")).flatMap(steps);
    expect(found.length).toBeGreaterThanOrEqual(3);
    for (const step of found) await expectPrinted(step, stage.folder);
  });

  it("starts the service by the command that it names", async () => {
    const [command = ""] = await blocks("serve", "sh");
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
