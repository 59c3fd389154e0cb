import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { LoadStatsResponseSchema } from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import { FieldReader, fieldTag } from "../../src/rpc/codec/field-reader.js";
import { runtimeTypeUrl } from "../../src/rpc/control/layer-encoder.js";
import {
  type ClusterSecond,
  encodeIdentifier,
  encodeNode,
  type FlushLayout,
  framed,
  headBytes,
  LoadLayout,
} from "./control-messages.js";
import { bytesField } from "./message-template.js";

/** What simulated Envoys have done, all together. */
export interface EnvoyCounts {
  flushCount: number;
  reportCount: number;
  layerCount: number;
  layerBytes: number;
  /** Messages that were due while the one before had not left yet. */
  skippedCount: number;
  /** Streams and connections that ended. */
  endedCount: number;
}

/** What a `SimulatedEnvoy` is made of. */
export interface SimulatedEnvoyParts {
  readonly id: string;
  readonly port: number;
  readonly clusterCount: number;
  readonly layout: FlushLayout;
  readonly counts: EnvoyCounts;
}

/** Methods that an Envoy with a generated bootstrap calls. */
const paths = {
  layers: "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
  loads: "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
  flushes: "/envoy.service.metrics.v3.MetricsService/StreamMetrics",
} as const;

/** Source: envoy.service.discovery.v3.DiscoveryResponse. */
const layerTags = {
  version: fieldTag(1, WireType.LengthDelimited),
  nonce: fieldTag(5, WireType.LengthDelimited),
} as const;

/**
 * What a control port sees of one Envoy: one connection with three streams, of statistics, of load
 * reports with the whole node in each, and of layers, each of which it acknowledges at once.
 */
export class SimulatedEnvoy {
  readonly #parts: SimulatedEnvoyParts;
  readonly #node: Uint8Array;
  readonly #session: ClientHttp2Session;
  readonly #layers: ClientHttp2Stream;
  readonly #flushes: ClientHttp2Stream;
  readonly #loads: ClientHttp2Stream;
  readonly #flush: Buffer;
  readonly #loadLayout: LoadLayout;
  readonly #load: Buffer;
  #isIntroduced = false;
  /** Seconds between load reports, as asked for last; undefined: nobody has asked for any. */
  #loadSeconds: number | undefined;
  #unreported: ClusterSecond[][] = [];
  #isClosing = false;

  constructor(parts: SimulatedEnvoyParts) {
    this.#parts = parts;
    this.#node = encodeNode(parts.id);
    this.#flush = parts.layout.copy();
    this.#loadLayout = new LoadLayout(this.#node, parts.clusterCount);
    this.#load = this.#loadLayout.copy();
    this.#session = connect(`http://127.0.0.1:${parts.port}`);
    this.#session.on("error", () => {});
    this.#layers = this.#open(paths.layers, (message) => this.#takeLayer(message));
    this.#loads = this.#open(paths.loads, (message) => {
      const { loadReportingInterval } = fromBinary(LoadStatsResponseSchema, message);
      this.#loadSeconds = Number(loadReportingInterval?.seconds ?? 0n);
    });
    this.#flushes = this.#open(paths.flushes, () => {});
    const introduction = bytesField(2, this.#node).bytes;
    this.#layers.write(framed(Buffer.concat([introduction, encodeRequest({})])));
    this.#loads.write(framed(bytesField(1, this.#node).bytes));
  }

  /** Sends a second's statistics. */
  flush(seconds: readonly ClusterSecond[], epochMs: number): void {
    const { counts, layout } = this.#parts;
    if (this.#flushes.writableLength > 0) {
      counts.skippedCount += 1;
      return;
    }
    counts.flushCount += 1;
    layout.write(this.#flush, seconds, epochMs);
    if (this.#isIntroduced) {
      this.#flushes.write(this.#flush);
      return;
    }
    this.#isIntroduced = true;
    const flush = this.#flush.subarray(headBytes);
    this.#flushes.write(framed(Buffer.concat([encodeIdentifier(this.#node), flush])));
  }

  /** A second is over: it sends a load report of as many as it was asked for. */
  report(seconds: readonly ClusterSecond[]): void {
    if (this.#loadSeconds === undefined) return;
    this.#unreported.push([...seconds]);
    if (this.#unreported.length < this.#loadSeconds) return;
    const { counts } = this.#parts;
    const total = totalOf(this.#unreported);
    this.#unreported = [];
    if (this.#loads.writableLength > 0) {
      counts.skippedCount += 1;
      return;
    }
    counts.reportCount += 1;
    this.#loadLayout.write(this.#load, total);
    this.#loads.write(this.#load);
  }

  close(): void {
    this.#isClosing = true;
    this.#session.destroy();
  }

  #open(path: string, take: (message: Buffer) => void): ClientHttp2Stream {
    const stream = this.#session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const reader = new MessageReader(take);
    stream.on("data", (bytes: Buffer) => reader.read(bytes));
    stream.on("error", () => {});
    stream.on("close", () => {
      if (!this.#isClosing) this.#parts.counts.endedCount += 1;
    });
    return stream;
  }

  /** Acknowledges it. */
  #takeLayer(message: Buffer): void {
    const { counts } = this.#parts;
    counts.layerCount += 1;
    counts.layerBytes += message.length;
    const reader = new FieldReader(message);
    let versionInfo = "";
    let responseNonce = "";
    while (reader.next()) {
      if (reader.tag === layerTags.version) versionInfo = reader.text();
      else if (reader.tag === layerTags.nonce) responseNonce = reader.text();
      else reader.skip();
    }
    this.#layers.write(framed(encodeRequest({ versionInfo, responseNonce })));
  }
}

/** What each cluster did in all of some seconds; what is in work is so at their end. */
function totalOf(seconds: readonly (readonly ClusterSecond[])[]): readonly ClusterSecond[] {
  const last = seconds.at(-1) ?? [];
  return last.map((one, i) => {
    const sum = (of: (second: ClusterSecond) => number): number =>
      seconds.reduce((total, clusters) => total + of(clusters[i] ?? one), 0);
    return {
      ...one,
      completed: sum(({ completed }) => completed),
      failed: sum(({ failed }) => failed),
      overflowed: sum(({ overflowed }) => overflowed),
    };
  });
}

/** Puts messages together again. */
class MessageReader {
  readonly #take: (message: Buffer) => void;
  #received: Buffer = Buffer.alloc(0);

  constructor(take: (message: Buffer) => void) {
    this.#take = take;
  }

  read(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= headBytes) {
      const end = headBytes + this.#received.readUInt32BE(1);
      if (this.#received.length < end) return;
      this.#take(this.#received.subarray(headBytes, end));
      this.#received = this.#received.subarray(end);
    }
  }
}

function encodeRequest(
  said: Partial<Pick<DiscoveryRequest, "versionInfo" | "responseNonce">>,
): Uint8Array {
  const request = create(DiscoveryRequestSchema, {
    typeUrl: runtimeTypeUrl,
    resourceNames: ["headgate"],
    ...said,
  });
  return toBinary(DiscoveryRequestSchema, request);
}
