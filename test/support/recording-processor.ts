import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { processPath } from "./ext-proc.js";
import type { Stage } from "./stage.js";
import { identity } from "./transports.js";

/** One exchange as an external processor is told of it. */
export interface RecordedProcessing {
  /** The service that the stream's metadata names. */
  readonly service: string | undefined;
  readonly messages: readonly ProcessingRequest[];
}

/** A processor that lets everything pass, and keeps what it is sent. */
export interface RecordingProcessor {
  readonly port: number;
  readonly exchanges: readonly RecordedProcessing[];
}

/** Starts one; it ends with the stage. */
export async function startRecordingProcessor(stage: Stage): Promise<RecordingProcessor> {
  const exchanges: RecordedProcessing[] = [];
  const server = new Server();
  const codec = {
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
  server.addService(
    {
      process: { ...codec, path: processPath, requestStream: true, responseStream: true },
      check: { ...codec, path: healthPath, requestStream: false, responseStream: false },
    },
    {
      process: (stream: ServerDuplexStream<Buffer, Buffer>) => {
        const messages: ProcessingRequest[] = [];
        const [service] = stream.metadata.get("x-headgate-service");
        exchanges.push({ service: service?.toString(), messages });
        stream.on("data", (bytes: Buffer) => {
          const message = fromBinary(ProcessingRequestSchema, bytes);
          messages.push(message);
          stream.write(goOn(message));
        });
        stream.on("end", () => stream.end());
        stream.on("error", () => {});
      },
      check: (_call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) =>
        answer(null, serving),
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  stage.atEnd(() => server.forceShutdown());
  return { port, exchanges };
}

const healthPath = "/grpc.health.v1.Health/Check";

/** HealthCheckResponse with the status SERVING. */
const serving = Buffer.from([0x08, 0x01]);

function goOn({ request }: ProcessingRequest): Buffer {
  if (request.case !== "requestHeaders" && request.case !== "responseHeaders") {
    throw new Error(`nobody asked for ${request.case}`);
  }
  const response = create(ProcessingResponseSchema, {
    response: { case: request.case, value: {} },
  });
  return Buffer.from(toBinary(ProcessingResponseSchema, response));
}
