import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import {
  type ChannelCredentials,
  Client,
  credentials,
  type ServiceError as GrpcError,
  Metadata,
} from "@grpc/grpc-js";
import { afterEach } from "vitest";
import { TlsTermination } from "../../src/app/tls/tls.js";
import { peerOf } from "../../src/app/tls/tls-peer.js";
import { toCallFailure } from "../../src/rpc/grpc/status.js";
import {
  NativeTransport,
  type NativeTransportParts,
} from "../../src/wire/grpc/native-transport.js";
import type { MethodHandler, ServiceHandlers } from "../../src/wire/grpc/service.js";
import { TestAuthority } from "./certificates.js";
import { realClock, realRandom } from "./real-clock.js";
import { unaryHandler } from "./unary.js";

/** How a port is spoken to. */
export const portNames = ["plaintext", "TLS"] as const;

export type PortName = (typeof portNames)[number];

/** A transport that listens, and a client of it. */
export interface RunningTransport {
  readonly transport: NativeTransport;
  readonly client: Client;
  readonly port: number;
  /** Who vouches for it, as PEM; undefined in plaintext. */
  readonly authority: string | undefined;
  /** What handlers threw that no failure of the environment explains. */
  readonly bugs: unknown[];
  /** Calls that were not begun, because their callers had gone. */
  readonly dropped: { count: number };
  /** Accepted connections that are open. */
  connectionCount(): number;
  close(): Promise<void>;
}

/** Starts a transport on a free port of loopback. */
export async function startTransport(
  name: PortName,
  services: readonly ServiceHandlers[],
  parts: Partial<NativeTransportParts> = {},
): Promise<RunningTransport> {
  const bugs: unknown[] = [];
  const dropped = { count: 0 };
  const all: NativeTransportParts = {
    services,
    clock: realClock,
    random: realRandom,
    connectionAgeMsMax: 86_400_000,
    connectionAgeGraceMs: 3_600_000,
    onBug: (thrown) => bugs.push(thrown),
    isLate: () => false,
    onDropped: () => {
      dropped.count += 1;
    },
    toFailure: toCallFailure,
    scheduleFlush: (run) => process.nextTick(run),
    ...parts,
  };
  const transport = new NativeTransport(all);
  const secured = name === "TLS" ? secure(transport) : undefined;
  const sockets = new Set<unknown>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (secured === undefined) transport.accept(socket, peerOf(socket));
    else secured.termination.accept(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const authority = secured?.authority;
  const client = new Client(`127.0.0.1:${port}`, credentialsOf(authority), {
    ...(secured === undefined ? {} : { "grpc.ssl_target_name_override": serverName }),
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  const close = async (): Promise<void> => {
    client.close();
    await transport.close(0);
    server.close();
  };
  const connectionCount = (): number => sockets.size;
  return { transport, client, port, authority, bugs, dropped, connectionCount, close };
}

/** What the certificates of these servers name. */
const serverName = "headgate.shop";

/** TLS in front of a transport, as the gRPC listener has it. */
function secure(transport: NativeTransport): {
  readonly termination: TlsTermination;
  readonly authority: string;
} {
  const authority = new TestAuthority();
  const pair = authority.issue({ names: [serverName] });
  const termination = new TlsTermination({
    material: { ...pair, beginEpochUs: 0, expiryEpochUs: 1 },
    onSecure: (socket) => transport.accept(socket, peerOf(socket)),
    onRefused: () => {},
  });
  return { termination, authority: authority.certificate };
}

function credentialsOf(authority: string | undefined): ChannelCredentials {
  if (authority === undefined) return credentials.createInsecure();
  return credentials.createSsl(Buffer.from(authority));
}

/** Transports with one method, and raw clients of them, until the test that opened them ends. */
export interface Transports {
  start(
    name: PortName,
    method: MethodHandler,
    parts?: Partial<NativeTransportParts>,
  ): Promise<RunningTransport>;
  /** The same with whole services. */
  startServices(services: readonly ServiceHandlers[]): Promise<RunningTransport>;
  openRaw(running: RunningTransport): Promise<RawConnection>;
  /** Runs at the test's end, the last one first. */
  atEnd(close: () => unknown): void;
}

/** Ends after each test of the file what the test has opened. */
export function useTransports(): Transports {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  const start = async (...given: Parameters<typeof startTransport>): Promise<RunningTransport> => {
    const running = await startTransport(...given);
    closers.push(() => running.close());
    return running;
  };
  return {
    start: (name, method, parts) => start(name, oneMethod(method), parts),
    startServices: (services) => start("plaintext", services),
    openRaw: async (running) => {
      const raw = await openRaw(running);
      closers.push(() => raw.session.destroy());
      return raw;
    },
    atEnd: (close) => {
      closers.push(close);
    },
  };
}

/** A method that is answered with its own bytes. */
export const echo: MethodHandler = {
  kind: "unary",
  name: "Ask",
  handle: unaryHandler(async (bytes) => Buffer.from(bytes)),
};

/** A service with one method at `/test.Service/Ask`. */
export function oneMethod(method: MethodHandler): readonly ServiceHandlers[] {
  return [{ name: "test.Service", methods: [method] }];
}

/** Where `oneMethod` is served. */
export const askPath = "/test.Service/Ask";

/** Messages are bytes on both sides. */
export const identity = (bytes: Buffer): Buffer => bytes;

/** What a call says besides its bytes. */
export interface AskOptions {
  readonly bytes?: Buffer;
  readonly path?: string;
  /** Default 20 s; Infinity for none. */
  readonly deadlineMs?: number;
  readonly metadata?: Readonly<Record<string, string | Buffer>>;
}

/** One unary call with the library as client: the answer's text, or a rejection with its status. */
export function ask({ client }: RunningTransport, options: AskOptions = {}): Promise<string> {
  const { bytes = Buffer.from("question"), path = askPath, deadlineMs = 20_000 } = options;
  const deadline = realClock.epochUs() / 1_000 + deadlineMs;
  return new Promise((resolve, reject) => {
    const done = (error: GrpcError | null, answer?: Buffer): void => {
      if (error === null) resolve(answer?.toString() ?? "");
      else reject(error);
    };
    const metadata = metadataOf(options.metadata);
    client.makeUnaryRequest(path, identity, identity, bytes, metadata, { deadline }, done);
  });
}

/** The status that such a call fails with. */
export async function statusOf(answer: Promise<unknown>): Promise<number> {
  try {
    await answer;
    return 0;
  } catch (thrown) {
    const code: unknown = Reflect.get(Object(thrown), "code");
    if (typeof code !== "number") throw thrown;
    return code;
  }
}

function metadataOf(fields: AskOptions["metadata"] = {}): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  return metadata;
}

/** What a raw client was answered. */
export interface RawAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: Buffer;
  /** The error code that the stream was reset with; 0 for none. */
  readonly resetCode: number;
}

/** A connection of node:http2, and the farewells that it was told. */
export interface RawConnection {
  readonly session: ClientHttp2Session;
  readonly goaways: readonly { readonly code: number; readonly lastStreamId: number }[];
}

/** A connection of node:http2, which says what it likes. */
export async function openRaw({
  port,
  authority,
}: Pick<RunningTransport, "port" | "authority">): Promise<RawConnection> {
  const session =
    authority === undefined
      ? connectHttp2(`http://127.0.0.1:${port}`)
      : connectHttp2(`https://127.0.0.1:${port}`, { ca: authority, servername: serverName });
  session.on("error", () => {});
  const goaways: { readonly code: number; readonly lastStreamId: number }[] = [];
  session.on("goaway", (code, lastStreamId) => goaways.push({ code, lastStreamId }));
  await new Promise<void>((resolve) => session.once("remoteSettings", () => resolve()));
  return { session, goaways };
}

/** Sends one request whose body is cut as the parts are, each in a frame of its own. */
export async function sendRaw(
  session: ClientHttp2Session,
  parts: readonly Uint8Array[],
  fields: OutgoingHttpHeaders = {},
): Promise<RawAnswer> {
  const stream = session.request({
    ":method": "POST",
    ":path": askPath,
    "content-type": "application/grpc",
    te: "trailers",
    ...fields,
  });
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders | undefined;
  const body: Buffer[] = [];
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.on("data", (bytes: Buffer) => body.push(bytes));
  stream.on("error", () => {});
  const closed = new Promise<void>((resolve) => stream.once("close", () => resolve()));
  for (const part of parts) {
    // Written when the last one has left, or the client would make one frame of them.
    await new Promise<void>((resolve) => stream.write(part, () => resolve()));
  }
  if (!stream.destroyed) stream.end();
  await closed;
  return { headers, trailers, body: Buffer.concat(body), resetCode: stream.rstCode ?? 0 };
}

/** The status of a raw answer, wherever it stands. */
export function grpcStatusOf({ headers, trailers }: RawAnswer): number | undefined {
  const text = trailers?.["grpc-status"] ?? headers["grpc-status"];
  return text === undefined ? undefined : Number(text);
}
