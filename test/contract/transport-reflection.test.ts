import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { RateLimitService } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.js";
import { createReflectionServices, reflectionStreamsMax } from "../../src/rpc/grpc/reflection.js";
import { reflectionRequestBytesMax } from "../../src/rpc/grpc/reflection-messages.js";
import type { ServiceHandlers } from "../../src/wire/grpc/service.js";
import {
  identity,
  type PortName,
  portNames,
  type RunningTransport,
  startTransport,
  useTransports,
} from "../support/transports.js";
import { waitFor, within } from "../support/wait.js";

const transports = useTransports();

/** Field numbers. Source: grpc/reflection/v1/reflection.proto. */
const asks = { file: 3, symbol: 4, extension: 5, numbers: 6, services: 7 } as const;
const answers = { host: 1, request: 2, files: 4, numbers: 5, services: 6, error: 7 } as const;

const notFound = 5;

const served: readonly ServiceHandlers[] = [RateLimitService, Health].map(({ typeName }) => ({
  name: typeName,
  methods: [],
}));

async function start(name: PortName): Promise<RunningTransport> {
  const running = await startTransport(name, createReflectionServices(served));
  transports.atEnd(() => running.close());
  return running;
}

type Call = ClientDuplexStream<Buffer, Buffer>;

/** A stream as grpcurl opens one. */
function open({ client }: RunningTransport, version = "v1"): Call {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const call = client.makeBidiStreamRequest(path, identity, identity);
  call.on("error", () => {});
  transports.atEnd(() => call.cancel());
  return call;
}

function question(field: number, value: string | Uint8Array): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.from(new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish());
}

function extension(typeName: string, number: number): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).string(typeName);
  return writer.tag(2, WireType.Varint).int32(number).finish();
}

async function ask(call: Call, bytes: Buffer): Promise<ReadonlyMap<number, readonly Uint8Array[]>> {
  const answer = new Promise<Buffer>((resolve, reject) => {
    call.once("data", resolve);
    call.once("error", reject);
  });
  call.write(bytes);
  return fields(await within("reflection answers", 10_000, answer));
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

type Answer = Awaited<ReturnType<typeof ask>>;

function filesOf(answer: Answer): readonly FileDescriptorProto[] {
  const [body = Buffer.alloc(0)] = answer.get(answers.files) ?? [];
  const files = fields(body).get(1) ?? [];
  return files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

function errorCode(answer: Answer): number | undefined {
  const [body] = answer.get(answers.error) ?? [];
  if (body === undefined) return undefined;
  const reader = new BinaryReader(body);
  expect(reader.tag()).toEqual([1, WireType.Varint]);
  return reader.int32();
}

/** The status that a stream ends with. */
function statusOf(call: Call): Promise<number> {
  const ended = new Promise<number>((resolve) => call.once("status", ({ code }) => resolve(code)));
  return within("the stream ends", 10_000, ended);
}

const rlsFile = "envoy/service/ratelimit/v3/rls.proto";
const fieldOptions = "google.protobuf.FieldOptions";

describe.each(portNames)("reflection on %s", (name) => {
  it.each(["v1", "v1alpha"])("lists what is served over %s", async (version) => {
    const call = open(await start(name), version);
    const answer = await ask(call, question(asks.services, "*"));
    const [list = Buffer.alloc(0)] = answer.get(answers.services) ?? [];
    const names = (fields(list).get(1) ?? []).map((service) =>
      Buffer.from(fields(service).get(1)?.[0] ?? []).toString(),
    );
    expect(names.sort()).toEqual([RateLimitService.typeName, Health.typeName].sort());
  });

  it("repeats the question and its host", async () => {
    const asked = Buffer.concat([question(1, "edge.shop"), question(asks.services, "")]);
    const answer = await ask(open(await start(name)), asked);
    expect(Buffer.concat(answer.get(answers.host) ?? []).toString()).toBe("edge.shop");
    expect(Buffer.concat(answer.get(answers.request) ?? []).equals(asked)).toBe(true);
  });

  it("describes a service with every file that its messages need", async () => {
    const call = open(await start(name));
    const files = filesOf(await ask(call, question(asks.symbol, RateLimitService.typeName)));
    expect(files[0]?.name).toBe(rlsFile);
    expect(files[0]?.service[0]?.method.map((method) => method.name)).toEqual(["ShouldRateLimit"]);
    const names = files.map((file) => file.name);
    expect(new Set(names).size).toBe(names.length);
    // Each file's imports are there too, to the last.
    for (const { dependency } of files) for (const one of dependency) expect(names).toContain(one);
  });

  it("answers the questions of one stream in turn", async () => {
    const call = open(await start(name));
    for (const asked of [
      question(asks.file, rlsFile),
      question(asks.symbol, `${RateLimitService.typeName}.ShouldRateLimit`),
      question(asks.symbol, "envoy.service.ratelimit.v3.RateLimitResponse.overall_code"),
      question(asks.symbol, "envoy.service.ratelimit.v3.RateLimitResponse.OVER_LIMIT"),
    ]) {
      expect(filesOf(await ask(call, asked))[0]?.name).toBe(rlsFile);
    }
    const ended = statusOf(call);
    call.end();
    expect(await ended).toBe(0);
  });

  it("finds extensions of options, by number and all of them", async () => {
    const call = open(await start(name));
    const answer = await ask(call, question(asks.numbers, fieldOptions));
    const [body = Buffer.alloc(0)] = answer.get(answers.numbers) ?? [];
    const [packed = Buffer.alloc(0)] = fields(body).get(2) ?? [];
    const reader = new BinaryReader(packed);
    const numbers: number[] = [];
    while (reader.pos < reader.len) numbers.push(reader.int32());
    // protoc-gen-validate's rules.
    expect(numbers).toContain(1071);
    for (const number of numbers) {
      const found = await ask(call, question(asks.extension, extension(fieldOptions, number)));
      const numbersThere = filesOf(found)[0]?.extension.map((one) => one.number);
      expect(numbersThere).toContain(number);
    }
    const none = await ask(call, question(asks.numbers, rlsRequest));
    expect(none.has(answers.numbers)).toBe(true);
  });

  it.each([
    ["a file", question(asks.file, "no/such.proto"), notFound],
    ["a symbol", question(asks.symbol, "no.such.Thing"), notFound],
    ["an extension", question(asks.extension, extension(fieldOptions, 7)), notFound],
    ["a type's extensions", question(asks.numbers, "no.such.Thing"), notFound],
    ["anything", question(1, "edge.shop"), 3],
  ])("answers an error to who asks for %s that nobody has", async (_, asked, code) => {
    const call = open(await start(name));
    expect(errorCode(await ask(call, asked))).toBe(code);
    // The stream goes on.
    expect((await ask(call, question(asks.services, ""))).has(answers.services)).toBe(true);
  });

  it.each([
    ["bytes that are no question", Buffer.of(0x0a, 9, 1), 3],
    ["a question that is too long", question(1, "a".repeat(reflectionRequestBytesMax)), 8],
  ])("ends the stream of %s with an error", async (_, asked, code) => {
    const call = open(await start(name));
    const ended = statusOf(call);
    call.resume();
    call.write(asked);
    expect(await ended).toBe(code);
  });

  it(`has ${reflectionStreamsMax} streams at a time, and more when some are over`, async () => {
    const running = await start(name);
    const calls = Array.from({ length: reflectionStreamsMax }, () => open(running));
    for (const call of calls) await ask(call, question(asks.services, ""));
    const late = open(running);
    const ended = statusOf(late);
    late.resume();
    expect(await ended).toBe(8);
    const [first, second] = calls;
    first?.cancel();
    second?.end();
    for (let left = 2; left > 0; left -= 1) {
      await waitFor("there is room again", async () => {
        const call = open(running);
        const isServed = await ask(call, question(asks.services, "")).then(
          () => true,
          () => false,
        );
        return isServed;
      });
    }
    expect(running.bugs).toEqual([]);
  });

  it("answers every question of a client that reads late", async () => {
    const running = await start(name);
    const call = open(running);
    call.pause();
    const asked = question(asks.symbol, RateLimitService.typeName);
    for (let count = 0; count < 100; count += 1) call.write(asked);
    let answered = 0;
    call.on("data", () => {
      answered += 1;
    });
    call.end();
    // Windows are shut by now: what waits is one answer a stream, not a hundred.
    call.resume();
    await waitFor("all are answered", () => answered === 100);
  });
});

const rlsRequest = "envoy.service.ratelimit.v3.RateLimitRequest";
