import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import {
  type ExchangeClient,
  openExchange,
  requestHeaders,
  responseHeaders,
} from "../support/ext-proc.js";
import { expectUnharmed } from "../support/fault-rig.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const maxInFlight = 10;

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: idle}
spec:
  services:
    - name: orders
      admission: {maxInFlight: ${maxInFlight}, shedAt: off}
      timeouts: {request: 0s}
`;

/** Leads to a port from an address of its own. @returns where it listens */
async function openWayFrom(localAddress: string, port: number): Promise<number> {
  const sockets = new Set<Socket>();
  const way = createServer((client) => {
    const server = connect({ host: "127.0.0.1", port, localAddress });
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    for (const socket of sockets) socket.destroy();
    way.close();
  });
  return (way.address() as AddressInfo).port;
}

/** A proxy on a connection of its own. */
class Connection {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    stage.atEnd(() => this.#client.close());
  }

  /** Asks for a place; undefined: it was refused. */
  async ask(headers: Readonly<Record<string, string>> = {}): Promise<ExchangeClient | undefined> {
    const exchange = openExchange({ client: this.#client }, { "x-headgate-service": "orders" });
    // A Headgate that ends waits for exchanges that are open.
    stage.atEnd(() => exchange.cancel());
    exchange.send(requestHeaders(headers));
    const [answer] = await exchange.answered(1);
    return answer?.response.case === "requestHeaders" ? exchange : undefined;
  }

  /** Asks for so many places at a time. */
  async askMany(
    count: number,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<readonly ExchangeClient[]> {
    const asked = await Promise.all(Array.from({ length: count }, () => this.ask(headers)));
    return asked.filter((exchange) => exchange !== undefined);
  }
}

/** The upstream answers, and Envoy ends the stream. */
async function complete(exchange: ExchangeClient): Promise<void> {
  exchange.send(responseHeaders());
  await exchange.answered(2);
  exchange.end();
  await exchange.over();
}

// Live exchanges were bounded by connection alone, and a peer opens as many as it likes.
it("one peer has its part of the permits, on all connections (%s)", async () => {
  const env = { HEADGATE_PERMITS_PEER_PERCENT_MAX: "40" };
  const headgate = await HostedHeadgate.start(stage, { policy, env });
  const part = 0.4 * maxInFlight;
  const peer = Array.from({ length: 3 }, () => new Connection(headgate.grpcPort));
  const held = (await Promise.all(peer.map((one) => one.askMany(maxInFlight)))).flat();
  expect(held).toHaveLength(part);
  const [second, third] = [2, 3].map((host) => openWayFrom(`127.0.0.${host}`, headgate.grpcPort));
  expect(await new Connection((await second) ?? 0).askMany(maxInFlight)).toHaveLength(part);
  // Who comes last has what is left of all.
  const rest = maxInFlight - 2 * part;
  expect(await new Connection((await third) ?? 0).askMany(maxInFlight)).toHaveLength(rest);
  // What a peer gives back it may have again.
  await Promise.all(held.map(complete));
  expect(await peer[2]?.askMany(maxInFlight)).toHaveLength(part);
  await expectUnharmed(headgate);
});

const leaseMs = 2_000;

/** Leases end at the next look of a second; ten times that for a busy machine. */
const leaseEndMs = leaseMs + 10_000;

// What a caller says can end a lease sooner, and never later.
it.each([
  { says: "nothing", headers: {} },
  { says: "a day", headers: { "x-envoy-expected-rq-timeout-ms": "86400000" } },
  { says: "no end", headers: { "x-envoy-expected-rq-timeout-ms": "0", "grpc-timeout": "8H" } },
])(
  "one idle connection has all permits for a lease at most, and says $says",
  async ({ headers }) => {
    const env = { HEADGATE_PERMIT_LEASE_MS_MAX: String(leaseMs) };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const idle = new Connection(headgate.grpcPort);
    const honest = new Connection(await openWayFrom("127.0.0.2", headgate.grpcPort));
    expect(await idle.askMany(maxInFlight, headers)).toHaveLength(maxInFlight);
    expect(await honest.ask()).toBeUndefined();
    const served = async (): Promise<boolean> => {
      const exchanges = await honest.askMany(maxInFlight);
      await Promise.all(exchanges.map(complete));
      return exchanges.length === maxInFlight;
    };
    await waitFor("honest requests have all permits", served, { withinMs: leaseEndMs });
    // And keep them, however often the idle one asks for more.
    for (let i = 0; i < 10; i += 1) {
      expect(await idle.askMany(maxInFlight, headers)).toEqual([]);
      expect(await served()).toBe(true);
    }
    await expectUnharmed(headgate);
  },
);

describe("exchanges that fall silent", () => {
  it("lose their permits to who asks, and their peer has no others for them", async () => {
    const env = { HEADGATE_PERMIT_LEASE_MS_MAX: String(leaseMs) };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const silent = new Connection(headgate.grpcPort);
    const honest = new Connection(await openWayFrom("127.0.0.2", headgate.grpcPort));
    const idle = await silent.askMany(maxInFlight + 5);
    expect(idle).toHaveLength(maxInFlight);
    const lost = (): Promise<number> => headgate.metric("headgate_admission_leases_expired_total");
    await waitFor("their permits are free", async () => (await lost()) === maxInFlight);
    // A silent peer that asks again has nothing, and on another connection neither: for it, all is
    // still in use.
    expect(await silent.askMany(5)).toEqual([]);
    expect(await new Connection(headgate.grpcPort).askMany(5)).toEqual([]);
    const served = await honest.askMany(maxInFlight + 5);
    expect(served).toHaveLength(maxInFlight);
    await Promise.all(served.map(complete));
    expect(await headgate.metric("headgate_admission_inflight")).toBe(0);
    const outcomes = (outcome: string): Promise<number> =>
      headgate.metric("headgate_admission_outcomes_total", { outcome });
    expect(await outcomes("success")).toBe(maxInFlight);
    expect(await outcomes("ignore")).toBe(0);
    expect(await outcomes("dropped")).toBe(0);
    // Each that ends after all makes room for one.
    for (const exchange of idle) exchange.cancel();
    await waitFor("they are over", async () => {
      return (await headgate.metric("headgate_ext_proc_streams_open")) === 0;
    });
    expect(await silent.askMany(maxInFlight)).toHaveLength(maxInFlight);
    await expectUnharmed(headgate);
  });
});
