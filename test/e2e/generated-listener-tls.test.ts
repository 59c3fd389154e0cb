import { mkdir, writeFile } from "node:fs/promises";
import {
  connect as connectHttp2,
  createSecureServer,
  createServer,
  type Http2ServerResponse,
} from "node:http2";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, TLSSocket } from "node:tls";
import { beforeEach, describe, expect, it } from "vitest";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { secretsFolder, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HttpClient } from "../support/http-client.js";
import { http3Client } from "../support/http3-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const authority = new TestAuthority();
const serverName = "edge.shop";

let folder: TlsFolder;
beforeEach(async () => {
  folder = new TlsFolder(join(stage.folder, "edge"));
  const server = authority.issue({ names: [serverName] });
  await folder.write({ server, clientAuthority: authority.certificate });
});

/** Starts a proxy with this TLS, before a service that always answers. */
async function start(tls: object, proxies = "", more: object = {}): Promise<number> {
  const upstream = await startScriptedUpstream(stage);
  const { envoy } = await startGeneratedEnvoy(stage, {
    services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${upstream.port}}}`,
    listener: { tls, ...more },
    proxies,
  });
  return envoy.port;
}

function files(): { readonly certFile: string; readonly keyFile: string } {
  return { certFile: folder.certificatePath, keyFile: folder.keyPath };
}

interface Answer {
  readonly status: number | undefined;
  /** Of the certificate that was shown. */
  readonly serialNumber: string;
  readonly altSvc: unknown;
}

/** Rejects where the proxy will not have the caller. */
function ask(port: number, own?: TestCertificate): Promise<Answer> {
  const shown = own === undefined ? {} : { cert: own.certificate, key: own.key };
  const options = { host: "127.0.0.1", port, servername: serverName, ca: authority.certificate };
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, ...shown, agent: false }, (response) => {
      const { socket, statusCode: status } = response;
      const { "alt-svc": altSvc } = response.headers;
      if (!(socket instanceof TLSSocket)) throw new Error("answered in plaintext");
      const { serialNumber } = socket.getPeerCertificate();
      response.resume().once("end", () => resolve({ status, serialNumber, altSvc }));
    });
    sent.once("error", reject);
    sent.end();
  });
}

/** What both sides agree on; rejects where they agree on nothing. */
function handshake(port: number, wish: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const ca = authority.certificate;
    const socket = connect({ host: "127.0.0.1", port, servername: serverName, ca, ...wish });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      resolve(`${socket.getProtocol()} ${socket.alpnProtocol}`);
      socket.destroy();
    });
  });
}

describe("a generated listener with certificates of files", () => {
  it("is called over TLS 1.2 or later, in HTTP/2 or HTTP/1.1", async () => {
    const port = await start(files());
    expect((await ask(port)).status).toBe(200);
    const ALPNProtocols = ["h2", "http/1.1"];
    expect(await handshake(port, { ALPNProtocols })).toBe("TLSv1.3 h2");
    expect(await handshake(port, { ALPNProtocols: ["http/1.1"] })).toBe("TLSv1.3 http/1.1");
    const upTo = (maxVersion: string) => ({ maxVersion, minVersion: "TLSv1", ALPNProtocols });
    expect(await handshake(port, upTo("TLSv1.2"))).toBe("TLSv1.2 h2");
    await expect(handshake(port, upTo("TLSv1.1"))).rejects.toThrow();
  });

  it("takes no older TLS than the policy says", async () => {
    const port = await start({ ...files(), minVersion: "TLSv1_3" });
    expect(await handshake(port, {})).toBe("TLSv1.3 false");
    await expect(handshake(port, { maxVersion: "TLSv1.2" })).rejects.toThrow();
  });

  it("lets in callers whose certificate has one of the names, and nobody else", async () => {
    const uri = "spiffe://mesh/ns/shop/sa/web";
    const subjectAltNames = ["web.shop", uri];
    const port = await start({ ...files(), clientCaFile: folder.authorityPath, subjectAltNames });
    expect((await ask(port, authority.issue({ names: ["web.shop"] }))).status).toBe(200);
    expect((await ask(port, authority.issue({ uris: [uri] }))).status).toBe(200);
    await expect(ask(port)).rejects.toThrow();
    await expect(ask(port, authority.issue({ names: ["other.shop"] }))).rejects.toThrow();
    const stranger = new TestAuthority("Another authority");
    await expect(ask(port, stranger.issue({ names: ["web.shop"] }))).rejects.toThrow();
  });
});

describe("a service behind a generated listener of TLS", () => {
  /** What a caller of HTTP/2 is answered. */
  async function askHttp2(port: number): Promise<number> {
    const ca = authority.certificate;
    const session = connectHttp2(`https://127.0.0.1:${port}`, { servername: serverName, ca });
    try {
      return await new Promise((resolve, reject) => {
        session.once("error", reject);
        const stream = session.request({ ":path": "/", ":authority": "orders" });
        stream.once("error", reject);
        stream.once("response", (headers) => resolve(headers[":status"] ?? 0));
      });
    } finally {
      session.destroy();
    }
  }

  /** Starts a service that answers which HTTP it is called in, and a proxy before it. */
  async function startBefore(speaks: "h2c" | "TLS", upstream: object): Promise<string> {
    const versions: string[] = [];
    const answer = (sent: { readonly httpVersion: string }, response: Http2ServerResponse) => {
      versions.push(sent.httpVersion);
      response.end();
    };
    const { certificate: cert, key } = authority.issue({ addresses: ["127.0.0.1"] });
    const service =
      speaks === "h2c"
        ? createServer(answer)
        : createSecureServer({ cert, key, allowHTTP1: true }, answer);
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => service.close());
    const { port } = service.address() as AddressInfo;
    const place = JSON.stringify({ address: "127.0.0.1", port, ...upstream });
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `- {name: orders, upstream: ${place}}`,
      listener: { tls: files() },
    });
    const status = await askHttp2(envoy.port);
    return `${status} by HTTP/${versions.join()}`;
  }

  it("is called in HTTP/1.1 whatever its callers speak", async () => {
    expect(await askHttp2(await start(files()))).toBe(200);
  });

  it("is called in HTTP/2 where the policy says so", async () => {
    expect(await startBefore("h2c", { protocol: "http2" })).toBe("200 by HTTP/2.0");
  });

  it("is called in what both sides of its own TLS agree on", async () => {
    const tls = { caFile: folder.authorityPath };
    expect(await startBefore("TLS", { tls })).toBe("200 by HTTP/2.0");
    expect(await startBefore("TLS", { tls, protocol: "http1" })).toBe("200 by HTTP/1.1");
  });
});

describe("a generated listener with the certificates of a secret", () => {
  it("follows them as they change, and asks callers for theirs", async () => {
    const folderOfShop = join(secretsFolder(stage), "shop");
    await mkdir(folderOfShop, { recursive: true });
    const mounted = new TlsFolder(folderOfShop);
    const clientAuthority = authority.certificate;
    const renew = (version: string) =>
      mounted.swap(version, { server: authority.issue({ names: [serverName] }), clientAuthority });
    await renew("first");
    const caller = authority.issue({ names: ["web.shop"] });
    const tls = { secret: "shop", mutual: true, subjectAltNames: ["web.shop"] };
    const port = await start(tls, `secretsFolder: ${secretsFolder(stage)}`);
    const { status, serialNumber } = await ask(port, caller);
    expect(status).toBe(200);
    await expect(ask(port)).rejects.toThrow();
    await expect(ask(port, authority.issue({ names: ["other.shop"] }))).rejects.toThrow();
    await renew("second");
    await waitFor("it shows the new one", async () => {
      return (await ask(port, caller)).serialNumber !== serialNumber;
    });
  });
});

describe("a generated listener with HTTP/3", () => {
  /** Starts an Envoy that speaks HTTP/3 to a port, and HTTP/1.1 to tests; its port. */
  async function startClient(port: number, own?: TestCertificate): Promise<number> {
    const [clientPort, adminPort] = [await freePort(), await freePort()];
    const files = new TlsFolder(join(stage.folder, "client"));
    const server = own ?? authority.issue();
    await files.write({ server, clientAuthority: authority.certificate });
    const path = join(stage.folder, "client.json");
    const shown = { certFile: files.certificatePath, keyFile: files.keyPath };
    const bootstrap = http3Client({
      port,
      clientPort,
      adminPort,
      serverName,
      caFile: files.authorityPath,
      ...(own === undefined ? {} : shown),
    });
    await writeFile(path, JSON.stringify(bootstrap));
    await Envoy.startFile(stage, { path, port: clientPort, adminPort });
    return clientPort;
  }

  const send = async (port: number) => {
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    return http.send({ port });
  };

  it("tells callers of it, and speaks it on the same port", async () => {
    const port = await start(files(), "", { http3: {} });
    expect((await ask(port)).altSvc).toBe(`h3=":${port}"; ma=86400`);
    const { status, headers } = await send(await startClient(port));
    expect([status, headers["alt-svc"]]).toEqual([200, `h3=":${port}"; ma=86400`]);
  });

  it("asks callers for a certificate there, too", async () => {
    const tls = { ...files(), clientCaFile: folder.authorityPath, subjectAltNames: ["web.shop"] };
    const port = await start(tls, "", { http3: {} });
    const status = async (own?: TestCertificate) => {
      return (await send(await startClient(port, own))).status;
    };
    expect(await status(authority.issue({ names: ["web.shop"] }))).toBe(200);
    expect(await status()).toBe(503);
    expect(await status(authority.issue({ names: ["other.shop"] }))).toBe(503);
  });

  it("bounds connections", async () => {
    const port = await start(files(), "", { http3: {}, maxConnections: 1 });
    const clients = [await startClient(port), await startClient(port)];
    const statuses: number[] = [];
    for (const one of clients) statuses.push((await send(one)).status);
    expect(statuses).toEqual([200, 503]);
  });
});
