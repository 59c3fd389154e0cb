import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { RateLimitService } from "../gen/envoy/service/ratelimit/v3/rls_pb.js";
import { Health } from "../gen/grpc/health/v1/health_pb.js";

/** What is described. */
const services: readonly DescService[] = [RateLimitService, Health];

/**
 * Serves gRPC reflection (v1 and v1alpha) for our services, so that grpcurl and its kin need no
 * files. Off unless asked for: it tells everybody on the port what there is.
 */
export function addReflection(server: Server): void {
  const files = new Map<string, Buffer>();
  for (const service of services) collectFiles(service.file, files);
  // The library reads descriptors only, from any entry; the rest of an entry is never looked at.
  const entry = {
    format: "Protocol Buffer 3 EnumDescriptorProto" as const,
    type: {},
    fileDescriptorProtos: [...files.values()],
  };
  new ReflectionService(
    { files: entry },
    { services: services.map((one) => one.typeName) },
  ).addToServer(server);
}

/** A file and all it imports, each once. */
function collectFiles(file: DescFile, files: Map<string, Buffer>): void {
  if (files.has(file.name)) return;
  files.set(file.name, Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  for (const dependency of file.dependencies) collectFiles(dependency, files);
}
