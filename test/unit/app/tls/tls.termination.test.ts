import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import type { ClientSan } from "../../../../src/app/options/tls-client-san.js";
import { handshakesMax, TlsTermination } from "../../../../src/app/tls/tls.js";
import type { TlsMaterial } from "../../../../src/app/tls/tls-files.js";
import { peerOf } from "../../../../src/app/tls/tls-peer.js";
import type { TlsRefusal } from "../../../../src/app/tls/tls-refusal.js";
import { TestAuthority, type TestCertificate } from "../../../support/certificates.js";
import { waitFor } from "../../../support/wait.js";

const authority = new TestAuthority();
const stranger = new TestAuthority();
const serverPair = authority.issue({ names: ["headgate.shop"] });
const clientPair = authority.issue({ uris: ["spiffe://shop/edge"] });

const clientSan: ClientSan = { kind: "uri", value: "spiffe://shop/edge" };

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Running {
  readonly port: number;
  readonly termination: TlsTermination;
  readonly secured: TLSSocket[];
  readonly refused: TlsRefusal[];
}

function materialOf(
  { certificate, key }: TestCertificate,
  clients: "any" | "known" = "any",
): TlsMaterial {
  const authorities = clients === "any" ? {} : { clientAuthority: authority.certificate };
  return { certificate, key, ...authorities, beginEpochUs: 0, expiryEpochUs: 1 };
}

async function start(
  options: {
    readonly material?: TlsMaterial;
    readonly clientSan?: ClientSan;
    readonly handshakeMs?: number;
  } = {},
): Promise<Running> {
  const secured: TLSSocket[] = [];
  const refused: TlsRefusal[] = [];
  const { material = materialOf(serverPair), ...rest } = options;
  const termination = new TlsTermination({
    material,
    ...rest,
    onSecure: (socket) => {
      secured.push(socket);
      // As transports do.
      socket.on("error", () => socket.destroy());
      socket.on("data", (bytes: Buffer) => socket.write(bytes));
    },
    onRefused: (cause) => refused.push(cause),
  });
  const server = createServer((socket) => termination.accept(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(
    () => server.close(),
    () => secured.map((socket) => socket.destroy()),
  );
  return { port: (server.address() as AddressInfo).port, termination, secured, refused };
}

/** A client that knows the server, unless told otherwise. */
function dial({ port }: Running, options: ConnectionOptions = {}): TLSSocket {
  const socket = connectTls({
    host: "127.0.0.1",
    port,
    ca: authority.certificate,
    servername: "headgate.shop",
    ALPNProtocols: ["h2"],
    ...options,
  });
  socket.on("error", () => {});
  cleanups.push(() => socket.destroy());
  return socket;
}

function dialPlain({ port }: Running): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  cleanups.push(() => socket.destroy());
  return socket;
}

function shown({ certificate, key }: TestCertificate): ConnectionOptions {
  return { cert: certificate, key };
}

/** What comes back for what is sent. */
async function echo(socket: TLSSocket, text: string): Promise<string> {
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("data", (bytes) => resolve(String(bytes)));
    socket.once("close", () => reject(new Error("closed")));
  });
  socket.write(text);
  return answer;
}

function gone(socket: Socket): Promise<unknown> {
  return waitFor(
    "the connection is closed",
    () => socket.destroyed && socket.readyState !== "open",
  );
}

async function onlyRefusal(running: Running): Promise<TlsRefusal | undefined> {
  await waitFor("it is refused", () => running.refused.length > 0);
  await waitFor("nothing is left open", () => running.termination.handshakeCount === 0);
  expect(running.refused).toHaveLength(1);
  expect(running.secured).toEqual([]);
  return running.refused[0];
}

describe("a connection without clients' certificates", () => {
  it("is handed on when its handshake is done, and carries bytes both ways", async () => {
    const running = await start();
    const socket = dial(running);
    expect(await echo(socket, "hello")).toBe("hello");
    expect(socket.alpnProtocol).toBe("h2");
    expect(socket.getProtocol()).toBe("TLSv1.3");
    expect(running.termination.handshakeCount).toBe(0);
    expect(running.refused).toEqual([]);
  });

  it("may use TLS 1.2, with a fresh key for each connection", async () => {
    const running = await start();
    const socket = dial(running, { maxVersion: "TLSv1.2" });
    expect(await echo(socket, "hello")).toBe("hello");
    expect(socket.getCipher().name).toMatch(/^ECDHE-ECDSA-.*(?:GCM|POLY1305)/);
  });

  it("is ended when its client wants another handshake on it", async () => {
    const running = await start();
    const socket = dial(running, { maxVersion: "TLSv1.2" });
    expect(await echo(socket, "hello")).toBe("hello");
    socket.renegotiate({}, () => {});
    await gone(socket);
  });

  it("may be made with an RSA key, as Envoy Gateway makes them", async () => {
    const running = await start({ material: materialOf(authority.issue({ rsaBits: 2_048 })) });
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const socket = dial(running, { maxVersion, checkServerIdentity: () => undefined });
      expect(await echo(socket, "hello")).toBe("hello");
    }
  });

  it.each<readonly [string, ConnectionOptions, TlsRefusal]>([
    [
      "TLS 1.1",
      { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" },
      "tlsVersion",
    ],
    [
      "a cipher suite of old",
      { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-SHA" },
      "tlsVersion",
    ],
    ["another protocol", { ALPNProtocols: ["http/1.1"] }, "notHttp2"],
    // Node leaves without the word that other clients say.
    ["other authorities", { ca: stranger.certificate }, "connectionLost"],
  ])("is refused to a client of %s", async (_what, options, cause) => {
    const running = await start();
    const socket = dial(running, options);
    expect(await onlyRefusal(running)).toBe(cause);
    await gone(socket);
  });

  it("is refused to a client that asks for no protocol", async () => {
    const running = await start();
    const socket = dial(running, { ALPNProtocols: [] });
    expect(await onlyRefusal(running)).toBe("notHttp2");
    await gone(socket);
  });

  it.each([
    ["HTTP", "GET / HTTP/1.1\r\n\r\n"],
    ["HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["garbage", "\u00ff".repeat(100)],
  ])("is refused to a client that speaks %s", async (_what, words) => {
    const running = await start();
    const socket = dialPlain(running);
    socket.write(Buffer.from(words, "latin1"));
    expect(await onlyRefusal(running)).toBe("plaintext");
    await gone(socket);
  });

  it("is counted as lost when the client leaves before its handshake", async () => {
    const running = await start();
    const socket = dialPlain(running);
    await waitFor("it has begun", () => running.termination.handshakeCount === 1);
    socket.destroy();
    expect(await onlyRefusal(running)).toBe("connectionLost");
  });
});

describe("a handshake that never ends", () => {
  it("is ended by the server, whether it was begun or not", async () => {
    const running = await start({ handshakeMs: 100 });
    const silent = dialPlain(running);
    const slow = dialPlain(running);
    // The head of a record that never follows.
    slow.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
    await gone(silent);
    await gone(slow);
    expect(running.refused).toEqual(["handshakeTimeout", "handshakeTimeout"]);
    await waitFor("nothing is left open", () => running.termination.handshakeCount === 0);
  });

  it("does not end connections that finished theirs", async () => {
    const running = await start({ handshakeMs: 100 });
    // On a busy machine the time of a handshake may be over before it is done.
    const socket = await waitFor("a handshake is done in its time", async () => {
      const dialled = dial(running);
      return (await echo(dialled, "hello")) === "hello" && dialled;
    });
    const silent = dialPlain(running);
    await gone(silent);
    expect(await echo(socket, "still here")).toBe("still here");
  });

  it("keeps nobody out below a number, and above it only until some end", async () => {
    // On a busy machine a thousand begin in more than the seconds that one has.
    const running = await start({ handshakeMs: 600_000 });
    const silent: Socket[] = [];
    for (let i = 0; i < handshakesMax; i += 1) silent.push(dialPlain(running));
    await waitFor("all have begun", () => running.termination.handshakeCount === handshakesMax);
    const late = dial(running);
    await gone(late);
    expect(running.refused).toEqual(["tooManyHandshakes"]);
    expect(running.termination.handshakeCount).toBe(handshakesMax);
    silent[0]?.destroy();
    await waitFor("one has left", () => running.termination.handshakeCount === handshakesMax - 1);
    expect(await echo(dial(running), "hello")).toBe("hello");
  });
});

describe("a connection with clients' certificates", () => {
  const material = materialOf(serverPair, "known");

  it("is handed on for a certificate of the authorities", async () => {
    const running = await start({ material });
    expect(await echo(dial(running, shown(clientPair)), "hello")).toBe("hello");
  });

  it.each<readonly [string, ConnectionOptions, TlsRefusal]>([
    ["none", {}, "noClientCertificate"],
    ["one of others", shown(stranger.issue()), "untrustedClientCertificate"],
    ["an expired one", shown(authority.issue({ isExpired: true })), "expiredClientCertificate"],
  ])("is refused for %s", async (_what, options, cause) => {
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const running = await start({ material });
      const socket = dial(running, { ...options, maxVersion });
      expect(await onlyRefusal(running)).toBe(cause);
      await gone(socket);
    }
  });

  it("is handed on for a certificate that holds the name", async () => {
    const running = await start({ material, clientSan });
    expect(await echo(dial(running, shown(clientPair)), "hello")).toBe("hello");
  });

  it("is refused for a certificate without the name", async () => {
    const running = await start({ material, clientSan });
    const other = shown(authority.issue({ uris: ["spiffe://shop/edge/other"] }));
    const socket = dial(running, other);
    expect(await onlyRefusal(running)).toBe("wrongClientSan");
    await gone(socket);
  });
});

describe("use()", () => {
  it("gives new connections the new certificate, and leaves the open ones alone", async () => {
    const running = await start();
    const before = dial(running);
    await echo(before, "hello");
    const renewed = authority.issue({ names: ["headgate.shop"] });
    running.termination.use(materialOf(renewed));
    const after = dial(running);
    await echo(after, "hello");
    expect(after.getPeerX509Certificate()?.toString()).toBe(renewed.certificate);
    expect(before.getPeerX509Certificate()?.toString()).toBe(serverPair.certificate);
    expect(await echo(before, "still here")).toBe("still here");
  });

  it("asks new clients for certificates of the new authorities", async () => {
    const running = await start({ material: materialOf(serverPair, "known") });
    const newcomer = shown(stranger.issue());
    const clientAuthority = stranger.certificate;
    running.termination.use({ ...materialOf(serverPair), clientAuthority });
    expect(await echo(dial(running, newcomer), "hello")).toBe("hello");
    const old = dial(running, shown(clientPair));
    await gone(old);
    expect(running.refused).toEqual(["untrustedClientCertificate"]);
  });

  it("resumes no session of before", async () => {
    const running = await start({ material: materialOf(serverPair, "known"), clientSan });
    const first = dial(running, { ...shown(clientPair), maxVersion: "TLSv1.2" });
    const session = new Promise<Buffer>((resolve) => first.once("session", resolve));
    await echo(first, "hello");
    const resumed = {
      ...shown(clientPair),
      maxVersion: "TLSv1.2",
      session: await session,
    } as const;
    const again = dial(running, resumed);
    await echo(again, "hello");
    expect(again.isSessionReused()).toBe(true);
    running.termination.use(materialOf(serverPair, "known"));
    const later = dial(running, resumed);
    await echo(later, "hello");
    expect(later.isSessionReused()).toBe(false);
  });
});

describe("peerOf()", () => {
  const material = materialOf(serverPair, "known");

  it.each([
    {
      what: "the first URI without blanks",
      wish: { uris: ["spiffe://a, DNS:b", "spiffe://c"], names: ["a.shop", "b.shop"] },
      identity: "uri:spiffe://c",
      names: ["spiffe://c", "a.shop", "b.shop"],
    },
    {
      what: "the first DNS name without one",
      wish: { names: ["a.shop", "b.shop"], emails: ["a@shop"] },
      identity: "dns:a.shop",
      names: ["a.shop", "b.shop"],
    },
    {
      what: "the subject without any",
      wish: { commonName: "dns:a.shop" },
      identity: "subject:CN=dns:a.shop",
      names: [],
    },
  ])("names a certificate by $what", async ({ wish, identity, names }) => {
    const running = await start({ material });
    const client = dial(running, shown(authority.issue(wish)));
    expect(await echo(client, "hello")).toBe("hello");
    const [socket] = running.secured;
    expect(socket && peerOf(socket)).toEqual({ kind: "certificate", identity, names });
  });

  it("names who has none by the address, whatever else there is", async () => {
    const running = await start();
    expect(await echo(dial(running, shown(clientPair)), "hello")).toBe("hello");
    const peer = { kind: "address", identity: "address:127.0.0.1", names: [] };
    expect(running.secured.map(peerOf)).toEqual([peer]);
  });
});
