import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Backoff } from "../../../../src/core/base/backoff.js";
import {
  AdsClient,
  type AdsClientParts,
  type AdsEvent,
  adsConnectMsMax,
  repeatedAnswerMs,
  type SetVerdict,
} from "../../../../src/rpc/policy-xds/ads-client.js";
import {
  type DiscoveredSet,
  refusalCharsMax,
} from "../../../../src/rpc/policy-xds/ads-messages.js";
import {
  type AdsTarget,
  openGrpcJsAdsStream,
} from "../../../../src/rpc/policy-xds/grpc-js-ads-stream.js";
import { rateLimitConfigTypeUrl as typeUrl } from "../../../../src/rpc/policy-xds/rate-limit-config.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { realClock } from "../../../support/real-clock.js";
import { useStage } from "../../../support/stage.js";
import { TcpFaultProxy } from "../../../support/tcp-fault-proxy.js";
import { waitFor } from "../../../support/wait.js";
import { XdsServer, xdsSet } from "../../../support/xds-server.js";

const stage = useStage("test");
const backoff: Backoff = { initialMs: 50, maxMs: 200, growthFactor: 2, isJittered: false };
const accept = async (): Promise<SetVerdict> => ({ kind: "accepted", isRepeated: false });

let clients: AdsClient[] = [];

afterEach(() => {
  for (const client of clients) client.close();
  clients = [];
});

/** What a test changes of a client, and of whom it speaks to. */
interface Wish extends Partial<AdsClientParts> {
  readonly target?: Partial<AdsTarget>;
}

interface Rig {
  readonly client: AdsClient;
  readonly sets: DiscoveredSet[];
  readonly events: AdsEvent[];
}

function startClient(address: string, { target, ...parts }: Wish = {}): Rig {
  const sets: DiscoveredSet[] = [];
  const events: AdsEvent[] = [];
  const { decide = accept } = parts;
  const whole: AdsTarget = { address, headers: new Map(), messageBytesMax: 100_000, ...target };
  const client = new AdsClient({
    open: (listener) => openGrpcJsAdsStream(whole, listener),
    node: { id: "node-1", metadata: { zone: "a" }, version: "1.2.3" },
    typeUrl,
    backoff,
    connectRetryMs: 50,
    clock: realClock,
    random: new FakeRandom(),
    onEvent: (event) => events.push(event),
    ...parts,
    decide: (set) => {
      sets.push(set);
      return decide(set);
    },
  });
  clients.push(client);
  client.start();
  return { client, sets, events };
}

const one = [{ name: "one", domain: "one" }];
const two = [...one, { name: "two", domain: "two" }];

describe("AdsClient", () => {
  it("subscribes to all of its type, and acknowledges sets by version and nonce", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const headers = new Map([["x-team", "edge"]]);
    const { client, sets } = startClient(server.address, { target: { headers } });
    await server.requestWith("the first set is acknowledged", ({ version }) => version === "v1");
    server.hold("v2", two);
    await server.requestWith("the second one, too", ({ version }) => version === "v2");

    const [subscription, first, second, ...more] = server.requests();
    expect(subscription).toMatchObject({
      version: "",
      nonce: "",
      typeUrl,
      resourceNames: [],
      nodeId: "node-1",
      nodeMetadata: { zone: "a" },
      userAgent: "headgate",
      headers: { "x-team": "edge" },
    });
    expect(first).toMatchObject({ stream: 1, version: "v1", nonce: "nonce-1", nodeId: "node-1" });
    expect(second).toMatchObject({ stream: 1, version: "v2", nonce: "nonce-2" });
    expect(more).toEqual([]);
    expect(sets.map(({ version, resources }) => [version, resources.length])).toEqual([
      ["v1", 1],
      ["v2", 2],
    ]);
    expect(client.status).toMatchObject({ isConnected: true, ackCount: 2, nackCount: 0 });
  });

  it("refuses with the reason, the nonce and the version that stays active", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const reason = "x".repeat(refusalCharsMax - 4) + "\u{1f600}".repeat(10);
    const { client } = startClient(server.address, {
      decide: async ({ version }) =>
        version === "v1"
          ? { kind: "accepted", isRepeated: false }
          : { kind: "refused", reason, isRepeated: false },
    });
    await server.requestWith("the first is acknowledged", ({ version }) => version === "v1");
    server.tell({ kind: "send", ...xdsSet("v2", two) });
    const nack = await server.requestWith("a NACK", ({ refusal }) => refusal !== undefined);
    expect(nack).toMatchObject({ version: "v1", nonce: "nonce-2", code: 3 });
    expect(nack.refusal).toBe(`${"x".repeat(refusalCharsMax - 4)}...`);
    expect(client.status).toMatchObject({ ackCount: 1, nackCount: 1 });
  });

  it("does not race a server that sends a refused set again at once", async () => {
    const server = await XdsServer.start(stage);
    server.hold("bad", one);
    let count = 0;
    const clock = new FakeClock();
    const { client } = startClient(server.address, {
      clock,
      decide: async () => {
        count += 1;
        return { kind: "refused", reason: "no", isRepeated: count > 1 };
      },
    });
    for (let decidedCount = 2; decidedCount <= 5; decidedCount += 1) {
      await waitFor("it waits", () => count === decidedCount && clock.timerCount === 1);
      expect(client.status.nackCount).toBe(decidedCount - 1);
      clock.advance(repeatedAnswerMs - 1);
      await settlePromises();
      expect(client.status.nackCount).toBe(decidedCount - 1);
      clock.advance(1);
      await settlePromises();
      expect(client.status.nackCount).toBe(decidedCount);
    }
    // What is new is not kept waiting.
    await waitFor("it waits", () => count === 6 && clock.timerCount === 1);
    server.hold("good", two);
    await waitFor("it is decided on", () => count === 7);
  });

  it("takes no notice of other types, and counts them", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const { client, sets } = startClient(server.address);
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    server.tell({ kind: "send", ...xdsSet("x", one), typeUrl: "type.googleapis.com/x.Y" });
    await waitFor("it is counted", () => client.status.ignoredCount === 1);
    server.hold("v2", two);
    await waitFor("the next set is acknowledged", () => client.status.ackCount === 2);
    expect(sets).toHaveLength(2);
    await server.requestWith("the server is told", ({ version }) => version === "v2");
    expect(server.requests()).toHaveLength(3);
  });

  it("decides one at a time, and forgets what was overtaken meanwhile", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    let release = (): void => {};
    let workingCount = 0;
    const { client, sets } = startClient(server.address, {
      decide: async () => {
        workingCount += 1;
        expect(workingCount).toBe(1);
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        workingCount -= 1;
        return { kind: "accepted", isRepeated: false };
      },
    });
    await waitFor("the first is in work", () => sets.length === 1);
    for (const version of ["v2", "v3", "v4"]) server.hold(version, two);
    await waitFor("two were overtaken", () => client.status.ignoredCount === 2);
    release();
    await waitFor("the last is in work", () => sets.length === 2);
    release();
    await server.requestWith("it is acknowledged", ({ version }) => version === "v4");
    expect(sets.map(({ version }) => version)).toEqual(["v1", "v4"]);
  });

  it("comes back after a kill, and asks for the whole set again", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const { client, sets, events } = startClient(server.address);
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    server.kill();
    await waitFor("it knows", () => !client.status.isConnected && events.length >= 4);
    expect(client.status.lastEnd).toMatchObject({ reason: "unreachable" });
    await server.restart();
    // The same version, for other content: what a server does that counts from 1.
    server.hold("v1", two);
    await waitFor("the new set is acknowledged", () => client.status.ackCount === 2);
    const [subscription] = server.requests();
    expect(subscription).toMatchObject({ stream: 1, version: "", nonce: "" });
    expect(sets.map(({ resources }) => resources.length)).toEqual([1, 2]);
    expect(client.status.lastEnd).toBeUndefined();
    const kinds = events.map(({ kind }) => kind).filter((kind) => kind !== "retry");
    expect(kinds).toEqual(["connected", "disconnected", "connected"]);
  });

  it.each([
    ["ends the stream", 0, "ended"],
    ["ends it with an error", 13, "failed"],
    ["knows no such service", 12, "refused"],
    ["does not know us", 16, "refused"],
  ])("comes back to a server that %s", async (_what, code, reason) => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const { client, events } = startClient(server.address);
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    server.tell({ kind: "endStreams", code, details: "told to" });
    await waitFor("it is acknowledged again", () => client.status.ackCount === 2);
    expect(client.status.endCounts).toEqual(new Map([[reason, 1]]));
    expect(events[1]).toMatchObject({ kind: "disconnected", end: { reason } });
  });

  it("breaks off with a server that sends garbage, and comes back", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const { client } = startClient(server.address);
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    server.tell({ kind: "sendBytes", bytes: Buffer.from([0xff, 0xff, 0xff, 0xff]) });
    await waitFor("it is acknowledged again", () => client.status.ackCount === 2);
    expect(client.status.endCounts).toEqual(new Map([["unreadable", 1]]));
    await waitFor("one stream is left", () => server.streamCount() === 1);
  });

  it("takes a message up to the largest size, and no larger one", async () => {
    const server = await XdsServer.start(stage);
    const { client } = startClient(server.address, { target: { messageBytesMax: 50_200 } });
    await waitFor("it is there", () => client.status.isConnected);
    server.hold("v1", [{ name: "n".repeat(50_000), domain: "d" }]);
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    server.hold("v2", [{ name: "n".repeat(50_200), domain: "d" }]);
    await waitFor("it is refused by its size, again and again", () => {
      return (client.status.endCounts.get("too_large") ?? 0) >= 2;
    });
    server.hold("v3", one);
    await waitFor("the small one is acknowledged", () => client.status.ackCount === 2);
  });

  it("notices by pings that a server hangs", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    const random = new FakeRandom();
    const network = await TcpFaultProxy.start(stage, { targetPort: server.port, random });
    const { client } = startClient(`127.0.0.1:${network.port}`, {
      target: { keepaliveMs: 200, keepaliveAnswerMs: 300 },
    });
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
    network.setFault({ kind: "partition" });
    await waitFor("it is given up", () => !client.status.isConnected);
    network.setFault({ kind: "none" });
    await waitFor("it is acknowledged again", () => client.status.ackCount === 2);
  });

  it("waits longer from try to try while nobody is there, and says so once", async () => {
    const server = await XdsServer.start(stage);
    const { address } = server;
    server.kill();
    const clock = new FakeClock();
    const { client, events } = startClient(address, { clock });
    for (let count = 1; count <= 6; count += 1) {
      await waitFor("a try failed", () => client.status.endCounts.get("unreachable") === count);
      clock.advance(backoff.maxMs);
    }
    expect(events.filter(({ kind }) => kind === "disconnected")).toHaveLength(1);
    const waits = events.flatMap((event) => (event.kind === "retry" ? [event.waitMs] : []));
    expect(waits).toEqual([100, 200, 200, 200, 200]);
  });

  it("gives up on a server that takes the connection and says nothing", async () => {
    const mute = createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => mute.close());
    const clock = new FakeClock();
    const { port } = mute.address() as AddressInfo;
    const { client } = startClient(`127.0.0.1:${port}`, { clock });
    const held = new Promise((resolve) => mute.once("connection", resolve));
    await held;
    clock.advance(adsConnectMsMax - 1);
    expect(client.status.endCounts.size).toBe(0);
    clock.advance(1);
    expect(client.status.lastEnd).toMatchObject({ reason: "timeout" });
    client.close();
    expect(clock.timerCount).toBe(0);
  });

  it("says what is wrong with credentials, and tries them again", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    let openCount = 0;
    const target: AdsTarget = {
      address: server.address,
      headers: new Map(),
      messageBytesMax: 100_000,
    };
    const { client } = startClient(server.address, {
      open: (listener) => {
        openCount += 1;
        if (openCount === 1) throw new Error("no key");
        return openGrpcJsAdsStream(target, listener);
      },
    });
    expect(client.status.lastEnd).toEqual({ reason: "credentials", detail: "no key" });
    await waitFor("the set is acknowledged", () => client.status.ackCount === 1);
  });

  it("is silent after it was closed, whatever was under way", async () => {
    const server = await XdsServer.start(stage);
    server.hold("v1", one);
    let release = (): void => {};
    const { client, sets, events } = startClient(server.address, {
      decide: () =>
        new Promise((resolve) => {
          release = () => resolve({ kind: "accepted", isRepeated: false });
        }),
    });
    await waitFor("the set is in work", () => sets.length === 1);
    client.close();
    release();
    await waitFor("the stream is gone", () => server.streamCount() === 0);
    expect(server.requests()).toHaveLength(1);
    expect(client.status).toMatchObject({ isConnected: false, ackCount: 0 });
    expect(events.map(({ kind }) => kind)).toEqual(["connected"]);
  });
});
