import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type App, startApp } from "../app/app.js";
import { exitCodes, StartFailure } from "../app/base/failure.js";
import { listen } from "../app/base/listen.js";
import type { LogEvent, Logger } from "../app/base/logger.js";
import { isInstalledPackage, ownFile } from "../app/base/own-file.js";
import type { Style } from "../app/base/style.js";
import { loadConfig } from "../app/config/config.js";
import { assert, errorRows, isServiceError } from "../core/base/errors.js";
import { httpStatuses } from "../core/base/http-status.js";
import { many } from "../core/base/many.js";
import { systemClock } from "../host/clock.js";
import { envoyTool } from "../programs/install.js";
import { findProgram, lookUp, thisMachine } from "../programs/provision.js";
import {
  type Running,
  renderBanner,
  renderLayersPage,
  renderNext,
  renderOpen,
  renderTry,
} from "./demo-banner.js";
import { Envoy, type EnvoyEnd, type EnvoyPorts, renderEnvoyConfig } from "./demo-envoy.js";
import { showCalls, startModels } from "./demo-llm.js";
import { type DemoExample, type DemoOptions, portSettings } from "./demo-options.js";
import { isLineDue, TrafficReport } from "./demo-report.js";
import { type DemoScope, everySecond } from "./demo-scope.js";
import {
  type Asker,
  createEnvoyAsker,
  createHeadgateAsker,
  demoCallers,
  send,
  Traffic,
} from "./demo-traffic.js";
import {
  renderVisitors,
  roomPositionPath,
  shopHeader,
  shopPage,
  Visitors,
  visitorsCount,
} from "./demo-visitors.js";
import { renderFigures } from "./three-layers/layers-counts.js";
import { LayersRig } from "./three-layers/layers-rig.js";
import { initialSettings } from "./three-layers/layers-settings.js";
import { LayersSite } from "./three-layers/layers-site.js";

interface Play {
  readonly options: DemoOptions;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly scope: DemoScope;
  readonly style: Style;
  readonly print: (text: string) => void;
}

const clock = systemClock;

/**
 * Starts and shows everything. With Envoy, returns the exit code when Envoy ends by itself; without
 * Envoy, continues until the scope is closed.
 *
 * @throws StartFailure with a message for users
 */
export async function play(parts: Play): Promise<number> {
  const { options, scope } = parts;
  const ports = await probePorts(options);
  const upstreamPlace = { port: ports.upstreamPort, portSetting: portSettings.upstreamPort };
  const upstream = await startService(options.example, upstreamPlace);
  await scope.add(() => upstream.close());
  const folder = await makeFolder(scope);
  const policyPath = options.policy ?? examplePolicy(options.example, folder);
  const app = await startHeadgate(parts, { ...ports, policyPath });
  const { grpcAddress } = app;
  assert(grpcAddress.kind === "tcp", "the demo's gRPC listens on a port");
  assert(app.httpAddress !== undefined, "the demo has an HTTP port");
  const envoyPorts = {
    envoy: ports.envoyPort,
    upstream: upstream.port,
    headgate: grpcAddress.port,
    ...(upstream.cheaperPort === undefined ? {} : { cheaper: upstream.cheaperPort }),
    ...(app.controlAddress === undefined ? {} : { control: app.controlAddress.port }),
  };
  const started = await startEnvoy(parts, { ports: envoyPorts, folder });
  const running: Running = {
    grpcPort: grpcAddress.port,
    httpPort: app.httpAddress.port,
    consolePort: app.consoleAddress?.port,
    policyPath: displayPath(policyPath),
    envoy: started.kind === "missing" ? started : { ...started, ports: envoyPorts },
  };
  if (upstream.rig !== undefined) await showLayers(parts, { running, rig: upstream.rig });
  else if (options.example === "llm") await showCalls({ ...parts, clock, running });
  else if (options.example === "demo") await showLimits(parts, running);
  else await showRoom(parts, running);
  return started.kind === "missing" ? new Promise(() => {}) : endOfEnvoy(parts, started, folder);
}

/** Shows callers of one service, and the outcomes of their requests. */
async function showLimits(parts: Play, running: Running): Promise<void> {
  const { options, scope, style, print } = parts;
  const asker = createAsker(running);
  await scope.add(() => asker.close());
  if (running.envoy.kind === "running") await untilDecided(asker);
  if (scope.isClosed) return;
  print(renderBanner(running, style));
  print(renderTry(running, style));
  if (options.traffic === "none") print(renderNext(running, style));
  else await startTraffic(parts, { running, asker });
}

/** Tries to listen on each port, so that all ports in use are reported before anything starts. */
async function probePorts(options: DemoOptions): Promise<PortChoices> {
  const problems: string[] = [];
  const probe = async (name: keyof PortChoices): Promise<number> => {
    const server = createServer();
    const setting = { hostSetting: "127.0.0.1", portSetting: portSettings[name] };
    const place = { host: "127.0.0.1", port: options[name], connectionsMax: 1, ...setting };
    try {
      const { port } = await listen(server, place);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      return port;
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      problems.push(thrown.message.replace(`${errorRows.LISTEN_FAILED.meaning} `, ""));
      return 0;
    }
  };
  const chosen = {
    envoyPort: await probe("envoyPort"),
    grpcPort: await probe("grpcPort"),
    httpPort: await probe("httpPort"),
    upstreamPort: await probe("upstreamPort"),
  };
  if (problems.length > 0) throw new StartFailure(exitCodes.failure, problems.join("\n"));
  return chosen;
}

type PortChoices = Pick<DemoOptions, keyof typeof portSettings>;

async function startHeadgate(
  { env, scope, style, print, options }: Play,
  { grpcPort, httpPort, policyPath }: PortChoices & { readonly policyPath: string },
): Promise<App> {
  const flags = {
    policy: policyPath,
    host: "127.0.0.1",
    grpcHost: "127.0.0.1",
    port: String(httpPort),
    grpcPort: String(grpcPort),
    // The demo's Envoy calls a port in plaintext, whatever the environment sets.
    grpcUds: "",
    grpcServerUseTls: "false",
    grpcClientTlsCaCert: "",
    grpcServerTlsCaCert: "",
    grpcClientTlsSan: "",
    backendType: "memory",
    // Another service may use its port.
    debugHost: "",
    controlAddress: options.example === "three-layers" ? "127.0.0.1:0" : "",
    // Users may try everything: nothing here belongs to anyone else.
    ...(env["HEADGATE_ADMIN_ACCESS"] ? {} : { adminOpen: env["HEADGATE_ADMIN_OPEN"] ?? "true" }),
    // The demo must end without delay.
    drainDelayMs: "0",
    drainGraceMs: "1000",
  };
  const loaded = loadConfig({ flags, env });
  if (loaded.kind === "problems") {
    throw new StartFailure(exitCodes.usage, loaded.problems.join("\n"));
  }
  const app = await startApp(loaded.config, { logger: createDemoLogger({ print, style }) });
  await scope.add(() => app.close());
  return app;
}

type StartedEnvoy = RunningEnvoy | Extract<Running["envoy"], { kind: "missing" }>;

interface RunningEnvoy {
  readonly kind: "running";
  readonly envoy: Envoy;
  readonly adminAddress: string;
  readonly logPath: string;
}

/** Folder of Envoy's configuration and log, and of an editable policy. Removed after the demo. */
interface DemoFolder {
  readonly path: string;
  /** Keeps the folder, for a user who looks for a cause. */
  readonly keep: () => void;
}

async function makeFolder(scope: DemoScope): Promise<DemoFolder> {
  const path = mkdtempSync(join(tmpdir(), "headgate-demo-"));
  let isKept = false;
  await scope.add(() => {
    if (!isKept) rmSync(path, { recursive: true, force: true });
  });
  const keep = (): void => {
    isKept = true;
  };
  return { path, keep };
}

/** Returns the example's policy, or an editable copy of it if the package is installed. */
function examplePolicy(example: DemoExample, { path }: DemoFolder): string {
  const file = exampleFile(example, "policy.yaml");
  if (!isInstalledPackage()) return file;
  const copy = join(path, "policy.yaml");
  writeFileSync(copy, readFileSync(file));
  return copy;
}

async function startEnvoy(
  { scope, options }: Play,
  { ports, folder }: { readonly ports: EnvoyPorts; readonly folder: DemoFolder },
): Promise<StartedEnvoy> {
  const machine = thisMachine();
  const found = await (options.mayInstall
    ? findProgram(envoyTool, machine)
    : lookUp(envoyTool, machine));
  if (found.kind === "missing" && options.example === "demo") return found;
  if (found.kind === "missing") {
    const words = `this example needs an Envoy, and there is none: ${found.why}`;
    throw new StartFailure(exitCodes.failure, `${words}\nto install it, ${found.hint}`);
  }
  if (scope.isClosed)
    return { kind: "missing", why: "the demo is stopping", hint: "start it again" };
  const config = renderEnvoyConfig(
    readFileSync(exampleFile(options.example, "edge/envoy.yaml"), "utf8"),
    ports,
  );
  const envoy = new Envoy({ program: found.path, config, folder: folder.path, clock });
  await scope.add(() => envoy.stop());
  const adminAddress = await envoy.ready();
  const { logPath } = envoy;
  if (adminAddress !== undefined) {
    return { kind: "running", envoy, adminAddress, logPath };
  }
  folder.keep();
  await envoy.stop();
  throw new StartFailure(exitCodes.failure, describeEnd(envoy, await envoy.ended));
}

/** Waits for Envoy's connection to Headgate. Until then, it lets requests pass. */
async function untilDecided({ ask }: Asker): Promise<void> {
  const endMs = clock.monotonicMs() + decidedMsMax;
  while (clock.monotonicMs() < endMs) {
    const answer = await ask({ name: "demo", plan: "internal" });
    if (answer.kind === "allowed" && answer.isDecided) return;
    await sleep(decidedEveryMs);
  }
}

/** A user's own policy may not decide about that request, so a timeout is not a failure. */
const decidedMsMax = 2_000;
const decidedEveryMs = 50;

function createAsker({ envoy, httpPort }: Running): Asker {
  if (envoy.kind === "missing") return createHeadgateAsker(httpPort);
  return createEnvoyAsker(envoy.ports.envoy);
}

/** Shows a waiting room with other visitors, which users can open in a browser. */
async function showRoom({ options, scope, style, print }: Play, running: Running): Promise<void> {
  assert(running.envoy.kind === "running", "a waiting room is not shown without an Envoy");
  const { envoy: port } = running.envoy.ports;
  await untilRoomResponses(port);
  if (scope.isClosed) return;
  print(renderBanner(running, style));
  print(renderOpen(running, style));
  if (options.traffic === "none") return;
  const visitors = new Visitors({ clock, port });
  await scope.add(() => visitors.stop());
  visitors.start(visitorsCount);
  if (options.traffic !== "shown") return;
  everySecond(clock, scope, (seconds) => {
    if (isLineDue(seconds)) print(renderVisitors(seconds, visitors.counts, style));
  });
}

/** Shows the page of the three layers, and the outcomes of requests in one line per second. */
async function showLayers(
  { options, scope, style, print }: Play,
  { running, rig }: { readonly running: Running; readonly rig: LayersRig },
): Promise<void> {
  assert(running.envoy.kind === "running", "the layers are not shown without an Envoy");
  if (options.traffic === "none") rig.settings = { ...initialSettings, loadRatio: 0 };
  await rig.startCaller(running.envoy.ports.envoy);
  const site = new LayersSite(rig, clock);
  const port = await site.listen();
  await scope.add(() => site.close());
  if (scope.isClosed) return;
  print(renderBanner(running, style));
  print(renderLayersPage(port, style));
  if (options.traffic !== "shown") return;
  everySecond(clock, scope, (seconds) => {
    const figures = site.figures.at(-1);
    if (isLineDue(seconds) && figures !== undefined) print(renderFigures(seconds, figures, style));
  });
}

/** Waits for Envoy's connection to Headgate. Until then, it lets visitors pass. */
async function untilRoomResponses(port: number): Promise<void> {
  const agent = new Agent();
  const endMs = clock.monotonicMs() + decidedMsMax;
  while (clock.monotonicMs() < endMs) {
    const answer = await send({ agent, port, path: roomPositionPath, method: "GET" });
    if (answer.kind === "answer" && answer.status === httpStatuses.ok) break;
    await sleep(decidedEveryMs);
  }
  agent.destroy();
}

async function startTraffic(
  { options, scope, style, print }: Play,
  { running, asker }: { readonly running: Running; readonly asker: Asker },
): Promise<void> {
  const { policyPath } = running;
  const report = new TrafficReport({ callers: demoCallers, style, print, policyPath });
  const traffic = new Traffic({
    clock,
    ask: asker.ask,
    onAnswer: (caller, answer) => {
      if (report.note(caller, answer)) print(renderNext(running, style));
    },
  });
  await scope.add(() => traffic.stop());
  if (options.traffic === "shown") {
    report.printHead();
    everySecond(clock, scope, () => report.tick());
  }
  traffic.start(demoCallers);
}

/** Time for a Ctrl-C to arrive here: it reaches Envoy and this process in either order. */
const signalEchoMs = 300;

async function endOfEnvoy(
  { scope, print }: Play,
  started: RunningEnvoy,
  folder: DemoFolder,
): Promise<number> {
  const end = await started.envoy.ended;
  await sleep(signalEchoMs);
  if (scope.isClosed) return exitCodes.ok;
  folder.keep();
  print(`\n${describeEnd(started.envoy, end)}`);
  return exitCodes.failure;
}

function describeEnd({ logPath }: Envoy, { how, logTail }: EnvoyEnd): string {
  return `Envoy ended (${how}). The end of its log, ${logPath}:\n\n${logTail}\n`;
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.schedule(delayMs, resolve);
  });
}

/** Returns a file of the example that the demo runs. */
function exampleFile(example: DemoExample, name: string): string {
  return fileURLToPath(new URL(`envoy/${example}/${name}`, ownFile("package.json")));
}

/** Returns a path as a user in this folder would write it. */
function displayPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") ? path : short;
}

/**
 * Creates the service's log as the demo shows it: sentences about what a user has caused or must
 * know. The banner reports the first load of the policy.
 */
export function createDemoLogger({
  print,
  style,
}: {
  readonly print: (text: string) => void;
  readonly style: Style;
}): Logger {
  let loadCount = 0;
  return {
    debug: () => {},
    info: ({ event, ruleCount }: LogEvent) => {
      if (event === "policyLoaded") loadCount += 1;
      if (event !== "policyLoaded" || loadCount === 1) return;
      const rules = ruleCount === 0 ? "" : `: ${many(Number(ruleCount), "rule")}`;
      print(`\n  ${style.good("The edited policy is active")}${rules}.\n`);
    },
    warn: ({ event }, sentence) => {
      // The demo has only one process, which has its rooms to itself.
      if (event !== "roomsPerProcess") print(`\n  ${sentence}\n`);
    },
    error: (_event, sentence) =>
      print(`\n  ${style.bad(sentence.trimEnd().replaceAll("\n", "\n  "))}\n`),
  };
}

/** A running service behind Envoy. */
export interface Upstream {
  readonly port: number;
  /** In the three-layers example: the service, and its future caller. */
  readonly rig?: LayersRig;
  /** Port of the cheaper model. */
  readonly cheaperPort?: number;
  close(): unknown;
}

/** Maximum number of connections. Envoy opens a few, and curl at most one more. */
const upstreamConnectionsMax = 1_000;

function startService(example: DemoExample, place: UpstreamPlace): Promise<Upstream> {
  if (example === "three-layers") return startLayersService(place);
  return example === "llm" ? startModels(clock, place) : startUpstream(example, place);
}

/** Starts the service of the three layers. */
async function startLayersService(place: UpstreamPlace): Promise<Upstream> {
  const rig = await LayersRig.start({ ...place, settings: initialSettings });
  return { port: rig.servicePort, rig, close: () => rig.close() };
}

interface UpstreamPlace {
  readonly port: number;
  readonly portSetting: string;
}

/**
 * Starts the small service behind the demo's Envoy, which responds to every request alike.
 *
 * @throws ServiceError LISTEN_FAILED
 */
async function startUpstream(example: keyof typeof pages, place: UpstreamPlace): Promise<Upstream> {
  const { body, headers } = pages[example];
  const server = createHttpServer((request, response) => {
    request.resume();
    response.writeHead(httpStatuses.ok, headers);
    response.end(body);
  });
  // Envoy keeps its connections. If the service closed one first, a request would get a 503.
  server.keepAliveTimeout = 0;
  const { port } = await listen(server, {
    ...place,
    host: "127.0.0.1",
    hostSetting: "127.0.0.1",
    connectionsMax: upstreamConnectionsMax,
  });
  return {
    port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Response of each example's service. */
const pages = {
  demo: {
    body: "Hello from the service: Headgate let this request in.\n",
    headers: { "content-type": "text/plain; charset=utf-8" },
  },
  "waiting-room": {
    body: shopPage,
    headers: { "content-type": "text/html; charset=utf-8", [shopHeader]: "open" },
  },
} as const;
