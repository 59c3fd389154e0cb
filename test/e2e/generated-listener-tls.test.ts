import { mkdir } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { connect, TLSSocket } from "node:tls";
import { beforeEach, describe, expect, it } from "vitest";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { secretsFolder, startGeneratedEnvoy } from "../support/generated-envoy.js";
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
async function start(tls: object, proxies = ""): Promise<number> {
  const upstream = await startScriptedUpstream(stage);
  const { envoy } = await startGeneratedEnvoy(stage, {
    services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${upstream.port}}}`,
    listener: { tls },
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
}

/** Rejects where the proxy will not have the caller. */
function ask(port: number, own?: TestCertificate): Promise<Answer> {
  const shown = own === undefined ? {} : { cert: own.certificate, key: own.key };
  const options = { host: "127.0.0.1", port, servername: serverName, ca: authority.certificate };
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, ...shown, agent: false }, (response) => {
      const { socket, statusCode: status } = response;
      if (!(socket instanceof TLSSocket)) throw new Error("answered in plaintext");
      const { serialNumber } = socket.getPeerCertificate();
      response.resume().once("end", () => resolve({ status, serialNumber }));
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
