import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitUnit } from "../../src/gen/envoy/type/v3/ratelimit_unit_pb.js";

/** One descriptor: its entries in order, as `key=value`, with what it costs. */
export interface AskedDescriptor {
  readonly entries: readonly string[];
  readonly hits?: bigint;
  readonly isRefund?: boolean;
  /** A limit that it carries, in hits a day. */
  readonly perDay?: number;
}

/** One question. */
export interface RlsAsk {
  /** Default "edge". */
  readonly domain?: string;
  /** A list of words is one descriptor of those entries. */
  readonly descriptors: readonly (AskedDescriptor | readonly string[])[];
  /** 0 means 1, as the protocol says. */
  readonly hits?: number;
  /** How long the caller waits. Default 5000. */
  readonly timeoutMs?: number;
  /** What the call carries besides. Example: `{ traceparent: "00-..." }`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How a call ended: with a decision, or with a gRPC status other than OK. */
export type RlsAnswer =
  | {
      readonly kind: "decided";
      readonly isDenied: boolean;
      readonly response: RateLimitResponse;
      readonly elapsedMs: number;
    }
  | {
      readonly kind: "failed";
      /** Name of the gRPC status, for example UNAVAILABLE. */
      readonly statusName: string;
      readonly details: string;
      readonly elapsedMs: number;
    };

/** The path of the one method. */
export const rlsPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const defaultTimeoutMs = 5_000;

/** A server to call. */
export interface RlsPlace {
  /** As @grpc/grpc-js takes it. Example: `unix:/run/headgate.sock`. */
  readonly target: string;
  /** Default: plaintext. */
  readonly credentials?: ChannelCredentials;
  /** Whom its certificate must name. Default: the target's host. */
  readonly serverName?: string;
}

/** A caller of RateLimitService without a proxy in between: one connection of its own. */
export class RlsClient {
  readonly #client: Client;

  /** @param place a port of this machine, or any other place */
  constructor(place: number | RlsPlace) {
    const given: RlsPlace = typeof place === "number" ? { target: `127.0.0.1:${place}` } : place;
    this.#client = new Client(given.target, given.credentials ?? credentials.createInsecure(), {
      ...(given.serverName === undefined
        ? {}
        : { "grpc.ssl_target_name_override": given.serverName }),
      // A connection of its own, and quick to find a server that was restarted.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.initial_reconnect_backoff_ms": 20,
      "grpc.min_reconnect_backoff_ms": 20,
      "grpc.max_reconnect_backoff_ms": 100,
    });
  }

  /** Asks; resolves however the call ends. */
  ask({ timeoutMs, headers, ...question }: RlsAsk): Promise<RlsAnswer> {
    const bytes = toBinary(RateLimitRequestSchema, request(question));
    return this.sendBytes(bytes, timeoutMs, headers);
  }

  /** Sends any bytes as the request message. */
  sendBytes(
    bytes: Uint8Array,
    timeoutMs = defaultTimeoutMs,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RlsAnswer> {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const startMs = performance.now();
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        rlsPath,
        Buffer.from,
        decode,
        bytes,
        metadata,
        { deadline: Date.now() + timeoutMs },
        (error: ServiceError | null, response?: RateLimitResponse) => {
          const elapsedMs = performance.now() - startMs;
          if (response !== undefined && error === null) {
            const isDenied = response.overallCode === RateLimitResponse_Code.OVER_LIMIT;
            resolve({ kind: "decided", isDenied, response, elapsedMs });
            return;
          }
          const statusName = status[error?.code ?? status.UNKNOWN] ?? "UNKNOWN";
          resolve({ kind: "failed", statusName, details: error?.details ?? "", elapsedMs });
        },
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** "OK", "OVER_LIMIT", or the name of the gRPC status: what traffic counts. */
export function outcomeOf(answer: RlsAnswer): string {
  if (answer.kind === "failed") return answer.statusName;
  return answer.isDenied ? "OVER_LIMIT" : "OK";
}

function isEntries(
  descriptor: AskedDescriptor | readonly string[],
): descriptor is readonly string[] {
  return Array.isArray(descriptor);
}

function request({ domain = "edge", descriptors, hits = 0 }: RlsAsk): RateLimitRequest {
  return create(RateLimitRequestSchema, {
    domain,
    hitsAddend: hits,
    descriptors: descriptors.map((descriptor) => {
      const asked: AskedDescriptor = isEntries(descriptor) ? { entries: descriptor } : descriptor;
      return {
        entries: asked.entries.map(entry),
        isNegativeHits: asked.isRefund ?? false,
        ...(asked.hits === undefined ? {} : { hitsAddend: asked.hits }),
        ...(asked.perDay === undefined
          ? {}
          : { limit: { requestsPerUnit: asked.perDay, unit: RateLimitUnit.DAY } }),
      };
    }),
  });
}

function entry(text: string): { readonly key: string; readonly value: string } {
  const at = text.indexOf("=");
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

function decode(bytes: Buffer): RateLimitResponse {
  return fromBinary(RateLimitResponseSchema, bytes);
}
