import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type StatusObject,
} from "@grpc/grpc-js";
import {
  type BucketId,
  RateLimitQuotaResponseSchema,
  RateLimitQuotaUsageReportsSchema,
} from "../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import * as strategies from "../../src/gen/envoy/type/v3/ratelimit_strategy_pb.js";

const { RateLimitStrategy_BlanketRule: BlanketRule } = strategies;

/** What a bucket was told, in words: `allow`, `deny`, `abandon`, or its tokens and rate. */
export interface SeenAction {
  readonly id: Readonly<Record<string, string>>;
  readonly reported: string;
  readonly ttlSeconds: number;
  /** Hits a second of a token bucket. */
  readonly hz: number;
}

/** One bucket's usage, as tests say it. */
export interface TestUsage {
  readonly id: Readonly<Record<string, string>>;
  readonly allowed?: number;
  readonly denied?: number;
  readonly elapsedSeconds?: number;
}

/** A message of usage, as bytes. */
export function usageMessage(domain: string, usages: readonly TestUsage[]): Uint8Array {
  const init: MessageInitShape<typeof RateLimitQuotaUsageReportsSchema> = {
    domain,
    bucketQuotaUsages: usages.map(({ id, allowed = 1, denied = 0, elapsedSeconds = 0 }) => ({
      bucketId: { bucket: { ...id } },
      timeElapsed: { seconds: BigInt(elapsedSeconds), nanos: 0 },
      numRequestsAllowed: BigInt(allowed),
      numRequestsDenied: BigInt(denied),
    })),
  };
  const message = create(RateLimitQuotaUsageReportsSchema, init);
  return toBinary(RateLimitQuotaUsageReportsSchema, message);
}

/** What a message of actions says. */
export function readActions(bytes: Uint8Array): readonly SeenAction[] {
  return fromBinary(RateLimitQuotaResponseSchema, bytes).bucketAction.map((one): SeenAction => {
    const id = idOf(one.bucketId);
    if (one.bucketAction.case !== "quotaAssignmentAction") {
      return { id, reported: "abandon", ttlSeconds: 0, hz: 0 };
    }
    const { assignmentTimeToLive: ttl, rateLimitStrategy } = one.bucketAction.value;
    const ttlSeconds = Number(ttl?.seconds ?? 0);
    const strategy = rateLimitStrategy?.strategy;
    if (strategy?.case === "tokenBucket") {
      const { tokensPerFill = 0, fillInterval, maxTokens } = strategy.value;
      const hz = tokensPerFill / Number(fillInterval?.seconds ?? 0);
      return { id, reported: `${maxTokens} tokens`, ttlSeconds, hz };
    }
    const isAllowed = strategy?.case === "blanketRule" && strategy.value === BlanketRule.ALLOW_ALL;
    return { id, reported: isAllowed ? "allow" : "deny", ttlSeconds, hz: 0 };
  });
}

function idOf(bucketId: BucketId | undefined): Readonly<Record<string, string>> {
  return { ...bucketId?.bucket };
}

/** One stream of a `QuotaClient`. */
export interface QuotaClientStream {
  /** What came so far, as bytes. */
  readonly received: readonly Uint8Array[];
  readonly actions: readonly SeenAction[];
  readonly ended: Promise<StatusObject>;
  report(domain: string, usages: readonly TestUsage[]): void;
  send(bytes: Uint8Array): void;
  /** Reads nothing any more. */
  pause(): void;
  cancel(): void;
}

const path = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";
const identity = (bytes: Buffer): Buffer => bytes;

/** An Envoy with quotas, as far as the control port sees one. */
export class QuotaClient {
  readonly #client: Client;

  constructor(port: number, of: ChannelCredentials = credentials.createInsecure()) {
    this.#client = new Client(`127.0.0.1:${port}`, of, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.ssl_target_name_override": "headgate.shop",
      "grpc.max_send_message_length": -1,
      "grpc.enable_retries": 0,
    });
  }

  /** Opens a stream. @param node what the Envoy calls itself */
  open(node?: string): QuotaClientStream {
    const metadata = new Metadata();
    if (node !== undefined) metadata.set("x-headgate-node", node);
    const call: ClientDuplexStream<Buffer, Buffer> = this.#client.makeBidiStreamRequest(
      path,
      identity,
      identity,
      metadata,
    );
    const received: Uint8Array[] = [];
    call.on("data", (bytes: Buffer) => received.push(bytes));
    call.on("error", () => {});
    const send = (bytes: Uint8Array): void => void call.write(Buffer.from(bytes));
    return {
      received,
      get actions() {
        return received.flatMap(readActions);
      },
      ended: new Promise((resolve) => call.once("status", resolve)),
      report: (domain, usages) => send(usageMessage(domain, usages)),
      send,
      pause: () => call.pause(),
      cancel: () => call.cancel(),
    };
  }

  close(): void {
    this.#client.close();
  }
}
