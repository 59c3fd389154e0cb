import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  type RateLimitQuotaResponse,
  RateLimitQuotaResponseSchema,
  type RateLimitQuotaUsageReports,
  RateLimitQuotaUsageReportsSchema,
} from "../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import type { Stage } from "./stage.js";

/** What an Envoy said of one bucket. */
export interface ReportedBucket {
  readonly domain: string;
  readonly id: Readonly<Record<string, string>>;
  readonly allowedCount: number;
  readonly deniedCount: number;
}

/** What a bucket is told; undefined: nothing. */
export type QuotaAnswer = (
  bucket: ReportedBucket,
) => MessageInitShape<typeof RateLimitQuotaResponseSchema>["bucketAction"];

/** A server of assignments whose words a test writes. */
export interface QuotaServer {
  readonly port: number;
  /** In the order of arrival. */
  readonly reports: readonly ReportedBucket[];
  /** What each stream began with. */
  readonly streams: readonly Readonly<Record<string, string>>[];
  answer: QuotaAnswer;
}

type Call = ServerDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>;

/** Starts one that says nothing; it ends with the stage. */
export async function startQuotaServer(stage: Stage): Promise<QuotaServer> {
  const reports: ReportedBucket[] = [];
  const streams: Readonly<Record<string, string>>[] = [];
  const server = new Server();
  server.addService(definition, {
    StreamRateLimitQuotas(call: Call) {
      const fields = Object.entries(call.metadata.getMap());
      streams.push(Object.fromEntries(fields.map(([name, value]) => [name, String(value)])));
      call.on("data", (message: RateLimitQuotaUsageReports) => {
        const seen = bucketsOf(message);
        reports.push(...seen);
        const bucketAction = seen.flatMap((one) => [...(started.answer(one) ?? [])]);
        if (bucketAction.length > 0) {
          call.write(create(RateLimitQuotaResponseSchema, { bucketAction }));
        }
      });
      call.on("end", () => call.end());
      call.on("error", () => call.end());
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  stage.atEnd(() => server.forceShutdown());
  const started: QuotaServer = { port, reports, streams, answer: () => undefined };
  return started;
}

function bucketsOf(message: RateLimitQuotaUsageReports): readonly ReportedBucket[] {
  return message.bucketQuotaUsages.map((usage) => ({
    domain: message.domain,
    id: { ...usage.bucketId?.bucket },
    allowedCount: Number(usage.numRequestsAllowed),
    deniedCount: Number(usage.numRequestsDenied),
  }));
}

const definition = {
  StreamRateLimitQuotas: {
    path: "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas",
    requestStream: true,
    responseStream: true,
    requestDeserialize: (bytes: Buffer) => fromBinary(RateLimitQuotaUsageReportsSchema, bytes),
    requestSerialize: (message: RateLimitQuotaUsageReports) =>
      Buffer.from(toBinary(RateLimitQuotaUsageReportsSchema, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(RateLimitQuotaResponseSchema, bytes),
    responseSerialize: (message: RateLimitQuotaResponse) =>
      Buffer.from(toBinary(RateLimitQuotaResponseSchema, message)),
  },
} as const;
