import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess, placeEnv } from "../support/headgate-process.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const run = promisify(execFile);

/** Bytes that a command may print here. */
const maxBuffer = 64 * 1024 * 1024;

describe("on a newer Node", () => {
  const names = ["erlang-c", "half-the-workers", "zone-lost"];

  it.each(names)("simulates %s to the same bytes", async (name) => {
    const scenario = `scenarios/${name}.scenario.yaml`;
    const words = ["dist/cli/main.js", "simulate", scenario, "--seed", "7", "-o", "json"];
    const newer = await requireProgram("newerNode");
    const outputs = await Promise.all([
      run(process.execPath, words, { maxBuffer }),
      run(newer, words, { maxBuffer }),
    ]);
    const [here, there] = outputs.map(({ stdout }) => stdout);
    expect(here?.length).toBeGreaterThan(1_000);
    expect(there === here).toBe(true);
  });

  it("serves", async () => {
    const headgate = await HeadgateProcess.prepare(stage, {
      policy: edgePolicy(
        "\n  - key: user\n    rate_limit: {name: few, unit: hour, requests_per_unit: 1}\n",
      ),
    });
    stage.spawn({
      name: "headgate serve",
      file: await requireProgram("newerNode"),
      args: ["dist/cli/main.js", "serve", "--policy", headgate.policyPath],
      env: placeEnv(headgate),
    });
    await waitFor("it serves", async () => (await headgate.get("/readyz")).status === 200);
    const ask = async () =>
      (
        await headgate.postJson({
          domain: "edge",
          descriptors: [{ entries: [{ key: "user", value: "a" }] }],
        })
      ).status;
    expect([await ask(), await ask()]).toEqual([200, 429]);
  });
});
