import { fileURLToPath } from "node:url";
import { ChildProgram } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { waitFor } from "../support/wait.js";

/** A server under load. */
export interface BenchServer {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** What speaks gRPC to the load. */
export type BenchTransport = "grpc-js" | "native";

/** Servers of the bench itself, which decide nothing. */
const emptyServers = {
  unary: { "grpc-js": "./empty-server.ts", native: "./empty-native-server.ts" },
  exchange: { "grpc-js": "./exchange-server.ts", native: "./exchange-native-server.ts" },
} as const;

/** How a server is started. */
export interface ServerOptions {
  readonly transport: BenchTransport;
  /** Options of Node itself: those that make a profile. */
  readonly nodeOptions: readonly string[];
}

/** A transport that answers the same bytes to everything. */
export function startEmptyServer(options: ServerOptions): Promise<BenchServer> {
  return startScript(emptyServers.unary[options.transport], options.nodeOptions);
}

/** A transport that reads the messages of an exchange and changes nothing. */
export function startExchangeServer(options: ServerOptions): Promise<BenchServer> {
  return startScript(emptyServers.exchange[options.transport], options.nodeOptions);
}

/** Starts a server of the bench that prints its port. */
export async function startScript(
  name: string,
  nodeOptions: readonly string[],
  scriptArgs: readonly string[] = [],
): Promise<BenchServer> {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const program = new ChildProgram({
    name,
    file: process.execPath,
    args: [...nodeOptions, "--import", "tsx", script, ...scriptArgs],
  });
  const port = await waitFor(`${name} prints its port`, () => {
    if (!program.isRunning) throw new Error(`${name} ended:\n${program.output}`);
    const line = program.output.split("\n")[0] ?? "";
    return program.output.includes("\n") && Number(line);
  });
  return { pid: program.pid, port: Number(port), stop: () => stop(program) };
}

/** How Headgate is started. */
export interface HeadgateServerOptions extends Omit<ServerOptions, "transport"> {
  readonly policyFile: string;
  readonly redisPort?: number;
  /** Where Envoys are told and tell; absent: nowhere. */
  readonly controlPort?: number;
  /** Where throttle commands are answered; absent: nowhere. */
  readonly respPort?: number;
}

/** A Headgate under load, with what it says of itself. */
export interface HeadgateServer extends BenchServer {
  readonly httpPort: number;
}

/** The built service as a user runs it, with the embedded store or with Redis. */
export async function startHeadgate({
  policyFile,
  nodeOptions,
  redisPort,
  controlPort,
  respPort,
}: HeadgateServerOptions): Promise<HeadgateServer> {
  const port = await freePort();
  const httpPort = await freePort();
  const program = new ChildProgram({
    name: "headgate",
    file: process.execPath,
    args: [...nodeOptions, "dist/cli/main.js", "serve", "--policy", policyFile],
    env: {
      HOST: "127.0.0.1",
      PORT: String(httpPort),
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: String(port),
      LOG_LEVEL: "warn",
      ...(redisPort === undefined ? {} : { REDIS_URL: `127.0.0.1:${redisPort}` }),
      ...(respPort === undefined ? {} : { HEADGATE_RESP_ADDR: `127.0.0.1:${respPort}` }),
      ...(controlPort === undefined ? {} : { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` }),
    },
  });
  await waitFor("headgate is ready", async () => {
    if (!program.isRunning) throw new Error(`headgate ended:\n${program.output}`);
    return (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok;
  });
  return { pid: program.pid, port, httpPort, stop: () => stop(program) };
}

/** Ends a server of the bench. */
export async function stop(program: ChildProgram): Promise<void> {
  program.signal("SIGTERM");
  await waitFor(`${program.name} ends`, () => !program.isRunning);
}
