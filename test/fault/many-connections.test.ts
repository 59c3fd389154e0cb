import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** As many as the gRPC port takes at a time, `grpcConnectionsMax`. */
const connectionsMax = 10_000;

/** HTTP/2's preface and an empty SETTINGS frame. Source: RFC 9113, section 3.4. */
const greeting = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

const policy = edgePolicy(`
      - key: user
        rate_limit: {unit: hour, requests_per_unit: 100}`);

/** Answers whether the peer lets a new connection be: its first frame, SETTINGS, says so. */
function isTaken(port: number, localAddress: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    stage.atEnd(() => {
      socket.destroy();
    });
    socket.on("error", () => {});
    socket.once("close", () => resolve(false));
    socket.once("data", () => resolve(true));
    socket.write(greeting);
  });
}

describe("one address", () => {
  it("has its share of connections, and no more, on each port", async () => {
    const env = { HEADGATE_CONNECTIONS_PER_ADDRESS_MAX: "3" };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    for (const [name, port] of [
      ["grpc", headgate.grpcPort],
      ["control", headgate.portOf("control")],
    ] as const) {
      const taken = [];
      for (let i = 0; i < 5; i += 1) taken.push(await isTaken(port, "127.0.0.2"));
      expect([name, taken]).toEqual([name, [true, true, true, false, false]]);
      expect(await isTaken(port, "127.0.0.3")).toBe(true);
      expect(await headgate.metric("headgate_refused_connections_total", { port: name })).toBe(2);
    }
    const client = startClient(stage, headgate);
    expect(outcomeOf(await client.ask({ descriptors: [["user=anna"]] }))).toBe("OK");
  });
});

describe("the monitoring port", () => {
  it("answers probes although one address holds all connections that it may have", async () => {
    const env = { HEADGATE_MONITORING_ADDR: "127.0.0.1:0" };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const port = headgate.portOf("monitoring");
    const open = new Set<Socket>();
    let closedCount = 0;
    stage.atEnd(() => {
      for (const socket of open) socket.destroy();
    });
    for (let i = 0; i < 120; i += 1) {
      const socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
      open.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => {
        closedCount += 1;
      });
      await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
      socket.resume();
    }
    await waitFor("those above its share are closed", () => closedCount === 20);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    expect((await http.send({ port, path: "/livez" })).status).toBe(200);
    const refused = { port: "monitoring" };
    expect(await headgate.metric("headgate_refused_connections_total", refused)).toBe(20);
    expect(headgate.output).toContain("connectionsRefused");
  });
});

describe("the gRPC port", () => {
  it("closes the connection above its most, and goes on with those that it has", async () => {
    const env = { HEADGATE_CONNECTIONS_PER_ADDRESS_MAX: "20000" };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const client = startClient(stage, headgate);
    expect(outcomeOf(await client.ask({ descriptors: [["user=anna"]] }))).toBe("OK");
    const open = new Set<Socket>();
    let closedCount = 0;
    stage.atEnd(() => {
      for (const socket of open) socket.destroy();
    });
    const openOne = async (): Promise<void> => {
      const socket = connect({ host: "127.0.0.1", port: headgate.grpcPort });
      socket.on("error", () => {});
      socket.once("close", () => {
        if (open.delete(socket)) closedCount += 1;
      });
      await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
      // Who says nothing is hung up on after a while, and that is another bound.
      socket.resume();
      socket.write(greeting);
      open.add(socket);
    };
    const openMany = async (count: number): Promise<void> => {
      for (let left = count; left > 0; left -= 200) {
        await Promise.all(Array.from({ length: Math.min(200, left) }, openOne));
      }
    };
    // The client has one of them.
    const extraCount = 20;
    await openMany(connectionsMax - 1 + extraCount);
    await waitFor("those above the most are closed", () => closedCount === extraCount, {
      withinMs: 20_000,
    });
    expect(open.size).toBe(connectionsMax - 1);
    expect(outcomeOf(await client.ask({ descriptors: [["user=anna"]] }))).toBe("OK");
    const [first] = open;
    if (first === undefined) throw new Error("there are many");
    open.delete(first);
    first.destroy();
    await waitFor("there is room for another one", async () => {
      const before = closedCount;
      await openOne();
      const settled = outcomeOf(await client.ask({ descriptors: [["user=anna"]] }));
      return settled === "OK" && closedCount === before;
    });
  });
});
