import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import { defaultMessageBytes, type XdsChoice } from "../../../../src/app/config/xds-choice.js";
import { XdsPolicies } from "../../../../src/app/policy/policy-xds.js";
import type { Clock } from "../../../../src/core/base/clock.js";
import { RateLimitUnit } from "../../../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import type { ParseOptions } from "../../../../src/policy/parse.js";
import { refusalCharsMax } from "../../../../src/rpc/policy-xds/ads-messages.js";
import { TestAuthority, type TestCertificate } from "../../../support/certificates.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { parseHere } from "../../../support/parse-here.js";
import { realClock } from "../../../support/real-clock.js";
import { useStage } from "../../../support/stage.js";
import { waitFor } from "../../../support/wait.js";
import { type ConfigInit, XdsServer } from "../../../support/xds-server.js";

const stage = useStage("test");

let events: LogEvent[];
let sentences: string[];
let opened: XdsPolicies[];

const note = (event: LogEvent, sentence: string): void => {
  events.push(event);
  sentences.push(sentence);
};
const logger: Logger = { debug: () => {}, info: note, warn: note, error: note };

beforeEach(() => {
  events = [];
  sentences = [];
  opened = [];
});

afterEach(() => {
  for (const policies of opened) policies.close();
});

interface Given {
  readonly clock?: Clock;
  readonly parse?: ParseOptions;
}

function open(address: string, choice: Partial<XdsChoice> = {}, given: Given = {}) {
  const { clock = realClock, parse = {} } = given;
  const policies = new XdsPolicies({
    xds: {
      address,
      nodeId: "node",
      nodeMetadata: {},
      headers: new Map(),
      connectRetryMs: 10,
      backoff: { initialMs: 10, maxMs: 40, growthFactor: 2, isJittered: true },
      messageBytesMax: defaultMessageBytes,
      ...choice,
    },
    parse,
    parser: parseHere,
    programVersion: "0.0.0",
    clock,
    random: new FakeRandom(),
    logger,
  });
  opened.push(policies);
  policies.start();
  return policies;
}

function config(domain: string, requestsPerUnit = 5, unit = RateLimitUnit.HOUR): ConfigInit {
  const rateLimit = { unit, requestsPerUnit };
  return { name: `cfg/${domain}`, domain, descriptors: [{ key: "user", rateLimit }] };
}

const broken = config("broken", 5, RateLimitUnit.UNKNOWN);

function domainsOf(policies: XdsPolicies): readonly string[] {
  return [...(policies.current()?.domains.keys() ?? [])];
}

async function active(policies: XdsPolicies, ...domains: readonly string[]): Promise<void> {
  await waitFor(`${domains} are active`, () => domainsOf(policies).join() === domains.join());
}

function logged(name: string): readonly LogEvent[] {
  return events.filter(({ event }) => event === name);
}

describe("XdsPolicies", () => {
  it("activates a set, acknowledges it, and says so in one line", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    let loadedCount = 0;
    policies.onLoaded(() => {
      loadedCount += 1;
    });
    await waitFor("it is connected", () => policies.status.controlPlane?.isConnected === true);
    expect(policies.current()).toBeUndefined();

    server.hold("7", [config("shop", 9)]);
    await server.requestWith("the ACK", ({ version }) => version === "7");
    const rule = policies
      .current()
      ?.domains.get("shop")
      ?.match([{ key: "user", value: "a" }]);
    expect(rule?.effect).toMatchObject({ limits: [{ hits: 9, unit: "hour" }] });
    expect(policies.status).toMatchObject({ loadedCount: 1, refusedCount: 0, domainCount: 1 });
    expect(policies.xdsStatus).toMatchObject({ ackCount: 1, confirmedEpochUs: expect.any(Number) });
    expect(loadedCount).toBe(1);
    expect(events).toEqual([
      { event: "xdsConnected", server: server.address },
      expect.objectContaining({ event: "policyLoaded", controlPlaneVersion: "7", ruleCount: 1 }),
    ]);
  });

  it("takes each set for the whole: what is missing is gone, down to nothing", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    server.hold("1", [config("a"), config("b")]);
    await active(policies, "a", "b");
    server.hold("2", [config("b"), config("c")]);
    await active(policies, "b", "c");
    server.hold("3", []);
    await server.requestWith("the empty set is acknowledged", ({ version }) => version === "3");
    expect(policies.current()?.domains.size).toBe(0);
  });

  it("has no policy while the control plane has sent nothing, and so is not ready", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    server.hold("1", []);
    await server.requestWith("the empty set is acknowledged", ({ version }) => version === "1");
    expect(policies.current()).toBeUndefined();
    expect(policies.status.version).toBeUndefined();
    server.hold("2", [config("a")]);
    await active(policies, "a");
  });

  it("refuses a set that is wrong in a part, says where, and keeps the last good one", async () => {
    const server = await XdsServer.start(stage);
    const clock = new FakeClock();
    const policies = open(server.address, {}, { clock });
    server.hold("1", [config("shop")]);
    await active(policies, "shop");
    server.hold("2", [config("other"), broken]);
    const nack = await server.requestWith("the NACK", ({ refusal }) => refusal !== undefined);
    expect(nack).toMatchObject({ version: "1", code: 3 });
    expect(nack.refusal).toContain('cfg/broken:4:22: HG142 "UNKNOWN" is not a unit');
    expect(domainsOf(policies)).toEqual(["shop"]);
    expect(policies.status.lastProblem).toBe("cfg/broken:4:22: HG142 A unit is unknown.");
    const at = events.findIndex(({ event }) => event === "policyRefused");
    expect(events[at]).toMatchObject({ keptVersion: policies.current()?.version });
    expect(sentences[at]).toContain("HG142");

    // It is sent again as soon as it is refused; that is neither news nor work.
    await waitFor("three refusals", () => {
      clock.advance(1_000);
      return policies.xdsStatus.nackCount >= 3;
    });
    expect(logged("policyRefused")).toHaveLength(1);
    expect(policies.status.refusedCount).toBe(1);

    server.hold("3", [config("shop")]);
    await server.requestWith("the ACK", ({ version }) => version === "3");
    expect(policies.status.lastProblem).toBeUndefined();
    expect(policies.status.loadedCount).toBe(1);
  });

  it("sends no more of a report than fits, and logs all of it", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    const many = Array.from({ length: 90 }, (_, i) => ({
      ...broken,
      name: `n${i}`,
      domain: `${i}`,
    }));
    server.hold("1", many);
    const nack = await server.requestWith("the NACK", ({ refusal }) => refusal !== undefined);
    expect(nack.refusal).toHaveLength(refusalCharsMax);
    expect(policies.current()).toBeUndefined();
    expect(logged("policyRefused")).toHaveLength(1);
    expect(sentences.at(-1)).toContain("there is no other");
    expect(sentences.at(-1)).toContain("n89:4:22: HG142");
  });

  it("refuses a resource of another type, and one that is garbage", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    const typeUrl = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";
    const bad = [
      {
        resource: { typeUrl: "type.googleapis.com/x.Y", value: new Uint8Array() },
        words: "resource 1 is a type.googleapis.com/x.Y",
      },
      {
        resource: { typeUrl, value: new Uint8Array([0xff, 0xff, 0xff, 0xff]) },
        words: "resource 1 cannot be decoded",
      },
    ];
    for (const [i, { resource, words }] of bad.entries()) {
      const refusedCount = policies.status.refusedCount;
      server.tell({ kind: "hold", typeUrl, version: `${i}`, resources: [resource] });
      await server.requestWith(words, ({ refusal }) => refusal?.startsWith(words) === true);
      expect(policies.status.refusedCount).toBeGreaterThan(refusedCount);
    }
  });

  it("refuses a domain that two resources define, unless they may", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    const other = { name: "b", domain: "shop", descriptors: [{ key: "other" }] };
    server.hold("1", [config("shop"), other]);
    const nack = await server.requestWith("the NACK", ({ refusal }) => refusal !== undefined);
    expect(nack.refusal).toContain("HG150");
    expect(nack.refusal).toContain("is already defined in b:1");
    policies.close();

    const merging = open(server.address, {}, { parse: { mergesDomains: true } });
    await active(merging, "shop");
    expect(merging.current()?.rules).toHaveLength(2);
  });

  it("neither parses nor logs a set again that is active already", async () => {
    const server = await XdsServer.start(stage);
    const policies = open(server.address);
    server.hold("1", [config("a"), config("b")]);
    await active(policies, "a", "b");
    const before = policies.current();
    await server.restart();
    server.hold("other-name", [config("b"), config("a")]);
    await server.requestWith("the ACK", ({ version }) => version === "other-name");
    expect(policies.current()).toBe(before);
    expect(logged("policyLoaded")).toHaveLength(1);
    expect(logged("xdsDisconnected")).toMatchObject([{ reason: "lost" }]);
    expect(logged("xdsConnected")).toHaveLength(2);
  });
});

describe("XdsPolicies over TLS", () => {
  const authority = new TestAuthority();

  async function file(name: string, text: string): Promise<string> {
    const path = join(stage.folder, name);
    await writeFile(path, text);
    return path;
  }

  async function startServer(certificate: TestCertificate): Promise<XdsServer> {
    const server = await XdsServer.start(stage, {
      tls: {
        certificateFile: await file("server.crt", certificate.certificate),
        keyFile: await file("server.key", certificate.key),
        authorityFile: await file("server-ca.crt", authority.certificate),
      },
    });
    server.hold("1", [config("shop")]);
    return server;
  }

  /** What we trust and show; the files' names are the settings'. */
  async function tls(
    trusted: string,
    own?: TestCertificate,
    serverName?: string,
  ): Promise<NonNullable<XdsChoice["tls"]>> {
    const named = async (setting: string, text: string) => {
      return { setting, path: await file(setting, text) };
    };
    return {
      authority: await named("CA", trusted),
      ...(own === undefined
        ? {}
        : {
            identity: {
              certificate: await named("CERT", own.certificate),
              key: await named("KEY", own.key),
            },
          }),
      ...(serverName === undefined ? {} : { serverName }),
    };
  }

  const serverCertificate = authority.issue({ addresses: ["127.0.0.1"] });
  const own = authority.issue({ names: ["envoy-ratelimit"] });

  it("shows its certificate and takes the policy", async () => {
    const server = await startServer(serverCertificate);
    const policies = open(server.address, { tls: await tls(authority.certificate, own) });
    await active(policies, "shop");
  });

  it.each([
    ["without a certificate of ours", authority.certificate, undefined, undefined],
    ["with a stranger's", authority.certificate, new TestAuthority().issue(), undefined],
    ["trusting others", new TestAuthority().certificate, own, undefined],
    ["wanting another name", authority.certificate, own, "control-plane"],
  ])("gets nothing %s", async (_what, trusted, identity, serverName) => {
    const server = await startServer(serverCertificate);
    const policies = open(server.address, { tls: await tls(trusted, identity, serverName) });
    await waitFor("three tries failed", () => {
      const counts = [...policies.xdsStatus.endCounts.values()];
      return counts.reduce((sum, count) => sum + count, 0) >= 3;
    });
    expect(policies.current()).toBeUndefined();
    expect(server.requests()).toEqual([]);
  });

  it("takes a server for the name it is told to want", async () => {
    const server = await startServer(authority.issue({ names: ["control-plane"] }));
    const refused = open(server.address, { tls: await tls(authority.certificate, own) });
    await waitFor("it is refused by its address", () => {
      return (refused.xdsStatus.endCounts.get("unreachable") ?? 0) >= 1;
    });
    const choice = { tls: await tls(authority.certificate, own, "control-plane") };
    await active(open(server.address, choice), "shop");
  });

  it("says what is wrong with its files, and takes them when they are right", async () => {
    const server = await startServer(serverCertificate);
    const choice = { tls: await tls(authority.certificate, own) };
    await file("KEY", authority.issue().key);
    const policies = open(server.address, choice);
    expect(logged("xdsDisconnected")).toMatchObject([
      { reason: "credentials", detail: expect.stringContaining("OpenSSL rejects CERT, KEY, CA") },
    ]);
    await file("KEY", own.key);
    await active(policies, "shop");
  });
});
