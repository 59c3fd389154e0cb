import { createServer, type IncomingHttpHeaders } from "node:http";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { z } from "zod";
import { listen } from "../../src/app/base/listen.js";
import type { Stage } from "./stage.js";

/** A point of a series as it was received. */
export interface ReceivedPoint {
  readonly labels: Readonly<Record<string, unknown>>;
  readonly startNano: bigint;
  readonly timeNano: bigint;
  /** Undefined for histograms. */
  readonly value?: number;
  readonly histogram?: {
    readonly bounds: readonly number[];
    readonly counts: readonly number[];
    readonly count: number;
    readonly sum: number;
  };
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  /** 2: cumulative. Undefined for gauges. */
  readonly temporality: number | undefined;
  readonly isMonotonic: boolean;
  readonly points: readonly ReceivedPoint[];
}

export interface ReceivedLog {
  readonly severity: number;
  readonly event: string;
  readonly body: unknown;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly timeNano: bigint;
}

/** One message, as it was received. */
export interface ReceivedExport {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly metrics: readonly ReceivedMetric[];
  readonly logs: readonly ReceivedLog[];
  readonly headers: IncomingHttpHeaders;
}

/** How a collector answers. */
export type CollectorAnswer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** It takes the message and never answers. */
  | "silence";

/** A collector of OpenTelemetry metrics and logs. */
export interface OtlpCollector {
  readonly port: number;
  readonly exports: readonly ReceivedExport[];
  /** How many messages came, whatever the answer. */
  readonly messageCount: number;
  /** What messages held, as text. */
  readonly text: string;
}

const taken: CollectorAnswer = { status: 200 };

/** Starts a collector over HTTP; messages that it answers with 200 are in `exports`. */
export async function startOtlpCollector(
  stage: Pick<Stage, "atEnd">,
  answerOf: (messageNumber: number) => CollectorAnswer = () => taken,
): Promise<OtlpCollector> {
  const exports: ReceivedExport[] = [];
  const texts: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      texts.push(body.toString("latin1"));
      const answer = answerOf(texts.length);
      if (answer === "silence") return;
      const { status, headers = {} } = answer;
      const type = request.headers["content-type"];
      if (status === 200) {
        const isLogs = request.url === "/v1/logs";
        const message = type === "application/json" ? readJson(body) : readProtobuf(body, isLogs);
        exports.push({ ...message, headers: request.headers });
      }
      response.writeHead(status, { "content-type": type ?? "", ...headers });
      response.end(type === "application/json" ? "{}" : "");
    });
  });
  const settings = { hostSetting: "HOST", portSetting: "PORT", connectionsMax: 10 };
  const { port } = await listen(server, { host: "127.0.0.1", port: 0, ...settings });
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return collectorOf(port, exports, texts);
}

/** Starts one over gRPC, in plaintext. */
export async function startOtlpGrpcCollector(stage: Pick<Stage, "atEnd">): Promise<OtlpCollector> {
  const exports: ReceivedExport[] = [];
  const texts: string[] = [];
  const server = new Server();
  for (const [isLogs, service] of [
    [false, "opentelemetry.proto.collector.metrics.v1.MetricsService"],
    [true, "opentelemetry.proto.collector.logs.v1.LogsService"],
  ] as const) {
    const keep = (bytes: Buffer): Buffer => bytes;
    const definition = {
      path: `/${service}/Export`,
      requestStream: false,
      responseStream: false,
      requestSerialize: keep,
      requestDeserialize: keep,
      responseSerialize: keep,
      responseDeserialize: keep,
    } as const;
    const take = (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): void => {
      texts.push(call.request.toString("latin1"));
      const headers = call.metadata.toHttp2Headers() as IncomingHttpHeaders;
      exports.push({ ...readProtobuf(call.request, isLogs), headers });
      respond(null, Buffer.alloc(0));
    };
    server.addService({ Export: definition }, { Export: take });
  }
  stage.atEnd(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return collectorOf(port, exports, texts);
}

function collectorOf(
  port: number,
  exports: readonly ReceivedExport[],
  texts: readonly string[],
): OtlpCollector {
  return {
    port,
    exports,
    get messageCount() {
      return texts.length;
    },
    get text() {
      return texts.join("\n");
    },
  };
}

type ReadMessage = Omit<ReceivedExport, "headers">;

/** A message's fields by number, each as it stands in the bytes. */
type Fields = ReadonlyMap<number, readonly (Uint8Array | bigint)[]>;

/** Source: Protocol Buffers, "Encoding". */
function fieldsOf(bytes: Uint8Array): Fields {
  const fields = new Map<number, (Uint8Array | bigint)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const values = fields.get(number) ?? [];
    fields.set(number, values);
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(BigInt(reader.uint64()));
    else if (type === WireType.Bit64) values.push(BigInt(reader.fixed64()));
    else throw new Error(`no field of OTLP has wire type ${type}`);
  }
  return fields;
}

function partsOf(fields: Fields | undefined, number: number): readonly Fields[] {
  return (fields?.get(number) ?? []).map((value) => {
    if (typeof value === "bigint") throw new Error(`field ${number} is no message`);
    return fieldsOf(value);
  });
}

function numberOf(fields: Fields | undefined, number: number): bigint {
  const [value = 0n] = fields?.get(number) ?? [];
  if (typeof value !== "bigint") throw new Error(`field ${number} is no number`);
  return value;
}

function textOf(fields: Fields, number: number): string {
  const [value = new Uint8Array()] = fields.get(number) ?? [];
  if (typeof value === "bigint") throw new Error(`field ${number} is no text`);
  return Buffer.from(value).toString("utf8");
}

function doubleOf(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

/** Packed 64-bit values. */
function packedOf(fields: Fields, number: number): readonly bigint[] {
  return (fields.get(number) ?? []).flatMap((value) => {
    if (typeof value === "bigint") return [value];
    const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
    return Array.from({ length: value.byteLength / 8 }, (_, i) => view.getBigUint64(i * 8, true));
  });
}

/** Source: opentelemetry/proto/common/v1/common.proto, AnyValue. */
function anyValueOf(fields: Fields | undefined): unknown {
  if (fields === undefined) return undefined;
  if (fields.has(1)) return textOf(fields, 1);
  if (fields.has(2)) return numberOf(fields, 2) === 1n;
  if (fields.has(3)) return Number(BigInt.asIntN(64, numberOf(fields, 3)));
  if (fields.has(4)) return doubleOf(numberOf(fields, 4));
  if (fields.has(5)) return partsOf(partsOf(fields, 5)[0], 1).map(anyValueOf);
  if (fields.has(6)) return attributesOf(partsOf(partsOf(fields, 6)[0], 1));
  return undefined;
}

function attributesOf(pairs: readonly Fields[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    pairs.map((pair) => [textOf(pair, 1), anyValueOf(partsOf(pair, 2)[0])]),
  );
}

/** Source: opentelemetry/proto/{metrics,logs}/v1, and their collectors' requests. */
function readProtobuf(body: Uint8Array, isLogs: boolean): ReadMessage {
  const [message] = partsOf(fieldsOf(body), 1);
  const [resource] = partsOf(message, 1);
  const scopes = partsOf(message, 2).flatMap((scope) => partsOf(scope, 2));
  return {
    resource: attributesOf(partsOf(resource, 1)),
    metrics: isLogs ? [] : scopes.map(metricOf),
    logs: isLogs ? scopes.map(logOf) : [],
  };
}

function metricOf(fields: Fields): ReceivedMetric {
  const kind = fields.has(5) ? "gauge" : fields.has(7) ? "sum" : "histogram";
  const [data] = partsOf(fields, { gauge: 5, sum: 7, histogram: 9 }[kind]);
  return {
    name: textOf(fields, 1),
    unit: textOf(fields, 3),
    kind,
    temporality: kind === "gauge" ? undefined : Number(numberOf(data, 2)),
    isMonotonic: kind === "sum" && numberOf(data, 3) === 1n,
    points: partsOf(data, 1).map(kind === "histogram" ? histogramPointOf : pointOf),
  };
}

function pointOf(point: Fields): ReceivedPoint {
  return {
    labels: attributesOf(partsOf(point, 7)),
    startNano: numberOf(point, 2),
    timeNano: numberOf(point, 3),
    value: point.has(6) ? Number(numberOf(point, 6)) : doubleOf(numberOf(point, 4)),
  };
}

function histogramPointOf(point: Fields): ReceivedPoint {
  return {
    labels: attributesOf(partsOf(point, 9)),
    startNano: numberOf(point, 2),
    timeNano: numberOf(point, 3),
    histogram: {
      bounds: packedOf(point, 7).map(doubleOf),
      counts: packedOf(point, 6).map(Number),
      count: Number(numberOf(point, 4)),
      sum: doubleOf(numberOf(point, 5)),
    },
  };
}

function logOf(record: Fields): ReceivedLog {
  return {
    severity: Number(numberOf(record, 2)),
    event: textOf(record, 12),
    body: anyValueOf(partsOf(record, 5)[0]),
    attributes: attributesOf(partsOf(record, 6)),
    timeNano: numberOf(record, 1),
  };
}

const jsonAttributes = z.array(
  z.object({ key: z.string(), value: z.object({ stringValue: z.string() }) }),
);

const jsonPoint = z.object({
  attributes: jsonAttributes,
  startTimeUnixNano: z.string(),
  timeUnixNano: z.string(),
});

const jsonNumbers = z.object({ dataPoints: z.array(jsonPoint.extend({ asDouble: z.number() })) });

/** Source: opentelemetry-proto, ExportMetricsServiceRequest in proto3 JSON. */
const jsonMessage = z.object({
  resourceMetrics: z.tuple([
    z.object({
      resource: z.object({ attributes: jsonAttributes }),
      scopeMetrics: z.tuple([
        z.object({
          metrics: z.array(
            z.object({
              name: z.string(),
              unit: z.string(),
              gauge: jsonNumbers.optional(),
              sum: jsonNumbers
                .extend({ aggregationTemporality: z.number(), isMonotonic: z.boolean() })
                .optional(),
              histogram: z
                .object({
                  aggregationTemporality: z.number(),
                  dataPoints: z.array(
                    jsonPoint.extend({
                      count: z.number(),
                      sum: z.number(),
                      bucketCounts: z.array(z.number()),
                      explicitBounds: z.array(z.number()),
                    }),
                  ),
                })
                .optional(),
            }),
          ),
        }),
      ]),
    }),
  ]),
});

/** Metrics as JSON; logs are read as protobuf alone. */
function readJson(body: Buffer): ReadMessage {
  const {
    resourceMetrics: [{ resource, scopeMetrics }],
  } = jsonMessage.parse(JSON.parse(body.toString("utf8")));
  const metrics = scopeMetrics[0].metrics.map(({ name, unit, gauge, sum, histogram }) => {
    const numbers = (gauge ?? sum)?.dataPoints.map((point) => ({
      ...jsonPointParts(point),
      value: point.asDouble,
    }));
    const histograms = histogram?.dataPoints.map((point) => {
      const { explicitBounds: bounds, bucketCounts: counts, count, sum: total } = point;
      return { ...jsonPointParts(point), histogram: { bounds, counts, count, sum: total } };
    });
    return {
      name,
      unit,
      kind: gauge ? ("gauge" as const) : sum ? ("sum" as const) : ("histogram" as const),
      temporality: (sum ?? histogram)?.aggregationTemporality,
      isMonotonic: sum?.isMonotonic === true,
      points: numbers ?? histograms ?? [],
    };
  });
  return { resource: jsonLabels(resource.attributes), metrics, logs: [] };
}

function jsonPointParts({
  attributes,
  startTimeUnixNano,
  timeUnixNano,
}: z.infer<typeof jsonPoint>) {
  return {
    labels: jsonLabels(attributes),
    startNano: BigInt(startTimeUnixNano),
    timeNano: BigInt(timeUnixNano),
  };
}

function jsonLabels(attributes: z.infer<typeof jsonAttributes>): Readonly<Record<string, string>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));
}
