import { mkdir } from "node:fs/promises";
import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type CertificateWish, TestAuthority } from "../support/certificates.js";
import { secretsFolder, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { askUpgrade, startUpgradingUpstream } from "../support/upgrading-upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const authority = new TestAuthority();

function client() {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return http;
}

describe("a generated edge proxy", () => {
  it.each([
    ["redirects by itself", undefined, 307, []],
    ["refuses", "rejectRequest", 400, []],
    ["leaves as it is", "keepUnchanged", 200, ["/a%2Fb"]],
    ["unescapes", "unescapeAndForward", 200, ["/a/b"]],
  ])("%s an escaped slash in a path", async (_, action, status, arriving) => {
    const upstream = await startScriptedUpstream(stage);
    const paths: (string | undefined)[] = [];
    upstream.answer = (_index, { url }) => {
      paths.push(url);
      return { status: 200 };
    };
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${upstream.port}}}`,
      ...(action && { listener: { pathWithEscapedSlashesAction: action } }),
    });
    const answer = await client().send({ port: envoy.port, path: "/a%2Fb" });
    expect([answer.status, paths]).toEqual([status, arriving]);
  });

  it("lets requests change to the protocols that a service names, and to no others", async () => {
    const port = await startUpgradingUpstream(stage);
    const service = (name: string, more: string) =>
      `- {name: ${name}, hosts: [${name}.test], upstream: {address: 127.0.0.1, port: ${port}}` +
      `${more}}`;
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        ${service("usual", ", timeouts: {request: 100ms}")}
        ${service("none", ", upgrades: []")}
        ${service("shell", ", upgrades: [spdy/3.1]")}
      `,
    });
    const ask = (name: string, protocol: string) =>
      askUpgrade(stage, { port: envoy.port, protocol, host: `${name}.test` });
    expect(await ask("none", "websocket")).toEqual({ kind: "answered", status: 403 });
    expect(await ask("shell", "websocket")).toEqual({ kind: "answered", status: 403 });
    expect(await ask("usual", "spdy/3.1")).toEqual({ kind: "answered", status: 403 });
    expect(await ask("shell", "SPDY/3.1")).toMatchObject({ kind: "upgraded" });
    const outcome = await ask("usual", "websocket");
    if (outcome.kind !== "upgraded") throw new Error(`answered ${outcome.status}`);
    const beganMs = performance.now();
    await waitFor("it outlives the time of a request", async () => {
      expect(await outcome.echo("ping")).toBe("ping");
      return performance.now() - beganMs > 1_000;
    });
  });
});

/** A server whose certificate says this, and the folder with its authority. */
async function startTlsUpstream(wish: CertificateWish) {
  const folder = new TlsFolder(join(stage.folder, "upstream"));
  const server = authority.issue(wish);
  await folder.write({ server, clientAuthority: authority.certificate });
  const shown: unknown[] = [];
  const upstream = createServer(
    {
      cert: server.certificate,
      key: server.key,
      ca: authority.certificate,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (_, response) => response.end("over TLS\n"),
  );
  upstream.on("secureConnection", ({ servername, authorized }) => {
    shown.push({ servername, authorized });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  return { port: (upstream.address() as AddressInfo).port, folder, shown };
}

describe("a generated proxy before a service of TLS", () => {
  const service = (port: number, tls: string) =>
    `- {name: orders, upstream: {address: 127.0.0.1, port: ${port}, tls: ${tls}}, ` +
    "timeouts: {connect: 5s}}";

  it.each([
    ["the name that it asks for", { names: ["orders.shop"] }, {}, 200],
    [
      "one of the names",
      { uris: ["spiffe://shop/orders"] },
      { subjectAltNames: ["a", "spiffe://shop/orders"] },
      200,
    ],
    ["another name", { names: ["payments.shop"] }, {}, 503],
    ["none of the names", { names: ["orders.shop"] }, { subjectAltNames: ["payments.shop"] }, 503],
    ["an end that is over", { names: ["orders.shop"], isExpired: true }, {}, 503],
  ])("takes a certificate with %s: %#", async (_, wish, names, status) => {
    const { port, folder, shown } = await startTlsUpstream(wish);
    const tls = { caFile: folder.authorityPath, serverName: "orders.shop", ...names };
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(port, JSON.stringify(tls)),
    });
    const answer = await client().send({ port: envoy.port });
    expect(answer.status).toBe(status);
    expect(shown).toEqual(status === 200 ? [{ servername: "orders.shop", authorized: false }] : []);
  });

  it("shows its certificate", async () => {
    const { port, folder, shown } = await startTlsUpstream({ addresses: ["127.0.0.1"] });
    const { authorityPath: caFile, certificatePath: certFile, keyPath: keyFile } = folder;
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(port, JSON.stringify({ caFile, certFile, keyFile })),
    });
    expect((await client().send({ port: envoy.port })).status).toBe(200);
    // An address is no name that could be asked for.
    expect(shown).toEqual([{ servername: false, authorized: true }]);
  });

  it("follows the authorities of a secret, and shows its certificate", async () => {
    const { port, shown } = await startTlsUpstream({ addresses: ["127.0.0.1"] });
    const mounted = join(secretsFolder(stage), "shop");
    await mkdir(mounted, { recursive: true });
    const files = new TlsFolder(mounted);
    const server = authority.issue({ names: ["edge.shop"] });
    const swap = (version: string, { certificate: clientAuthority }: TestAuthority) =>
      files.swap(version, { server, clientAuthority });
    await swap("first", new TestAuthority("Another authority"));
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(port, "{secret: shop, mutual: true}"),
      proxies: `secretsFolder: ${secretsFolder(stage)}`,
    });
    const http = client();
    const status = async () => (await http.send({ port: envoy.port })).status;
    expect(await status()).toBe(503);
    await swap("second", authority);
    await waitFor("it trusts the service", async () => (await status()) === 200);
    expect(shown).toContainEqual({ servername: false, authorized: true });
  });

  it("trusts the system's authorities where the policy names none", async () => {
    const { port } = await startTlsUpstream({ addresses: ["127.0.0.1"] });
    const { envoy } = await startGeneratedEnvoy(stage, { services: service(port, "{}") });
    expect((await client().send({ port: envoy.port })).status).toBe(503);
    expect(await envoy.stat("cluster.orders.ssl.fail_verify_error")).toBeGreaterThan(0);
  });

  it("speaks plaintext where TLS is off", async () => {
    const server = createPlainServer((_, response) => response.end("plain\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const { envoy } = await startGeneratedEnvoy(stage, { services: service(port, "off") });
    expect((await client().send({ port: envoy.port })).status).toBe(200);
  });
});
