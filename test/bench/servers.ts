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
export type BenchTransport = "grpc-js" | "lane";

const emptyServers: Readonly<Record<BenchTransport, string>> = {
  "grpc-js": "./empty-server.ts",
  lane: "./empty-lane-server.ts",
};

/** A transport that answers the same bytes to everything. */
export async function startEmptyServer(transport: BenchTransport): Promise<BenchServer> {
  const script = fileURLToPath(new URL(emptyServers[transport], import.meta.url));
  const program = new ChildProgram({
    name: "empty server",
    file: process.execPath,
    args: ["--import", "tsx", script],
  });
  const port = await waitFor("the empty server prints its port", () => {
    const line = program.output.split("\n")[0] ?? "";
    return program.output.includes("\n") && Number(line);
  });
  return { pid: program.pid, port: Number(port), stop: () => stop(program) };
}

/** The built service as a user runs it, with the embedded store or with Redis. */
export async function startHeadgate({
  policyFile,
  transport,
  redisPort,
}: {
  readonly policyFile: string;
  readonly transport: BenchTransport;
  readonly redisPort?: number;
}): Promise<BenchServer> {
  const port = await freePort();
  const httpPort = await freePort();
  const program = new ChildProgram({
    name: "headgate",
    file: process.execPath,
    args: ["dist/cli/main.js", "serve", "--policy", policyFile],
    env: {
      HOST: "127.0.0.1",
      PORT: String(httpPort),
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: String(port),
      LOG_LEVEL: "warn",
      HEADGATE_TRANSPORT: transport,
      ...(redisPort === undefined ? {} : { REDIS_URL: `127.0.0.1:${redisPort}` }),
    },
  });
  await waitFor("headgate is ready", async () => {
    if (!program.isRunning) throw new Error(`headgate ended:\n${program.output}`);
    return (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok;
  });
  return { pid: program.pid, port, stop: () => stop(program) };
}

async function stop(program: ChildProgram): Promise<void> {
  program.signal("SIGTERM");
  await waitFor(`${program.name} ends`, () => !program.isRunning);
}
