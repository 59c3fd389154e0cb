import { request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { DiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as extProc from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import * as loadStats from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import { HealthCheckRequestSchema } from "../../src/gen/grpc/health/v1/health_pb.js";
import {
  LimitService,
  TailDecisionsRequestSchema,
} from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { type AdminApp, startAdminApp } from "../support/admin.js";
import { processPath } from "../support/ext-proc.js";
import { usageMessage } from "../support/quota-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const { ProcessingRequestSchema } = extProc;

const stage = useStage("test");

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors: [{key: tenant, rate_limit: {unit: second, requests_per_unit: 100}}]
  quotas:
    - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
  services:
    - name: orders
      hosts: [orders.example]
      admission: {maxInFlight: 10}
`;

const tailPath = `/${LimitService.typeName}/${LimitService.method.tailDecisions.name}`;
const tailRequest = create(TailDecisionsRequestSchema, { sampleRatio: 1 });
const tailJson = Buffer.from(JSON.stringify({ sampleRatio: 1 }));
const tailBytes = toBinary(TailDecisionsRequestSchema, tailRequest);

const node = { id: "edge-1", cluster: "edge" };
const processing = create(ProcessingRequestSchema, {
  request: {
    case: "requestHeaders",
    value: {
      headers: { headers: [{ key: ":authority", rawValue: Buffer.from("orders.example") }] },
    },
  },
});
const discovery = toBinary(
  DiscoveryRequestSchema,
  create(DiscoveryRequestSchema, {
    node,
    typeUrl: "type.googleapis.com/envoy.service.runtime.v3.Runtime",
    resourceNames: ["headgate"],
  }),
);
const { StreamMetricsMessageSchema: MetricsSchema } = metricsService;
const metrics = toBinary(
  MetricsSchema,
  create(MetricsSchema, { identifier: { node }, envoyMetrics: [] }),
);
const { LoadStatsRequestSchema: LoadSchema } = loadStats;
const load = toBinary(LoadSchema, create(LoadSchema, { node }));
const health = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, {}));

/** A streaming method, where it is, and its first message. */
interface Row {
  readonly stream: string;
  readonly port: "admin" | "grpc" | "control";
  readonly path: string;
  readonly type: string;
  readonly message: Uint8Array;
  /** Whether the message is all that a caller sends. */
  readonly isServerStream?: true;
  readonly isHttp1?: true;
  readonly env?: Readonly<Record<string, string>>;
}

const grpc = "application/grpc";
const tail = { port: "admin", path: tailPath, isServerStream: true } as const;
const process = {
  port: "grpc",
  path: processPath,
  type: grpc,
  message: toBinary(ProcessingRequestSchema, processing),
} as const;
const watch = {
  port: "grpc",
  path: "/grpc.health.v1.Health/Watch",
  type: grpc,
  message: health,
  isServerStream: true,
} as const;
const control = { port: "control", type: grpc } as const;

const rows: readonly Row[] = [
  { stream: "tail, gRPC", ...tail, type: grpc, message: tailBytes },
  {
    stream: "tail, Connect over HTTP/2",
    ...tail,
    type: "application/connect+json",
    message: tailJson,
  },
  {
    stream: "tail, Connect over HTTP/1.1",
    ...tail,
    type: "application/connect+proto",
    message: tailBytes,
    isHttp1: true,
  },
  {
    stream: "tail, gRPC-Web over HTTP/1.1",
    ...tail,
    type: "application/grpc-web+proto",
    message: tailBytes,
    isHttp1: true,
  },
  { stream: "ext_proc", ...process },
  { stream: "health", ...watch },
  {
    stream: "ADS",
    ...control,
    path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    message: discovery,
  },
  {
    stream: "RTDS",
    ...control,
    path: "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
    message: discovery,
  },
  {
    stream: "metrics",
    ...control,
    path: "/envoy.service.metrics.v3.MetricsService/StreamMetrics",
    message: metrics,
  },
  {
    stream: "LRS",
    ...control,
    path: "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
    message: load,
  },
  {
    stream: "RLQS",
    ...control,
    path: "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas",
    message: usageMessage("edge", [{ id: { quota: "pace", tenant: "a" } }]),
  },
];

/** How a caller leaves. */
const ways = [
  "resets the stream",
  "destroys the connection",
  "leaves a message half said",
] as const;

type Way = (typeof ways)[number];

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

interface HangUp {
  readonly row: Row;
  readonly port: number;
  readonly way: Way;
  readonly decide: () => Promise<void>;
}

/** Opens the stream, waits for what answers first (where something does), and hangs up. */
async function hangUp({ row, port, way, decide }: HangUp): Promise<void> {
  const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const headers = {
    ":method": "POST",
    ":path": row.path,
    "content-type": row.type,
    te: "trailers",
  };
  const stream = session.request(headers);
  stream.on("error", () => {});
  const answered = new Promise<void>((resolve) => {
    for (const event of ["data", "response", "close"]) stream.once(event, () => resolve());
  });
  const bytes = framed(row.message);
  if (way === "leaves a message half said") stream.write(bytes.subarray(0, bytes.length - 1));
  else {
    if (row.isServerStream === true) stream.end(bytes);
    else stream.write(bytes);
    if (row.stream !== "metrics") await answered;
  }
  await decide();
  if (way === "destroys the connection") session.destroy();
  else {
    stream.close(8);
    await new Promise((resolve) => stream.once("close", resolve));
    session.close();
  }
}

async function hangUpHttp1(row: Row, port: number, decide: () => Promise<void>): Promise<void> {
  const headers = { "content-type": row.type };
  const asked = request({ host: "127.0.0.1", port, path: row.path, method: "POST", headers });
  asked.on("error", () => {});
  asked.end(framed(row.message));
  await new Promise<void>((resolve) => {
    asked.once("response", (answer) => {
      answer.on("error", () => {});
      answer.once("data", () => resolve());
    });
  });
  await decide();
  asked.destroy();
}

function portOf({ app, port, grpcPort }: AdminApp, row: Row): number {
  if (row.port === "admin") return port;
  return row.port === "grpc" ? grpcPort : (app.controlAddress?.port ?? 0);
}

it.each(rows)("a caller who hangs up is no fault of ours: $stream", async (row) => {
  const started = await startAdminApp(stage, policy, { HEADGATE_ADMIN_OPEN: "true", ...row.env });
  const port = portOf(started, row);
  const descriptors = [{ entries: [{ key: "tenant", value: "a" }] }];
  const body = JSON.stringify({ domain: "edge", descriptors });
  const url = `http://127.0.0.1:${started.app.httpAddress?.port}/json`;
  // What the stream is to say next finds nobody.
  const decide = async (): Promise<void> => void (await fetch(url, { method: "POST", body }));
  for (const way of ways) {
    if (row.isHttp1 === true) await hangUpHttp1(row, port, decide);
    else await hangUp({ row, port, way, decide });
  }
  // Those whose request was whole have ended, one way or another, and were read.
  if (row.port === "admin") {
    await waitFor("all have ended", async () => {
      const labels = { method: "TailDecisions" };
      return (await started.metric("headgate_admin_requests_total", labels)) >= ways.length;
    });
    const unread = { method: "TailDecisions", code: "unread" };
    expect(await started.metric("headgate_admin_requests_total", unread)).toBe(0);
  }
  expect(await started.metric("headgate_internal_errors_total")).toBe(0);
  expect(await started.app.close(0)).toBe(true);
  expect(started.events.filter(({ event }) => event === "bug")).toEqual([]);
});
