import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { listen } from "../../../../src/app/base/listen.js";
import { waitFor } from "../../../support/wait.js";

const servers: { close(): unknown }[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

function place(port: number, host = "127.0.0.1") {
  return { host, port, hostSetting: "GRPC_HOST", portSetting: "GRPC_PORT", connectionsMax: 2 };
}

function create() {
  const server = createServer();
  servers.push(server);
  return server;
}

describe("listen()", () => {
  it("answers the port that it got", async () => {
    const address = await listen(create(), place(0));
    expect(address.host).toBe("127.0.0.1");
    expect(address.port).toBeGreaterThan(0);
  });

  it("takes no more connections than it may, and takes one again when one has left", async () => {
    const server = create();
    const open = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1");
        servers.push({ close: () => socket.destroy() });
        socket.once("data", () => resolve(true));
        socket.once("close", () => resolve(false));
      });
    const accepted: Socket[] = [];
    server.on("connection", (socket) => {
      accepted.push(socket);
      socket.write("hello");
    });
    const { port } = await listen(server, place(0));
    expect([await open(), await open(), await open()]).toEqual([true, true, false]);
    accepted[0]?.destroy();
    await waitFor("there is room again", open);
  });

  it("names a taken port, its setting and what to do", async () => {
    const { port } = await listen(create(), place(0));
    const thrown: unknown = await listen(create(), place(port)).catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: "LISTEN_FAILED" });
    expect(String(thrown)).toContain(`Port ${port} (GRPC_PORT) is in use on 127.0.0.1`);
    expect(String(thrown)).toContain("set GRPC_PORT to another port");
  });

  it("names the host's setting when the address is not this machine's", async () => {
    // Source: RFC 5737, an address for documentation.
    const thrown: unknown = await listen(create(), place(0, "192.0.2.1")).catch((error) => error);
    expect(String(thrown)).toContain("GRPC_HOST is not an address of this machine");
  });
});
