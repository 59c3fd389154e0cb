import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { OpenStore } from "../../src/app/store/open-store.js";
import { isServiceError, type ServiceError } from "../../src/core/base/errors.js";
import { type CertificateWish, TestAuthority } from "../support/certificates.js";
import { once, testCharge } from "../support/charges.js";
import { type Env, openConfiguredStore } from "../support/configured-store.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisSentinel, sentinelPrimaryName } from "../support/redis-sentinels.js";
import { soon } from "../support/redis-store.js";
import {
  type CertificateFiles,
  redisTlsArgs,
  startTlsRedis,
  writeCertificateFiles,
} from "../support/redis-tls.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

// Each has servers of its own, and waits for them more than it works: they run side by side.
const stage = useStage("file");
const authority = new TestAuthority();
const stranger = new TestAuthority();

function open(env: Env): Promise<OpenStore> {
  return openConfiguredStore(stage, env);
}

/** "none" when a charge was decided, else why not. */
async function codeOf(opened: OpenStore): Promise<string> {
  return (await failureOf(opened))?.code ?? "none";
}

async function failureOf({ store }: OpenStore): Promise<ServiceError | undefined> {
  try {
    await store.take([once(testCharge())], soon());
    return undefined;
  } catch (thrown) {
    if (isServiceError(thrown)) return thrown;
    throw thrown;
  }
}

function clientFiles(wish: CertificateWish = {}, from = authority): Promise<CertificateFiles> {
  return writeCertificateFiles(stage, from.issue(wish), authority);
}

function tlsEnv({ certificate, key, authority: trusted }: CertificateFiles): Env {
  return {
    REDIS_TLS: "true",
    REDIS_TLS_CACERT: trusted,
    REDIS_TLS_CLIENT_CERT: certificate,
    REDIS_TLS_CLIENT_KEY: key,
  };
}

describe.concurrent("a Redis over TLS", () => {
  it.each<[string, CertificateWish, Env, RegExp | "none"]>([
    ["that is trusted", { addresses: ["127.0.0.1"] }, {}, "none"],
    [
      "of an authority that nobody named",
      {},
      { REDIS_TLS_CACERT: "" },
      /not signed by a trusted CA/,
    ],
    [
      "whose certificate has expired",
      { addresses: ["127.0.0.1"], isExpired: true },
      {},
      /has expired/,
    ],
    [
      "whose certificate is for another host",
      { names: ["elsewhere"] },
      {},
      /does not contain the configured host name/,
    ],
    [
      "whose certificate is for another host, which does not matter",
      { names: ["elsewhere"] },
      { REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "true" },
      "none",
    ],
    [
      "that has expired, where only the host does not matter",
      { names: ["elsewhere"], isExpired: true },
      { REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "true" },
      /has expired/,
    ],
  ])("%s", async (_, wish, env, wanted) => {
    const { tlsPort } = await startTlsRedis(stage, { authority, wish });
    const {
      REDIS_TLS_CLIENT_CERT: _c,
      REDIS_TLS_CLIENT_KEY: _k,
      ...ours
    } = tlsEnv(await clientFiles());
    const opened = await open({ REDIS_URL: `127.0.0.1:${tlsPort}`, ...ours, ...env });
    if (wanted === "none") {
      expect(await codeOf(opened)).toBe("none");
      return;
    }
    const failure = await failureOf(opened);
    expect(failure?.code).toBe("STORE_TLS_FAILED");
    expect(failure?.message).toMatch(wanted);
  });

  it("is asked for by its host name, and by a URL", async () => {
    const { tlsPort } = await startTlsRedis(stage, { authority, wish: { names: ["localhost"] } });
    const env = tlsEnv(await clientFiles());
    const opened = await open({
      ...env,
      REDIS_TLS: "false",
      REDIS_URL: `rediss://localhost:${tlsPort}`,
    });
    expect(await codeOf(opened)).toBe("none");
  });

  it.each<[string, (wish?: CertificateWish) => Promise<Env>, string]>([
    ["that is known", async () => tlsEnv(await clientFiles()), "none"],
    [
      "that is none",
      async () => ({ REDIS_TLS: "1", REDIS_TLS_CACERT: (await clientFiles()).authority }),
      "STORE_TLS_FAILED",
    ],
    ["of a stranger", async () => tlsEnv(await clientFiles({}, stranger)), "STORE_TLS_FAILED"],
    [
      "that has expired",
      async () => tlsEnv(await clientFiles({ isExpired: true })),
      "STORE_TLS_FAILED",
    ],
  ])("that wants a certificate of us, and gets one %s", async (_, envOf, code) => {
    const { tlsPort } = await startTlsRedis(stage, { authority, knowsClients: true });
    const opened = await open({ REDIS_URL: `127.0.0.1:${tlsPort}`, ...(await envOf()) });
    await waitFor(code, async () => (await codeOf(opened)) === code);
  });

  it("that speaks plain text there", async () => {
    const { server } = await startTlsRedis(stage, { authority });
    const opened = await open({
      REDIS_URL: `127.0.0.1:${server.port}`,
      ...tlsEnv(await clientFiles()),
    });
    // It answers some handshakes with nonsense, hangs up on others, and most it lets wait: that is
    // seen only when the time for a handshake is over.
    const failure = await waitFor("it is known why", async () => {
      const found = await failureOf(opened);
      return found?.code === "STORE_TLS_FAILED" ? found : undefined;
    });
    expect(failure.message).toMatch(/this port uses TLS/);
  });

  it("that we speak plain text to is away, and is asked about TLS", async () => {
    const { tlsPort } = await startTlsRedis(stage, { authority });
    const opened = await open({ REDIS_URL: `127.0.0.1:${tlsPort}` });
    expect(await codeOf(opened)).toBe("STORE_UNAVAILABLE");
  });

  it("has the rights of an ACL user", async () => {
    const { server, tlsPort } = await startTlsRedis(stage, { authority, knowsClients: true });
    await server.client().call("acl", "setuser", "gate", "on", ">p:w", "~headgate:*", "+@all");
    await server.client().call("acl", "setuser", "default", "off");
    const env = { REDIS_URL: `127.0.0.1:${tlsPort}`, ...tlsEnv(await clientFiles()) };
    expect(await codeOf(await open({ ...env, REDIS_AUTH: "gate:p:w" }))).toBe("none");
    await expect(open({ ...env, REDIS_AUTH: "gate:hunter2" })).rejects.toThrow(/REDIS_AUTH/);
  });
});

describe.concurrent("the files of TLS with Redis", () => {
  it("are read again for the next connection, when they are good", async () => {
    const { server, tlsPort } = await startTlsRedis(stage, { authority, knowsClients: true });
    const files = await clientFiles({}, stranger);
    const opened = await open({ REDIS_URL: `127.0.0.1:${tlsPort}`, ...tlsEnv(files) });
    await waitFor("it is refused", async () => (await codeOf(opened)) === "STORE_TLS_FAILED");
    const known = authority.issue();
    await writeFile(files.certificate, known.certificate);
    await writeFile(files.key, known.key);
    await waitFor("it is let in", async () => (await codeOf(opened)) === "none");
    // Half of a new pair, and no authorities any more: what was good stays.
    await writeFile(files.certificate, authority.issue().certificate);
    await writeFile(files.authority, "");
    const admin = server.client();
    await admin.call("client", "kill", "type", "normal", "skipme", "yes");
    await waitFor("it is lost", async () => (await codeOf(opened)) !== "none");
    await waitFor("it is let in again", async () => (await codeOf(opened)) === "none");
  });

  it("must be good at the start, and what is wrong is told by the setting", async () => {
    const files = await clientFiles();
    const env = { REDIS_URL: "127.0.0.1:1", ...tlsEnv(files) };
    await expect(open({ ...env, REDIS_TLS_CACERT: files.key })).rejects.toThrow(
      /^REDIS_TLS_CACERT names a file without a complete certificate/,
    );
    await expect(open({ ...env, REDIS_TLS_CLIENT_KEY: "/none-73" })).rejects.toThrow(
      /^REDIS_TLS_CLIENT_KEY names a file that cannot be read: no such file or directory; mount/,
    );
    await expect(open({ ...env, REDIS_TLS_CLIENT_KEY: files.authority })).rejects.toThrow(
      /do not match/,
    );
  });
});

describe.concurrent("a second Redis over TLS", () => {
  it("stands beside a first one behind a Unix socket", async () => {
    const { server: first } = await startTlsRedis(stage, { authority });
    const { server: second, tlsPort } = await startTlsRedis(stage, { authority });
    const { store } = await open({
      ...tlsEnv(await clientFiles()),
      REDIS_TLS: "false",
      REDIS_SOCKET_TYPE: "unix",
      REDIS_URL: first.socketPath,
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_URL: `127.0.0.1:${tlsPort}`,
      REDIS_PERSECOND_TLS: "true",
    });
    const wide = { burst: 100_000_000, cost: 1_000_000, hits: 1 };
    const bySecond = testCharge({ ...wide, key: "s", periodUs: 1_000_000 });
    await store.take([once(bySecond), once(testCharge({ ...wide, key: "m" }))], soon());
    expect(await first.client().keys("*")).toEqual(["headgate:m"]);
    expect(await second.client().keys("*")).toEqual(["headgate:s"]);
  });
});

describe.concurrent("a cluster over TLS", () => {
  it.each<[string, CertificateWish, readonly string[]]>([
    ["by addresses", { addresses: ["127.0.0.1"] }, []],
    [
      "by the host names that its nodes announce",
      { names: ["localhost"] },
      ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"],
    ],
  ])("is found %s", async (_, wish, words) => {
    const tlsPorts: number[] = [];
    const cluster = await RedisCluster.start("redis", 3, async () => {
      const { args, tlsPort } = await redisTlsArgs(stage, { authority, wish });
      tlsPorts.push(tlsPort);
      return [...args, "--tls-cluster", "yes", ...words];
    });
    stage.atEnd(() => cluster.stop());
    const host = wish.names?.[0] ?? "127.0.0.1";
    const { store } = await open({
      ...tlsEnv(await clientFiles()),
      REDIS_TYPE: "cluster",
      REDIS_URL: `${host}:${tlsPorts[0]}`,
    });
    const wide = { burst: 100_000_000, cost: 1_000_000, hits: 1 };
    const batch = Array.from({ length: 30 }, (_, i) => once(testCharge({ ...wide, key: `k${i}` })));
    const outcomes = await store.take(batch, soon());
    expect(outcomes.filter(({ kind }) => kind !== "decided")).toEqual([]);
    const held = await Promise.all([0, 1, 2].map((node) => cluster.control(node).dbsize()));
    expect(Math.min(...held)).toBeGreaterThan(0);
  });
});

describe.concurrent("sentinels over TLS", () => {
  it("lead to a Redis over TLS", async () => {
    const sync = ["--tls-replication", "yes"];
    const { server, tlsPort } = await startTlsRedis(stage, { authority, args: sync });
    const { args, tlsPort: sentinelPort } = await redisTlsArgs(stage, { authority });
    const tlsLines = [...args, ...sync].join(" ").split(" --").join("\n").replace("--", "");
    const sentinel = await RedisSentinel.start(tlsPort, { lines: tlsLines.split("\n") });
    stage.atEnd(() => sentinel.stop());
    await waitFor("it sees the server", async () => {
      return (await sentinel.state()).get("flags") === "master";
    });
    const opened = await open({
      ...tlsEnv(await clientFiles()),
      REDIS_TYPE: "sentinel",
      REDIS_URL: `${sentinelPrimaryName},127.0.0.1:${sentinelPort}`,
    });
    expect(await codeOf(opened)).toBe("none");
    expect(await server.client().dbsize()).toBeGreaterThan(0);
  });
});
