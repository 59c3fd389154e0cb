import { resolve } from "node:path";
import { expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");

it("headgate demo --llm shows a model, its users, and what budgets do to them", async () => {
  const program = stage.spawn({
    name: "demo",
    file: process.execPath,
    args: [main, "demo", "--llm", "--no-install"],
    env: {
      ENVOY_PORT: String(await freePort()),
      PORT: String(await freePort()),
      GRPC_PORT: String(await freePort()),
      ENVOY_BIN: await requireProgram("envoy"),
    },
  });
  const shown = async (what: string, pattern: RegExp): Promise<void> => {
    await waitFor(what, () => pattern.test(program.output), { withinMs: 90_000 });
  };
  await shown("what to try", /curl -N http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions/);
  await shown("who leaves", /cleo has left in the middle of an answer/);
  await shown("who has too many calls in flight", /The first refusal by concurrency: script/);
  await shown("who has spent the money", /The first fallback: team (web|batch)/);
  await shown("calls that fall back", /\d+ cheaper/);
  await shown("who has nothing left", /The first refusal by budget/);
  program.signal("SIGINT");
  expect(await within("the demo ends", 15_000, program.exited)).toEqual({ code: 0 });
});
