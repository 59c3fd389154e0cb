import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Peer, unknownPeer } from "../../src/core/base/peer.js";
import type { Node, NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
  ResourceSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import {
  LoadStatsRequestSchema,
  LoadStatsResponseSchema,
} from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import { RuntimeSchema } from "../../src/gen/envoy/service/runtime/v3/rtds_pb.js";
import {
  type MetricFamilySchema,
  MetricType,
} from "../../src/gen/io/prometheus/client/metrics_pb.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { ControlPlane, type ControlPlaneParts } from "../../src/rpc/control/control-plane.js";
import { runtimeTypeUrl } from "../../src/rpc/control/layer-encoder.js";
import { GrpcFailure } from "../../src/rpc/grpc/status.js";
import { StreamOwners } from "../../src/rpc/nodes/stream-owners.js";
import type { BidiAnswers, BidiReader } from "../../src/wire/grpc/service.js";
import { testService } from "./admission.js";
import { FakeClock } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";

const { StreamMetricsMessageSchema } = metricsService;

/** Methods of the control port by their own names. */
export type ControlMethod =
  | "StreamAggregatedResources"
  | "StreamRuntime"
  | "StreamLoadStats"
  | "StreamMetrics";

type NodeInit = Exclude<MessageInitShape<typeof NodeSchema>, Node>;

/** An Envoy of the line that the port was made for. */
export function testNode(id: string, version: readonly [number, number] = [1, 40]): NodeInit {
  const [majorNumber, minorNumber] = version;
  const semantic = { majorNumber, minorNumber, patch: 0 };
  return {
    id,
    cluster: "edge",
    userAgentName: "envoy",
    userAgentVersionType: { case: "userAgentBuildVersion", value: { version: semantic } },
  };
}

/** A service that takes its limit back to Envoy, and listens to it. */
export function reportedService(
  name: string,
  fields: Partial<ServicePolicy> = {},
  concurrency: Partial<NonNullable<ServicePolicy["concurrency"]>> = {},
): ServicePolicy {
  const { priority } = testService(undefined);
  return testService(undefined, {
    name,
    hosts: [],
    // Nobody may say that a request is critical: no route runs at HIGH.
    priority: { ...priority, trust: { anyone: false, sources: [], principals: [] } },
    concurrency: {
      settings: { law: "fixed", limits: { initial: 50, min: 1, max: 1_000 } },
      per: undefined,
      signal: undefined,
      sources: ["envoyMetrics"],
      feedback: ["circuitBreakers"],
      ...concurrency,
    },
    ...fields,
  });
}

/** A layer as an Envoy gets it. */
export interface SeenLayer {
  readonly name: string;
  readonly version: string;
  readonly nonce: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** Undefined: it does not end. */
  readonly ttlMs: number | undefined;
}

/** Everybody may speak for everybody, as often as they like. */
export function testOwners(): StreamOwners {
  const most = Number.POSITIVE_INFINITY;
  const bounds = { streamsMax: most, namesMax: most, allNamesMax: most };
  return new StreamOwners({ nowMs: () => 0, rules: [], ...bounds });
}

/** One stream, as a transport and an Envoy see it. */
export class TestStream implements BidiAnswers {
  readonly sent: Uint8Array[] = [];
  /** How it ended: 0 for well, or the status of its failure; undefined while it is open. */
  status: number | undefined;
  /** What a fault of ours threw. */
  bug: unknown;
  nextCount = 0;
  /** Whether the Envoy reads what it is sent. */
  isReading = true;
  #reader: BidiReader | undefined;

  listen(reader: BidiReader): void {
    this.#reader = reader;
  }

  send(bytes: Uint8Array): boolean {
    this.sent.push(bytes);
    return this.isReading;
  }

  next(): void {
    this.nextCount += 1;
  }

  end(): void {
    if (this.status !== undefined) throw new Error("it has ended twice");
    this.status = 0;
  }

  fail(thrown: unknown): void {
    if (this.status !== undefined) throw new Error("it has ended twice");
    this.status = thrown instanceof GrpcFailure ? thrown.grpcStatus : 13;
    if (!(thrown instanceof GrpcFailure)) this.bug = thrown;
  }

  /** Hands bytes over as they came. */
  bytes(bytes: Uint8Array): void {
    this.#reader?.onMessage(bytes);
  }

  discover(init: MessageInitShape<typeof DiscoveryRequestSchema>): void {
    this.bytes(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, init)));
  }

  /** Asks for layers. @param versionInfo of the layer that the Envoy has; empty: none */
  subscribe(
    node: NodeInit | undefined,
    resourceNames: readonly string[] = ["headgate"],
    versionInfo = "",
  ): void {
    const names = [...resourceNames];
    const typeUrl = runtimeTypeUrl;
    this.discover({ ...(node && { node }), typeUrl, resourceNames: names, versionInfo });
  }

  /** Answers the layer that came last, or the one of that nonce. */
  acknowledge(nonce = this.layers.at(-1)?.nonce ?? ""): void {
    const names = ["headgate"];
    this.discover({ typeUrl: runtimeTypeUrl, responseNonce: nonce, resourceNames: names });
  }

  refuse(message: string, nonce = this.layers.at(-1)?.nonce ?? ""): void {
    this.discover({
      typeUrl: runtimeTypeUrl,
      responseNonce: nonce,
      resourceNames: ["headgate"],
      errorDetail: { code: 13, message },
    });
  }

  reportLoad(init: MessageInitShape<typeof LoadStatsRequestSchema>): void {
    this.bytes(toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, init)));
  }

  pushMetrics(
    node: NodeInit | undefined,
    envoyMetrics: readonly MessageInitShape<typeof MetricFamilySchema>[],
  ): void {
    const identifier = node && { identifier: { node } };
    const init = { ...identifier, envoyMetrics: [...envoyMetrics] };
    this.bytes(toBinary(StreamMetricsMessageSchema, create(StreamMetricsMessageSchema, init)));
  }

  /** The Envoy sends no more, or has gone. */
  halfClose(): void {
    this.#reader?.onEnd();
  }

  cancel(): void {
    this.#reader?.onCancel();
  }

  /** The Envoy has read what it was sent. */
  drain(): void {
    this.isReading = true;
    this.#reader?.onDrain();
  }

  get responses(): readonly DiscoveryResponse[] {
    return this.sent.map((bytes) => fromBinary(DiscoveryResponseSchema, bytes));
  }

  get loadAsks() {
    return this.sent.map((bytes) => fromBinary(LoadStatsResponseSchema, bytes));
  }

  /** All layers that it was sent, in order. */
  get layers(): readonly SeenLayer[] {
    return this.responses
      .filter(({ typeUrl }) => typeUrl === runtimeTypeUrl)
      .flatMap(({ resources, nonce, versionInfo }) =>
        resources.map((any) => {
          const wrapped = anyUnpack(any, ResourceSchema);
          const inner = wrapped?.resource ?? any;
          const runtime = anyUnpack(inner, RuntimeSchema);
          const { seconds = 0n, nanos = 0 } = wrapped?.ttl ?? {};
          return {
            name: runtime?.name ?? "",
            version: versionInfo,
            nonce,
            values: { ...runtime?.layer },
            ttlMs: wrapped?.ttl && Number(seconds) * 1_000 + nanos / 1_000_000,
          };
        }),
      );
  }
}

/** A control plane in a test's hand: its time, its policy, its Envoys. */
export class ControlRig {
  readonly clock = new FakeClock();
  readonly plane: ControlPlane;

  constructor(
    services: readonly ServicePolicy[] = [reportedService("orders")],
    parts: Partial<ControlPlaneParts> = {},
  ) {
    this.plane = new ControlPlane({ clock: this.clock, random: new FakeRandom(), ...parts });
    this.plane.usePolicy(services);
  }

  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  /** A stream of a method. @throws what the handler throws in place of a reader */
  open(method: ControlMethod, peer: Peer = unknownPeer): TestStream {
    const handlers = this.plane.services.flatMap(({ methods }) => methods);
    const handler = handlers.find(({ name }) => name === method);
    if (handler?.kind !== "bidi") throw new Error(`no method ${method}`);
    const stream = new TestStream();
    const metadata = (): undefined => undefined;
    const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata, peer };
    stream.listen(handler.open(call, stream));
    return stream;
  }

  /** An Envoy that has asked for its layer. */
  subscribed(id: string, peer: Peer = unknownPeer): TestStream {
    const stream = this.open("StreamRuntime", peer);
    stream.subscribe(testNode(id));
    return stream;
  }
}

type FamilyInit = MessageInitShape<typeof MetricFamilySchema>;

/** Labels, by name. */
export type TestLabels = Readonly<Record<string, string>>;

function pairs(labels: TestLabels): { name: string; value: string }[] {
  return Object.entries(labels).map(([name, value]) => ({ name, value }));
}

/** A counter, as what was counted since the flush before. */
export function counterFamily(
  name: string,
  value: number,
  { stampMs = 0, labels = {} }: { readonly stampMs?: number; readonly labels?: TestLabels } = {},
): FamilyInit {
  const metric = [{ counter: { value }, timestampMs: BigInt(stampMs), label: pairs(labels) }];
  return { name, type: MetricType.COUNTER, metric };
}

/** A gauge. */
export function gaugeFamily(
  name: string,
  value: number,
  { stampMs = 0, labels = {} }: { readonly stampMs?: number; readonly labels?: TestLabels } = {},
): FamilyInit {
  const metric = [{ gauge: { value }, timestampMs: BigInt(stampMs), label: pairs(labels) }];
  return { name, type: MetricType.GAUGE, metric };
}

/** Times of a flush by bucket: upper bounds, and how many are in each. */
export function histogramFamily(
  name: string,
  inBucket: Readonly<Record<string, number>>,
  { sumMs, stampMs = 0 }: { readonly sumMs: number; readonly stampMs?: number },
): FamilyInit {
  let count = 0;
  const bucket = Object.entries(inBucket).map(([upTo, more]) => {
    count += more;
    return { upperBound: Number(upTo), cumulativeCount: BigInt(count) };
  });
  const histogram = { sampleCount: BigInt(count), sampleSum: sumMs, bucket };
  const metric = [{ histogram, timestampMs: BigInt(stampMs) }];
  return { name, type: MetricType.HISTOGRAM, metric };
}

/** The same times by quantile. */
export function summaryFamily(
  name: string,
  quantiles: Readonly<Record<string, number>>,
  times: { readonly count: number; readonly sumMs: number; readonly stampMs?: number },
): FamilyInit {
  const quantile = Object.entries(quantiles).map(([at, value]) => ({
    quantile: Number(at),
    value,
  }));
  const { count, sumMs, stampMs = 0 } = times;
  const summary = { sampleCount: BigInt(count), sampleSum: sumMs, quantile };
  const metric = [{ summary, timestampMs: BigInt(stampMs) }];
  return { name, type: MetricType.SUMMARY, metric };
}
