import { type AddressInfo, createServer } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { RateLimitService } from "../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { Health } from "../../../src/gen/grpc/health/v1/health_pb.js";
import { addReflection } from "../../../src/rpc/grpc-js-reflection.js";
import { GrpcJsTransport } from "../../../src/rpc/grpc-js-transport.js";
import { realClock, realRandom } from "../../support/real-clock.js";
import { within } from "../../support/wait.js";

/** Field numbers. Source: grpc/reflection/v1/reflection.proto. */
const askFields = { fileContainingSymbol: 4, listServices: 7 } as const;
const answerFields = { files: 4, services: 6, error: 7 } as const;

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A client as grpcurl is one: a stream of questions, one here. */
async function ask(version: string, field: number, text: string): Promise<Buffer> {
  const transport = new GrpcJsTransport({
    services: [],
    clock: realClock,
    random: realRandom,
    connectionAgeMsMax: 86_400_000,
    connectionAgeGraceMs: 3_600_000,
    onBug: () => {},
    isLate: () => false,
    onDropped: () => {},
    extend: addReflection,
  });
  const server = createServer((socket) => transport.accept(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  cleanups.push(
    () => server.close(),
    () => transport.close(0),
    () => client.close(),
  );
  const identity = (bytes: Buffer): Buffer => bytes;
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const call = client.makeBidiStreamRequest(path, identity, identity);
  const answer = new Promise<Buffer>((resolve, reject) => {
    call.once("data", resolve);
    call.once("error", reject);
  });
  call.write(
    Buffer.from(new BinaryWriter().tag(field, WireType.LengthDelimited).string(text).finish()),
  );
  const bytes = await within("reflection answers", 10_000, answer);
  call.end();
  return bytes;
}

/** The length-delimited fields of a message, by number. */
function fields(bytes: Uint8Array): ReadonlyMap<number, readonly Uint8Array[]> {
  const reader = new BinaryReader(bytes);
  const found = new Map<number, Uint8Array[]>();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, field);
      continue;
    }
    found.set(field, [...(found.get(field) ?? []), reader.bytes()]);
  }
  return found;
}

function only(bytes: Uint8Array, field: number): Uint8Array {
  const [first, ...rest] = fields(bytes).get(field) ?? [];
  if (first === undefined || rest.length > 0) throw new Error(`not one field ${field}`);
  return first;
}

describe("addReflection()", () => {
  it.each(["v1", "v1alpha"])("lists the services over %s", async (version) => {
    const answer = await ask(version, askFields.listServices, "*");
    const services = fields(only(answer, answerFields.services)).get(1) ?? [];
    const names = services.map((service) => Buffer.from(only(service, 1)).toString());
    expect(names.sort()).toEqual([RateLimitService.typeName, Health.typeName].sort());
  });

  it("describes a service with every file that its messages need", async () => {
    const answer = await ask("v1", askFields.fileContainingSymbol, RateLimitService.typeName);
    const files = (fields(only(answer, answerFields.files)).get(1) ?? []).map((bytes) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
    const names = files.map(({ name }) => name);
    const [described] = files.filter(({ service }) => service.length > 0);
    expect(described?.service[0]?.method.map(({ name }) => name)).toEqual(["ShouldRateLimit"]);
    expect(names).toContain("envoy/service/ratelimit/v3/rls.proto");
    expect(names).toContain("envoy/extensions/common/ratelimit/v3/ratelimit.proto");
    expect(names).toContain("google/protobuf/duration.proto");
    // Nothing that a sent file's messages refer to is left out.
    const defined = files.flatMap(definedTypes);
    for (const type of files.flatMap(usedTypes)) expect(defined).toContain(type);
  });

  it("answers an error for a name that nobody has", async () => {
    const answer = await ask("v1", askFields.fileContainingSymbol, "no.such.Thing");
    expect(fields(answer).has(answerFields.error)).toBe(true);
  });
});

type File = ReturnType<typeof fromBinary<typeof FileDescriptorProtoSchema>>;
type MessageType = File["messageType"][number];

function definedTypes(file: File): readonly string[] {
  const prefix = `.${file.package}`;
  return [
    ...file.enumType.map(({ name }) => `${prefix}.${name}`),
    ...file.messageType.flatMap((type) => definedIn(type, prefix)),
  ];
}

function definedIn(type: MessageType, prefix: string): readonly string[] {
  const name = `${prefix}.${type.name}`;
  return [
    name,
    ...type.enumType.map((inner) => `${name}.${inner.name}`),
    ...type.nestedType.flatMap((inner) => definedIn(inner, name)),
  ];
}

function usedTypes(file: File): readonly string[] {
  const used = (type: MessageType): readonly string[] => [
    ...type.field.map(({ typeName }) => typeName).filter((name) => name !== ""),
    ...type.nestedType.flatMap(used),
  ];
  const methods = file.service.flatMap(({ method }) => method);
  return [
    ...file.messageType.flatMap(used),
    ...methods.flatMap(({ inputType, outputType }) => [inputType, outputType]),
  ];
}
