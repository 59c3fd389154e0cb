import { createServer } from "node:http";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { z } from "zod";
import { listen } from "../../src/app/base/listen.js";
import type { Stage } from "./stage.js";

const attributeShape = z.object({
  key: z.string(),
  value: z.object({
    stringValue: z.string().optional(),
    arrayValue: z.object({ values: z.array(z.object({ stringValue: z.string() })) }).optional(),
  }),
});

const spanShape = z.object({
  traceId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes: z.array(attributeShape),
  status: z.object({ code: z.number() }),
});

/** Source: opentelemetry-proto, ExportTraceServiceRequest in proto3 JSON. */
const requestShape = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attributeShape) }),
      scopeSpans: z.array(z.object({ spans: z.array(spanShape) })),
    }),
  ),
});

/** A span as it was received. */
export interface ReceivedSpan {
  readonly traceId: string;
  /** Absent for the first of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** Lists are joined by commas. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  /** 2 is an error. */
  readonly statusCode: number;
}

/** A collector of OpenTelemetry traces over HTTP, as JSON. */
export interface OtlpServer {
  readonly port: number;
  readonly spans: readonly ReceivedSpan[];
  /** All that was received, as it came. */
  readonly bodies: readonly string[];
}

/** Starts a collector over gRPC that keeps messages as they come, in plaintext. */
export async function startOtlpGrpcServer(
  stage: Pick<Stage, "atEnd">,
): Promise<{ readonly port: number; readonly messages: readonly Buffer[] }> {
  const messages: Buffer[] = [];
  const server = new Server();
  const keep = (bytes: Buffer): Buffer => bytes;
  const definition = {
    path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    requestStream: false,
    responseStream: false,
    requestSerialize: keep,
    requestDeserialize: keep,
    responseSerialize: keep,
    responseDeserialize: keep,
  } as const;
  const take = (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): void => {
    messages.push(call.request);
    respond(null, Buffer.alloc(0));
  };
  server.addService({ Export: definition }, { Export: take });
  stage.atEnd(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, messages };
}

/** Starts one on a port of this machine. */
export async function startOtlpServer(stage: Pick<Stage, "atEnd">): Promise<OtlpServer> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const isRight = request.method === "POST" && request.url === "/v1/traces";
      const body = Buffer.concat(chunks).toString("utf8");
      if (isRight) {
        bodies.push(body);
        spans.push(...decode(body));
      }
      response.writeHead(isRight ? 200 : 404, { "content-type": "application/json" });
      response.end("{}");
    });
  });
  const settings = { hostSetting: "HOST", portSetting: "PORT", connectionsMax: 10 };
  const { port } = await listen(server, { host: "127.0.0.1", port: 0, ...settings });
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port, spans, bodies };
}

function decode(body: string): readonly ReceivedSpan[] {
  const { resourceSpans } = requestShape.parse(JSON.parse(body));
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, parentSpanId, name, attributes, status }) => ({
        traceId,
        ...(parentSpanId === undefined ? {} : { parentSpanId }),
        name,
        attributes: textsOf(attributes),
        resource: textsOf(resource.attributes),
        statusCode: status.code,
      })),
    ),
  );
}

function textsOf(
  attributes: readonly z.infer<typeof attributeShape>[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const list = value.arrayValue?.values.map((one) => one.stringValue).join(",");
      return [key, value.stringValue ?? list ?? ""];
    }),
  );
}
