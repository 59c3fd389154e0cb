import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import {
  AdminConnections,
  type AdminRequestHandler,
} from "../../../../src/app/admin/admin-connections.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { useStage } from "../../../support/stage.js";
import { waitFor, within } from "../../../support/wait.js";

const stage = useStage("test");

const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/** Connections that are handed over as the admin port does, and a client of them. */
async function start(
  options: { readonly handle?: AdminRequestHandler; readonly headersMsMax?: number } = {},
): Promise<{ readonly connections: AdminConnections; readonly client: Socket }> {
  const { handle = (_, response) => response.end("done"), headersMsMax } = options;
  const connections = new AdminConnections(new FakeClock(), handle, headersMsMax);
  const server = createServer((socket) => {
    connections.accept(socket, { address: "", certificateNames: [] });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => server.close());
  stage.atEnd(() => connections.destroy());
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  stage.atEnd(() => client.destroy());
  return { connections, client };
}

/** Waits until the other side has ended the connection. */
async function ended(client: Socket): Promise<void> {
  client.resume();
  await within("the connection ends", 10_000, once(client, "end"));
}

describe("AdminConnections, over HTTP/1.1", () => {
  it("ends connections that are idle, and others when they are answered", async () => {
    const held: (() => void)[] = [];
    const { connections, client } = await start({
      handle: ({ url }, response) => {
        if (url === "/held") held.push(() => response.end("held"));
        else response.end("done");
      },
    });
    client.write(request);
    await once(client, "data");
    client.write(request.replace("/", "/held"));
    await waitFor("it is asked", () => held.length === 1);
    connections.finish();
    held[0]?.();
    expect(String(await once(client, "data"))).toContain("held");
    connections.finish();
    await ended(client);
    await waitFor("it is gone", () => connections.openCount === 0);
  });

  it("cuts a client that never says the rest of its headers", async () => {
    const { client } = await start({ headersMsMax: 100 });
    client.write(request.slice(0, -4));
    await ended(client);
  });
});
