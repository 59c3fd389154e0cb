import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import type { ChildProgram } from "../support/child-program.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess, placeEnv } from "../support/headgate-process.js";
import { replaceFile } from "../support/replace-file.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");

const policyOf = (hits: number): string =>
  edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: ${hits}}
`);

/** One that may have so many files and connections open. */
function spawnWith(headgate: HeadgateProcess, descriptorCount: number): ChildProgram {
  const limited = `ulimit -n ${descriptorCount}; exec "$@"`;
  const words = [process.execPath, resolve("dist/cli/main.js"), "serve"];
  return stage.spawn({
    name: `headgate with ${descriptorCount} descriptors`,
    file: "/bin/sh",
    args: ["-c", limited, "sh", ...words, "--policy", headgate.policyPath],
    env: placeEnv(headgate),
  });
}

async function openSockets(port: number, count: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
  for (const socket of sockets) socket.on("error", () => {});
  stage.atEnd(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

describe("a Headgate without enough file descriptors", () => {
  it("says so when it cannot start, without a stack trace", async () => {
    const headgate = await HeadgateProcess.prepare(stage, { policy: policyOf(5) });
    const codes = new Set<number>();
    // Fewer and fewer; with less than the last count, Node itself cannot start.
    for (let count = 28; !codes.has(1); count -= 1) {
      const program = spawnWith(headgate, count);
      await waitFor("it serves, or has ended", () => {
        return !program.isRunning || program.output.includes('"event":"serving"');
      });
      if (program.isRunning) {
        await program.kill();
        continue;
      }
      const { code } = await program.exited;
      codes.add(code ?? -1);
      const words =
        code === 1 ? "raise the limit to 1024 or more (ulimit -n" : "raise the limit of";
      expect([count, code, program.output]).toEqual([count, code, expect.stringContaining(words)]);
      expect(program.output).not.toMatch(/^\s+at /m);
    }
    expect([...codes].sort()).toEqual([1, 3]);
  });

  it.each([32, 64])(
    "serves with %i, or says what it lacks, without a stack trace",
    async (count) => {
      const headgate = await HeadgateProcess.prepare(stage, { policy: policyOf(5) });
      const program = spawnWith(headgate, count);
      await waitFor("it serves, or has ended", () => {
        return !program.isRunning || program.output.includes('"event":"serving"');
      });
      if (!program.isRunning) expect(program.output).toContain("limit of file descriptors");
      expect(program.output).not.toMatch(/^\s+at /m);
    },
  );

  it("takes an edit that was made meanwhile when it has some again", async () => {
    const headgate = await HeadgateProcess.prepare(stage, { policy: policyOf(5) });
    const program = spawnWith(headgate, 160);
    await waitFor("it is ready", () => program.output.includes('"policyLoaded"'), {
      withinMs: 60_000,
    });
    await waitFor("it serves", async () => (await headgate.get("/readyz")).status === 200, {
      withinMs: 60_000,
    });
    const sockets = await openSockets(headgate.grpcPort, 300);
    // It takes connections for a while, and may read edits until it has no descriptors left.
    let edit = 5;
    await waitFor(
      "it cannot read it",
      async () => {
        if (program.output.includes('"policyRefused"')) return true;
        edit += 1;
        await replaceFile(headgate.policyPath, policyOf(edit));
        return false;
      },
      { withinMs: 60_000, everyMs: 2_000 },
    );
    const loadedCount = () => program.output.split('"policyLoaded"').length - 1;
    const before = loadedCount();
    for (const socket of sockets) socket.destroy();
    await waitFor("it has taken the edit", () => loadedCount() > before, { withinMs: 60_000 });
    expect(program.output).toContain("too many files and connections are open");
    program.signal("SIGTERM");
    expect(await within("it ends", 30_000, program.exited)).toEqual({ code: 0 });
  });
});

describe("a Headgate whose policy file becomes a pipe", () => {
  it("says so, takes a file that comes later, and stops when it is told to", async () => {
    const headgate = await HeadgateProcess.start(stage, {
      policy: policyOf(5),
      env: { HEADGATE_DRAIN_DELAY_MS: "0" },
    });
    const { policyPath } = headgate;
    await rm(policyPath);
    execFileSync("mkfifo", [policyPath]);
    await waitFor("it is refused", () => headgate.output.includes("not a regular file"), {
      withinMs: 30_000,
    });
    await rm(policyPath);
    await writeFile(policyPath, policyOf(6));
    await waitFor("the file is active", () => headgate.output.split("policyLoaded").length > 2, {
      withinMs: 30_000,
    });
    await rm(policyPath);
    execFileSync("mkfifo", [policyPath]);
    await waitFor("it has looked", () => headgate.output.split("not a regular file").length > 2, {
      withinMs: 30_000,
    });
    expect(await headgate.terminate()).toEqual({ code: 0 });
  });
});
