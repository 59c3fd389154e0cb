import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { patternOf, steps } from "../support/console-steps.js";
import { blocksOf, markedBlock, readPages } from "../support/docs.js";
import { freePort } from "../support/free-port.js";
import { readerFolder, runShell } from "../support/reader-shell.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const path = "docs/start/from-access-log-to-limit.md";

describe("the tutorial from an access log to an enforced limit", () => {
  it("goes as it says", async () => {
    const { folder, path: programs } = await readerFolder(stage.folder);
    const page = readPages().find((one) => one.path === path);
    const blocks = page === undefined ? [] : blocksOf(page);
    const [httpPort, adminPort] = [await freePort(), await freePort()];
    const env = {
      PATH: programs,
      HEADGATE_ADMIN_URL: `http://127.0.0.1:${adminPort}`,
    };
    let stepCount = 0;
    for (const { mark = "", text } of blocks) {
      const [kind, name] = mark.split(" ");
      if (name !== undefined) await writeFile(join(folder, name), `${text}\n`);
      if (kind === "log-tour-start") await start(folder, { httpPort, adminPort });
      if (kind !== "log-tour") continue;
      for (const { command, lines } of steps(text)) {
        const here = command.replaceAll(":8080/", `:${httpPort}/`);
        let printed = "";
        // The report of a shadow policy counts calls a moment after they were answered.
        await waitFor(
          command,
          async () => {
            printed = await runShell(here, { cwd: folder, env });
            return patternOf(lines).test(`${printed}\n`);
          },
          { withinMs: command === "headgate shadow" ? 10_000 : 0 },
        ).catch(() => {});
        expect(`${printed}\n`, command).toMatch(patternOf(lines));
        stepCount += 1;
      }
    }
    expect(stepCount).toBeGreaterThanOrEqual(9);
  });
});

/** Starts what the page says, on other ports. */
async function start(
  folder: string,
  { httpPort, adminPort }: { readonly httpPort: number; readonly adminPort: number },
): Promise<void> {
  const command = markedBlock("log-tour-start");
  const words = command.split(" ");
  const settings = words.filter((word) => /^[A-Z_]+=/.test(word)).map((word) => word.split("="));
  const args = words.filter((word) => !/^[A-Z_]+=/.test(word)).slice(1);
  const service = stage.spawn({
    name: "headgate",
    file: process.execPath,
    args: [
      resolve("dist/cli/main.js"),
      ...args.map((word) => word.replace(/^shop/, `${folder}/shop`)),
    ],
    env: {
      ...Object.fromEntries(settings),
      HOST: "127.0.0.1",
      GRPC_HOST: "127.0.0.1",
      PORT: String(httpPort),
      GRPC_PORT: "0",
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`,
    },
  });
  await waitFor(
    "the service is ready",
    async () => (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok,
    { withinMs: 60_000 },
  );
  expect(service.output).not.toContain("error");
}
