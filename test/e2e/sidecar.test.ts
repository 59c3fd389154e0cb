import { execFile } from "node:child_process";
import { chmod, cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execPath, getuid } from "node:process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { markedBlock } from "../support/docs.js";
import { freePort } from "../support/free-port.js";
import { grpcHealth } from "../support/grpc-health.js";
import { listensAt } from "../support/listening.js";
import { outcomeOf, RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");
const run = promisify(execFile);

const policy = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1}
`;

const question = { descriptors: [["user=ann"]] };

/** The user that owns nothing, where this process may become it. */
const nobody = 65_534;
const asNobody = getuid?.() === 0 ? ["setpriv", `--reuid=${nobody}`, "--clear-groups"] : [];

/** The container of the guide. */
const guide = z
  .object({
    initContainers: z.tuple([
      z.object({
        args: z.tuple([z.literal("serve"), z.string(), z.string(), z.string(), z.string()]),
        env: z.array(z.object({ name: z.string(), value: z.string() })),
        startupProbe: z.object({ httpGet: z.object({ path: z.string(), port: z.number() }) }),
      }),
    ]),
  })
  .parse(parse(markedBlock("sidecar")));
const [container] = guide.initContainers;
const [command, ...words] = container.args.slice(0, 3);

/** Starts the preset from an installed package that nobody may write to. */
async function startSidecar(env: Readonly<Record<string, string>>) {
  const installed = join(stage.folder, "installed");
  await mkdir(installed);
  await cp("dist", join(installed, "dist"), { recursive: true });
  await cp("package.json", join(installed, "package.json"));
  const policyPath = join(stage.folder, "policy.yaml");
  await writeFile(policyPath, policy);
  // As a read-only mount: nobody may write a file of it, or a new one beside it.
  await run("chmod", ["-R", "a-w", installed]);
  await chmod(stage.folder, 0o755);
  stage.atEnd(() => run("chmod", ["-R", "u+w", installed]));
  const [file = execPath, ...before] = [...asNobody, execPath];
  const serve = [join(installed, "dist/cli/main.js"), command ?? "", ...words];
  const program = stage.spawn({
    name: "headgate",
    file,
    args: [...before, ...serve, "--policy", policyPath],
    // From Node 22 on, it would keep compiled code there.
    env: {
      LOG_FORMAT: "json",
      HOME: "/nonexistent",
      NODE_COMPILE_CACHE: join(installed, "cache"),
      ...env,
    },
    cwd: installed,
  });
  const isServing = () => program.output.includes('"event":"serving"');
  await waitFor("it serves", async () => isServing() || !program.isRunning, { withinMs: 60_000 });
  expect(isServing(), program.output).toBe(true);
  return program;
}

function clientOf(target: number): RlsClient {
  const client = new RlsClient(target);
  stage.atEnd(() => client.close());
  return client;
}

describe("headgate serve --preset sidecar", () => {
  it("decides on loopback and opens nothing else, for a user who may write nowhere", async () => {
    const port = await freePort();
    const program = await startSidecar({ GRPC_PORT: String(port) });
    expect(listensAt(program.pid)).toEqual([`127.0.0.1:${port}`]);
    expect(await grpcHealth(port, "")).toBe("SERVING");
    const client = clientOf(port);
    expect(outcomeOf(await client.ask(question))).toBe("OK");
    expect(outcomeOf(await client.ask(question))).toBe("OVER_LIMIT");
    const complaints = program.output
      .split("\n")
      .filter((line) => /"level":"(?:warn|error)/.test(line));
    expect(complaints.filter((line) => !line.includes("loopStalled"))).toEqual([]);
    program.signal("SIGTERM");
    expect(await within("it ends", 20_000, program.exited)).toEqual({ code: 0 });
  });

  it("opens the ports that are named, as the guide does for probes", async () => {
    const [port, monitoring, admin] = [await freePort(), await freePort(), await freePort()];
    const { path, port: probed } = container.startupProbe.httpGet;
    const settings = container.env.map(({ name, value }) => [
      name,
      value.replace(new RegExp(`^:${probed}$`), `127.0.0.1:${monitoring}`),
    ]);
    const program = await startSidecar({
      ...Object.fromEntries(settings),
      GRPC_PORT: String(port),
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${admin}`,
    });
    const places = [port, monitoring, admin].map((one) => `127.0.0.1:${one}`);
    expect(listensAt(program.pid)).toEqual(places.sort());
    expect((await fetch(`http://127.0.0.1:${monitoring}${path}`)).status).toBe(200);
  });
});
