import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { asBuffer } from "../codec/field-reader.js";
import type { AdsEnd, AdsEndReason, AdsStream, AdsStreamListener } from "./ads-client.js";

/** The address of a server of aggregated discovery, and how to connect to it. */
export interface AdsTarget {
  /** `host:port`, or any name that gRPC resolves. */
  readonly address: string;
  /** Absent without TLS. */
  readonly tls?: AdsTls;
  /** Sent with the call; names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Maximum size of a received message, in bytes. */
  readonly messageBytesMax: number;
  /** Silence after which the connection is tested, in milliseconds. Default `keepaliveMs`. */
  readonly keepaliveMs?: number;
  /** How long the server may take to respond to the test, in milliseconds. Default 20 s. */
  readonly keepaliveAnswerMs?: number;
}

/** TLS to the server. Each part is PEM. */
export interface AdsTls {
  /** The only trusted authority. Absent: the authorities that Node knows. */
  readonly authority?: string;
  /** The client's certificate. Absent: none. */
  readonly identity?: { readonly certificate: string; readonly key: string };
  /** The name that the server's certificate must contain. Absent: the host of the address. */
  readonly serverName?: string;
}

/**
 * Silence after which the server is pinged: servers written in Go treat a ping within five minutes
 * of the last one as an attack. Source: grpc-go, EnforcementPolicy.MinTime.
 */
const keepaliveMs = 330_000;

const keepaliveAnswerMs = 20_000;

const adsPath = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/**
 * Opens a stream with @grpc/grpc-js. It makes one attempt to connect: the caller decides when to
 * try again.
 *
 * @throws Node's error for credentials that it cannot use
 */
export function openGrpcJsAdsStream(target: AdsTarget, listener: AdsStreamListener): AdsStream {
  const client = new Client(target.address, channelCredentials(target), channelOptions(target));
  const call = client.makeBidiStreamRequest(adsPath, asBuffer, identity, metadata(target));
  return new GrpcJsAdsStream({ client, call, listener });
}

class GrpcJsAdsStream implements AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Uint8Array, Buffer>;
  #isConnected = false;
  #isOver = false;

  constructor({
    client,
    call,
    listener,
  }: {
    readonly client: Client;
    readonly call: ClientDuplexStream<Uint8Array, Buffer>;
    readonly listener: AdsStreamListener;
  }) {
    this.#client = client;
    this.#call = call;
    // The library waits indefinitely. Closing the client ends the wait.
    client.waitForReady(Number.POSITIVE_INFINITY, (error) => {
      if (error !== undefined || this.#isOver) return;
      this.#isConnected = true;
      listener.onConnected();
    });
    call.on("data", (bytes: Buffer) => {
      if (!this.#isOver) listener.onMessage(bytes);
    });
    // The status contains the same, and comes even without an error.
    call.on("error", () => {});
    call.on("status", (end: StatusObject) => {
      if (this.#isOver) return;
      this.#release();
      listener.onEnd(this.#endOf(end));
    });
  }

  send(bytes: Uint8Array): void {
    if (!this.#isOver) this.#call.write(bytes);
  }

  close(): void {
    if (this.#isOver) return;
    this.#call.cancel();
    this.#release();
  }

  #release(): void {
    this.#isOver = true;
    this.#client.close();
  }

  #endOf({ code, details }: StatusObject): AdsEnd {
    const isUnreachable = !this.#isConnected && code === status.UNAVAILABLE;
    const reason = isUnreachable ? "unreachable" : (endReasons.get(code) ?? "failed");
    const detail = details === "" ? (status[code] ?? "") : details;
    return { reason, detail: code === status.OK ? "the server ended the stream" : detail };
  }
}

const endReasons: ReadonlyMap<number, AdsEndReason> = new Map([
  [status.OK, "ended"],
  [status.UNAUTHENTICATED, "refused"],
  [status.PERMISSION_DENIED, "refused"],
  [status.UNIMPLEMENTED, "refused"],
  [status.RESOURCE_EXHAUSTED, "too_large"],
  [status.UNAVAILABLE, "lost"],
]);

function channelCredentials({ tls }: AdsTarget): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const { authority, identity: own } = tls;
  return credentials.createSsl(
    authority === undefined ? undefined : Buffer.from(authority),
    own && Buffer.from(own.key),
    own && Buffer.from(own.certificate),
  );
}

function channelOptions({ tls, messageBytesMax, ...target }: AdsTarget): ChannelOptions {
  return {
    // A separate connection: a shared one could be in the backoff of another client.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": messageBytesMax,
    "grpc.keepalive_time_ms": target.keepaliveMs ?? keepaliveMs,
    "grpc.keepalive_timeout_ms": target.keepaliveAnswerMs ?? keepaliveAnswerMs,
    "grpc.enable_retries": 0,
    "grpc.service_config_disable_resolution": 1,
    ...(tls?.serverName === undefined ? {} : { "grpc.ssl_target_name_override": tls.serverName }),
  };
}

function metadata({ headers }: AdsTarget): Metadata {
  const made = new Metadata();
  for (const [name, value] of headers) made.set(name, value);
  return made;
}

function identity(bytes: Buffer): Buffer {
  return bytes;
}
