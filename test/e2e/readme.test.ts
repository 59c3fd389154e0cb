import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const root = resolve(".");
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

function matches(wanted: string, line: string): boolean {
  const parts = wanted.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(line);
}

/** Runs a command as a person's shell would; a refused policy has an exit code of its own. */
async function runShell(command: string, cwd: string): Promise<readonly string[]> {
  const run = promisify(execFile)("bash", ["-c", command], { cwd });
  const output = await run.catch((error: { stdout: string; stderr: string }) => error);
  return (output.stdout + output.stderr).replaceAll("\r", "").trimEnd().split("\n");
}

/** Runs a step in a folder, with files of this repository, and looks for what it must print. */
async function expectPrinted({ command, lines }: Step, folder: string): Promise<void> {
  const here = command
    .replaceAll("dist/cli/main.js", `${root}/dist/cli/main.js`)
    .replaceAll("envoy/demo/", `${root}/envoy/demo/`);
  const printed = await runShell(here, folder);
  for (const wanted of lines) {
    expect(
      printed.some((line) => matches(wanted, line)),
      `${command}\n${printed.join("\n")}\nlacks ${wanted}`,
    ).toBe(true);
  }
}

describe("README.md", () => {
  it("shows a tour that goes as it says", async () => {
    const [envoyPort, httpPort, grpcPort] = [await freePort(), await freePort(), await freePort()];
    const { ENVOY_BIN } = process.env;
    const demo = stage.spawn({
      name: "demo",
      file: process.execPath,
      args: ["dist/cli/main.js", "demo", "--no-install", "--no-traffic"],
      env: {
        ENVOY_PORT: String(envoyPort),
        PORT: String(httpPort),
        GRPC_PORT: String(grpcPort),
        ...(ENVOY_BIN === undefined ? {} : { ENVOY_BIN }),
      },
    });
    await waitFor("the demo is ready", () => demo.output.includes("Try it"), { withinMs: 60_000 });
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

  it("shows what an existing configuration means here, as it is printed", async () => {
    const found = (await blocks("move", "console")).flatMap(steps);
    expect(found).toHaveLength(2);
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
