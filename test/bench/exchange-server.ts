import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
  type ProcessingResponse,
  ProcessingResponseSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";

/**
 * The floor of an exchange: @grpc/grpc-js with messages by protobuf-es, answering each with nothing
 * to change, as one writes such a server. Prints its port once it listens; ends on SIGTERM.
 */
const server = new Server({ "grpc.max_concurrent_streams": 1_000 });
server.addService(
  {
    Process: {
      path: "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
      requestStream: true,
      responseStream: true,
      requestSerialize: (message: ProcessingRequest) =>
        Buffer.from(toBinary(ProcessingRequestSchema, message)),
      requestDeserialize: (bytes: Buffer) => fromBinary(ProcessingRequestSchema, bytes),
      responseSerialize: (message: ProcessingResponse) =>
        Buffer.from(toBinary(ProcessingResponseSchema, message)),
      responseDeserialize: (bytes: Buffer) => fromBinary(ProcessingResponseSchema, bytes),
    },
  },
  { Process: answer },
);

function answer(call: ServerDuplexStream<ProcessingRequest, ProcessingResponse>): void {
  call.on("data", ({ request }: ProcessingRequest) => {
    const { case: kind } = request;
    if (kind !== "requestHeaders" && kind !== "responseHeaders") throw new Error(`sent: ${kind}`);
    call.write(create(ProcessingResponseSchema, { response: { case: kind, value: {} } }));
  });
  call.on("end", () => call.end());
}

server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.stdout.write(`${port}\n`);
});
process.on("SIGTERM", () => server.forceShutdown());
