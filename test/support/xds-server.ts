import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  Server as GrpcServer,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import {
  type RateLimitConfig,
  RateLimitConfigSchema,
} from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { rateLimitConfigTypeUrl } from "../../src/rpc/policy-xds/rate-limit-config.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** With what the server is started. */
export interface XdsServerSettings {
  /** 0 takes a free one. */
  readonly port: number;
  /** Clients then need a certificate of the same authority. */
  readonly tls?: {
    readonly certificateFile: string;
    readonly keyFile: string;
    readonly authorityFile: string;
  };
}

/** One request as the server saw it. */
export interface XdsRequest {
  /** 1 for the first stream since the server started. */
  readonly stream: number;
  readonly version: string;
  readonly nonce: string;
  readonly typeUrl: string;
  readonly resourceNames: readonly string[];
  readonly nodeId: string;
  readonly nodeMetadata: Readonly<Record<string, unknown>>;
  readonly userAgent: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The reason of a NACK; absent otherwise. */
  readonly refusal?: string;
  readonly code?: number;
}

/** A set of resources, as the server sends it. */
export interface XdsSet {
  readonly typeUrl: string;
  readonly version: string;
  readonly resources: readonly { readonly typeUrl: string; readonly value: Uint8Array }[];
}

/** What the server may be told to do. */
export type XdsCommand =
  /** Hold this set, and send it to all who are there. */
  | ({ readonly kind: "hold" } & XdsSet)
  /** Send this once, and go on holding what is held. */
  | ({ readonly kind: "send" } & XdsSet)
  /** Send these bytes as a message. */
  | { readonly kind: "sendBytes"; readonly bytes: Buffer }
  /** Take streams and requests, and never answer. */
  | { readonly kind: "silence" }
  /** End all streams with a gRPC status. */
  | { readonly kind: "endStreams"; readonly code: number; readonly details: string };

/** One configuration; fields that are left out have their protobuf default. */
export type ConfigInit = MessageInitShape<GenMessage<RateLimitConfig>>;

interface Stream {
  readonly id: number;
  readonly call: ServerDuplexStream<Buffer, Buffer>;
  nonce: string;
  typeUrl: string;
}

/**
 * A control plane on loopback that serves aggregated discovery, state of the world, as the widely
 * used one in Go does. It answers a subscription with the set it holds, sends a changed set at
 * once, and sends a set that was refused again at once, as often as it is refused.
 */
export class XdsServer {
  readonly #settings: XdsServerSettings;
  #port: number;
  #server: GrpcServer | undefined;
  #listener: Server | undefined;
  readonly #sockets = new Set<Socket>();
  #snapshot: XdsSet | undefined;
  #isSilent = false;
  #nonceCount = 0;
  #openedCount = 0;
  #requests: XdsRequest[] = [];
  readonly #streams = new Set<Stream>();

  private constructor(settings: XdsServerSettings) {
    this.#settings = settings;
    this.#port = settings.port;
  }

  /** Starts one, which ends with the stage; it holds nothing yet. */
  static async start(stage: Stage, settings: Partial<XdsServerSettings> = {}): Promise<XdsServer> {
    const server = new XdsServer({ port: 0, ...settings });
    stage.atEnd(() => server.kill());
    await server.#listen();
    return server;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** All requests since it was started, in order. */
  requests(): readonly XdsRequest[] {
    return this.#requests;
  }

  /** Streams that are open now. */
  streamCount(): number {
    return this.#streams.size;
  }

  /** Holds these configurations as one set. */
  hold(version: string, configs: readonly ConfigInit[]): void {
    this.tell({ kind: "hold", ...xdsSet(version, configs) });
  }

  tell(command: XdsCommand): void {
    if (command.kind === "hold") {
      this.#snapshot = command;
      for (const stream of this.#streams) this.#send(stream, command);
    } else if (command.kind === "send") {
      for (const stream of this.#streams) this.#send(stream, command);
    } else if (command.kind === "sendBytes") {
      for (const { call } of this.#streams) call.write(command.bytes);
    } else if (command.kind === "silence") {
      this.#isSilent = true;
    } else {
      for (const { call } of this.#streams) {
        if (command.code === 0) call.end();
        else call.emit("error", { code: command.code, details: command.details });
      }
    }
  }

  /** Waits until a request is as wanted, and answers it. */
  requestWith(what: string, isWanted: (one: XdsRequest) => boolean): Promise<XdsRequest> {
    return waitFor(what, () => this.#requests.find(isWanted), { withinMs: 20_000 });
  }

  /** Ends it as a killed process ends: its port and its connections are gone, without a word. */
  kill(): void {
    this.#listener?.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#server?.forceShutdown();
    this.#streams.clear();
  }

  /** Starts it again on the same port, with an empty memory. */
  async restart(): Promise<void> {
    this.kill();
    this.#snapshot = undefined;
    this.#isSilent = false;
    this.#nonceCount = 0;
    this.#openedCount = 0;
    this.#requests = [];
    await this.#listen();
  }

  async #listen(): Promise<void> {
    const server = new GrpcServer({ "grpc.max_send_message_length": -1 });
    server.addService(
      { StreamAggregatedResources: method },
      {
        StreamAggregatedResources: (call: ServerDuplexStream<Buffer, Buffer>) => this.#serve(call),
      },
    );
    // Sockets of our own can be cut: the library ends its connections with farewells.
    const injector = server.createConnectionInjector(serverCredentials(this.#settings));
    const listener = createServer((socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      injector.injectConnection(socket);
    });
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject).listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (listener.address() as AddressInfo).port;
    this.#listener = listener;
    this.#server = server;
  }

  #serve(call: ServerDuplexStream<Buffer, Buffer>): void {
    this.#openedCount += 1;
    const stream: Stream = { id: this.#openedCount, call, nonce: "", typeUrl: "" };
    this.#streams.add(stream);
    const leave = (): void => void this.#streams.delete(stream);
    call.on("data", (bytes: Buffer) => this.#receive(stream, bytes));
    call.on("error", () => {});
    call.on("end", () => call.end());
    call.on("close", leave);
    call.on("cancelled", leave);
  }

  #receive(stream: Stream, bytes: Buffer): void {
    const request = fromBinary(DiscoveryRequestSchema, bytes);
    const { versionInfo: version, responseNonce: nonce, typeUrl, node, errorDetail } = request;
    const fields = Object.entries(stream.call.metadata.getMap());
    this.#requests.push({
      stream: stream.id,
      version,
      nonce,
      typeUrl,
      resourceNames: request.resourceNames,
      nodeId: node?.id ?? "",
      nodeMetadata: { ...node?.metadata },
      userAgent: node?.userAgentName ?? "",
      headers: Object.fromEntries(fields.map(([name, value]) => [name, String(value)])),
      ...(errorDetail && { refusal: errorDetail.message, code: errorDetail.code }),
    });
    stream.typeUrl = typeUrl;
    // An answer to a response that was overtaken says nothing.
    if (nonce !== stream.nonce) return;
    const snapshot = this.#snapshot;
    if (snapshot !== undefined && version !== snapshot.version) this.#send(stream, snapshot);
  }

  #send(stream: Stream, { typeUrl, version, resources }: XdsSet): void {
    if (this.#isSilent) return;
    this.#nonceCount += 1;
    const nonce = `nonce-${this.#nonceCount}`;
    if (typeUrl === stream.typeUrl) stream.nonce = nonce;
    const response = create(DiscoveryResponseSchema, {
      typeUrl,
      versionInfo: version,
      nonce,
      resources: [...resources],
    });
    stream.call.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)));
  }
}

const identity = (bytes: Buffer): Buffer => bytes;

const method: ServiceDefinition[string] = {
  path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
  requestStream: true,
  responseStream: true,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
};

function serverCredentials({ tls }: XdsServerSettings): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const [authority, certificate, key] = [tls.authorityFile, tls.certificateFile, tls.keyFile].map(
    (file) => readFileSync(file),
  );
  if (certificate === undefined || key === undefined) throw new Error("there are three files");
  const pairs = [{ cert_chain: certificate, private_key: key }];
  return ServerCredentials.createSsl(authority ?? null, pairs, true);
}

/** Configurations as a set. */
export function xdsSet(version: string, configs: readonly ConfigInit[]): XdsSet {
  return {
    typeUrl: rateLimitConfigTypeUrl,
    version,
    resources: configs.map((config) => {
      const value = toBinary(RateLimitConfigSchema, create(RateLimitConfigSchema, config));
      return { typeUrl: rateLimitConfigTypeUrl, value };
    }),
  };
}
