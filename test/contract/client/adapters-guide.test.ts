import { execFile } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { beforeAll, describe, expect, it } from "vitest";
import { Health } from "../../../src/gen/grpc/health/v1/health_pb.js";
import { bundledProgram } from "../../support/bundled-program.js";
import { markedBlocks } from "../../support/docs.js";
import { listenOnLoopback } from "../../support/loopback-server.js";
import { useStage } from "../../support/stage.js";

const stage = useStage("file");
const run = promisify(execFile);

const examples = ["http", "grpc", "connect"].flatMap((kind) =>
  markedBlocks(`client-adapter ${kind}`).map(({ text }, i) => ({ name: `${kind}-${i}`, text })),
);

/** Addresses of the guide, and where its services are here. */
const addresses = new Map<string, string>();

/** Lets the examples import the library as those who have installed it. */
const paths = {
  "headgate/client": [resolve("src/client/index.ts")],
  "headgate/client/*": [resolve("src/client/adapters/*.ts")],
};

async function startGrpc(): Promise<number> {
  const server = new Server();
  const method = { path: "/shop.Orders/Get", requestStream: false, responseStream: false };
  const [serialize, deserialize] = [(text: string) => Buffer.from(text), String];
  const [requestSerialize, responseSerialize] = [serialize, serialize];
  const [requestDeserialize, responseDeserialize] = [deserialize, deserialize];
  server.addService(
    {
      get: {
        ...method,
        requestSerialize,
        responseSerialize,
        requestDeserialize,
        responseDeserialize,
      },
    },
    {
      get: (call: { request: string }, answer: (error: null, text: string) => void) =>
        answer(null, `order ${call.request}`),
    },
  );
  stage.atEnd(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
      if (error) reject(error);
      else resolve(port);
    });
  });
}

async function startConnect(): Promise<number> {
  const check = (): { readonly status: number } => ({ status: 1 });
  const routes = connectNodeAdapter({ routes: (router) => router.service(Health, { check }) });
  const server = createHttp2Server(routes);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => void server.close());
  // It listens on TCP, so its address is no text.
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  const orders = createServer((_, response) => response.end("one order"));
  addresses.set("orders.example:50051", `127.0.0.1:${await startGrpc()}`);
  addresses.set("orders.example:8080", `127.0.0.1:${await startConnect()}`);
  addresses.set("orders.example", `127.0.0.1:${await listenOnLoopback(stage, orders)}`);
  await symlink(resolve("node_modules"), join(stage.folder, "node_modules"));
  const health = resolve("src/gen/grpc/health/v1/health_pb.js");
  await writeFile(join(stage.folder, "health_pb.ts"), `export * from ${JSON.stringify(health)};`);
  await writeFile(join(stage.folder, "package.json"), '{"type": "module"}');
  const config = {
    extends: resolve("tsconfig.json"),
    compilerOptions: {
      paths,
      typeRoots: [resolve("node_modules/@types")],
      // Some types of Connect are those of browsers.
      lib: ["ES2023", "DOM", "DOM.Iterable"],
    },
    include: ["*.ts"],
  };
  await writeFile(join(stage.folder, "tsconfig.json"), JSON.stringify(config));
  for (const { name, text } of examples) {
    let here = text;
    for (const [address, real] of addresses) here = here.replaceAll(address, real);
    await writeFile(join(stage.folder, `${name}.ts`), here);
  }
});

describe("the guide of adapters", () => {
  it("shows programs that compile", async () => {
    expect(examples).toHaveLength(4);
    const compiler = resolve("node_modules/typescript/bin/tsc");
    const { stdout } = await run(process.execPath, [compiler, "-p", stage.folder]).catch(
      (error: { readonly stdout: string }) => error,
    );
    expect(stdout).toBe("");
  });

  it.each(examples)("shows what a program prints: $name", async ({ name, text }) => {
    const program = bundledProgram(pathToFileURL(join(stage.folder, `${name}.ts`)));
    const { stdout } = await run(process.execPath, [program], { timeout: 30_000 });
    const printed = [...text.matchAll(/\/\/ prints (.+)$/gm)].map(([, line]) => line);
    expect(stdout.trimEnd().split("\n")).toEqual(printed);
  });
});
