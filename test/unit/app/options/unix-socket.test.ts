import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  listenOnSocket,
  parseSocketPath,
  socketPathBytesMax,
} from "../../../../src/app/options/unix-socket.js";
import { waitFor, within } from "../../../support/wait.js";

let folder: string;
let servers: Server[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-uds-"));
  servers = [];
});

afterEach(async () => {
  for (const server of servers) server.close();
  await rm(folder, { recursive: true });
});

function create(): Server {
  // Whoever only knocks is gone before it is greeted.
  const server = createServer((socket) => socket.on("error", () => {}).end("hello"));
  servers.push(server);
  return server;
}

async function listenAt(path: string): Promise<Server> {
  const server = create();
  await listenOnSocket(server, { path, setting: "GRPC_UDS", connectionsMax: 2 });
  return server;
}

function refusalAt(path: string): Promise<string> {
  return listenAt(path).then(
    () => "it listens",
    (thrown: unknown) => String(thrown),
  );
}

function greeting(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once("data", (bytes) => resolve(String(bytes)));
    socket.once("error", reject);
  });
}

/** What a process leaves behind that is killed while it listens. */
async function leaveDeadSocket(path: string): Promise<void> {
  const program = `require("node:net").createServer().listen(${JSON.stringify(path)})`;
  const child = spawn(process.execPath, ["--eval", program], { stdio: "ignore" });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await waitFor("the other process listens", () => existsSync(path));
  child.kill("SIGKILL");
  await within("the other process is dead", 10_000, ended);
  expect((await lstat(path)).isSocket()).toBe(true);
}

describe("parseSocketPath()", () => {
  it("takes paths up to what a socket's address holds", () => {
    const longest = `/${"a".repeat(socketPathBytesMax - 1)}`;
    expect(parseSocketPath(longest)).toEqual({ kind: "value", value: longest });
    expect(parseSocketPath(`${longest}a`)).toMatchObject({ kind: "problem" });
    // Two bytes in one character.
    expect(parseSocketPath(longest.replace("a", "\u00e4"))).toMatchObject({ kind: "problem" });
  });

  it.each(["@headgate", "/run/a\0b"])("refuses %j without repeating it", (text) => {
    const parsed = parseSocketPath(text);
    expect(parsed.kind === "problem" && parsed.message).toMatch(/^must be a path/);
  });
});

describe("listenOnSocket()", () => {
  it("lets owner and group connect, and removes the socket when it closes", async () => {
    const path = join(folder, "grpc.sock");
    const server = await listenAt(path);
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    expect(await greeting(path)).toBe("hello");
    await new Promise((resolve) => server.close(resolve));
    expect(existsSync(path)).toBe(false);
  });

  it("listens at the longest path", async () => {
    const path = join(folder, "a".repeat(socketPathBytesMax - folder.length - 1));
    expect(Buffer.byteLength(path)).toBe(socketPathBytesMax);
    await listenAt(path);
    expect(await greeting(path)).toBe("hello");
  });

  it("takes no more connections than it may", async () => {
    const path = join(folder, "grpc.sock");
    const server = create();
    server.removeAllListeners("connection");
    server.on("connection", (socket) => socket.write("hello"));
    await listenOnSocket(server, { path, setting: "GRPC_UDS", connectionsMax: 2 });
    const sockets = [connect({ path }), connect({ path })];
    for (const socket of sockets) await new Promise((resolve) => socket.once("data", resolve));
    const third = connect({ path }).on("error", () => {});
    await within("it is closed", 5_000, new Promise((resolve) => third.once("close", resolve)));
    for (const socket of sockets) socket.destroy();
  });

  it("replaces the socket of a process that was killed", async () => {
    const path = join(folder, "grpc.sock");
    await leaveDeadSocket(path);
    await listenAt(path);
    expect(await greeting(path)).toBe("hello");
  });

  it("leaves a socket alone that is in use", async () => {
    const path = join(folder, "grpc.sock");
    await listenAt(path);
    expect(await refusalAt(path)).toMatch(/the socket of GRPC_UDS is in use: stop/);
    expect(await greeting(path)).toBe("hello");
  });

  it("leaves everything alone that is not a socket", async () => {
    const file = join(folder, "notes.txt");
    await writeFile(file, "mine");
    expect(await refusalAt(file)).toMatch(/the path of GRPC_UDS is not a socket/);
    expect(await readFile(file, "utf8")).toBe("mine");
    const link = join(folder, "link");
    await symlink(file, link);
    expect(await refusalAt(link)).toContain("not a socket");
    await mkdir(join(folder, "directory"));
    expect(await refusalAt(join(folder, "directory"))).toContain("not a socket");
  });

  it("says what to do when the directory is missing", async () => {
    const refusal = await refusalAt(join(folder, "none", "grpc.sock"));
    expect(refusal).toContain("GRPC_UDS is in a directory that does not exist: create it");
    expect(refusal).not.toContain(folder);
  });
});
