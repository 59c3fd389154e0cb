import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "../../src/gen/grpc/health/v1/health_pb.js";

/** Health as gRPC probes ask for it: the status's name, or the call's when it failed. */
export function grpcHealth(grpcPort: number, service: string): Promise<string> {
  const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  const request = Buffer.from(
    toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })),
  );
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => fromBinary(HealthCheckResponseSchema, bytes),
      request,
      (error: ServiceError | null, answer) => {
        client.close();
        const code = answer?.status ?? HealthCheckResponse_ServingStatus.UNKNOWN;
        const served = HealthCheckResponse_ServingStatus[code];
        resolve(error === null ? served : (status[error.code] ?? "UNKNOWN"));
      },
    );
  });
}
