import { createServer } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  file_google_protobuf_wrappers,
  StringValueSchema,
} from "@bufbuild/protobuf/wkt";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import type { Stage } from "../../support/stage.js";

/** What a service answers to a call: by default OK. */
export interface ServiceAnswer {
  readonly code?: number;
  /** Sent with an error. */
  readonly metadata?: Readonly<Record<string, string | readonly string[]>>;
}

/** A call as the service has received it. */
export interface ServiceCall {
  readonly headers: Readonly<Record<string, unknown>>;
  /** Resolves when the caller has gone, or the call has ended. */
  readonly closed: Promise<void>;
  /** Sends a message of the response. */
  send(message: string): void;
  end(answer?: ServiceAnswer): void;
}

/** A service that a test answers for. */
export interface GrpcService {
  readonly port: number;
  readonly calls: readonly ServiceCall[];
  answer: (call: ServiceCall, index: number) => void;
  /** Kills all connections. */
  kill(): void;
}

/** Starts a service; it ends with the stage. */
export type StartService = (stage: Stage) => Promise<GrpcService>;

const text = ".google.protobuf.StringValue";

/** The API of all services here: calls with a text for a text, and with streams of them. */
const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "orders.proto",
    package: "test",
    syntax: "proto3",
    dependency: ["google/protobuf/wrappers.proto"],
    service: [
      {
        name: "Orders",
        method: [
          { name: "Get", inputType: text, outputType: text },
          { name: "Watch", inputType: text, outputType: text, serverStreaming: true },
          { name: "Put", inputType: text, outputType: text, clientStreaming: true },
        ],
      },
    ],
  }),
  () => file_google_protobuf_wrappers,
);

type Text = typeof StringValueSchema;

function methodOf(name: string): DescMethod {
  const method = registry.getService("test.Orders")?.methods.find((one) => one.name === name);
  if (method === undefined) throw new Error(`there is no ${name}`);
  return method;
}

export const getMethod = methodOf("Get") as DescMethodUnary<Text, Text>;
export const putMethod = methodOf("Put") as DescMethodClientStreaming<Text, Text>;
export const watchMethod = methodOf("Watch") as DescMethodServerStreaming<Text, Text>;

/** A method as grpc-js has it. */
export function grpcJsMethod({ name, methodKind }: DescMethod): MethodDefinition<string, string> {
  const serialize = (value: string): Buffer =>
    Buffer.from(toBinary(StringValueSchema, create(StringValueSchema, { value })));
  const deserialize = (bytes: Buffer): string => fromBinary(StringValueSchema, bytes).value;
  return {
    path: `/test.Orders/${name}`,
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: serialize,
    requestDeserialize: deserialize,
    responseSerialize: serialize,
    responseDeserialize: deserialize,
  };
}

/** The calls of a service, and the one way in which they are answered. */
function recordCalls(): Pick<GrpcService, "calls" | "answer"> & {
  record(call: ServiceCall): void;
} {
  const calls: ServiceCall[] = [];
  const recorded = {
    calls,
    answer: (call: ServiceCall, _index: number): void => call.end(),
    record: (call: ServiceCall): void => {
      calls.push(call);
      recorded.answer(call, calls.length - 1);
    },
  };
  return recorded;
}

/** A server of grpc-js. */
export const startGrpcJsService: StartService = async (stage) => {
  const server = new Server();
  const recorded = recordCalls();
  server.addService(
    {
      get: grpcJsMethod(getMethod),
      watch: grpcJsMethod(watchMethod),
      put: grpcJsMethod(putMethod),
    },
    {
      get: (call: ServerUnaryCall<string, string>, callback: sendUnaryData<string>) => {
        let message = "";
        recorded.record({
          headers: call.metadata.getMap(),
          closed: new Promise((resolve) => call.once("cancelled", resolve)),
          send: (sent) => {
            message = sent;
          },
          end: ({ code, metadata } = {}) => {
            if (code === undefined) callback(null, message);
            else callback({ code, details: "refused", metadata: grpcMetadata(metadata) });
          },
        });
      },
      // It answers with all that it got.
      put: (call: ServerReadableStream<string, string>, callback: sendUnaryData<string>) => {
        let all = "";
        call.on("data", (message: string) => {
          all += message;
        });
        call.on("end", () => callback(null, all));
      },
      watch: (call: ServerWritableStream<string, string>) => {
        recorded.record({
          headers: call.metadata.getMap(),
          closed: new Promise((resolve) => call.once("cancelled", resolve)),
          send: (sent) => call.write(sent),
          end: ({ code, metadata } = {}) => {
            if (code === undefined) call.end();
            else call.emit("error", { code, details: "refused", metadata: grpcMetadata(metadata) });
          },
        });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  stage.atEnd(() => server.forceShutdown());
  return Object.assign(recorded, { port, kill: () => server.forceShutdown() });
};

function grpcMetadata(values: ServiceAnswer["metadata"] = {}): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) metadata.add(name, one);
  }
  return metadata;
}

/** A server of Connect, which serves gRPC and its own protocol over HTTP/2. */
export const startConnectService: StartService = async (stage) => {
  const recorded = recordCalls();
  const handler = connectNodeAdapter({
    routes: (router) => {
      router.rpc(
        getMethod,
        (_request, context) =>
          new Promise((resolve, reject) => {
            let value = "";
            recorded.record({
              ...callFacts(context),
              send: (message) => {
                value = message;
              },
              end: ({ code, metadata } = {}) => {
                if (code === undefined) resolve(create(StringValueSchema, { value }));
                else reject(connectError(code, metadata));
              },
            });
          }),
      );
      router.rpc(watchMethod, async function* (_request, context) {
        const messages = new MessageQueue();
        recorded.record({
          ...callFacts(context),
          send: (message) => messages.push({ message }),
          end: (answer = {}) => messages.push({ answer }),
        });
        for (;;) {
          const { message, answer } = await messages.next();
          if (message !== undefined) yield create(StringValueSchema, { value: message });
          else if (answer?.code === undefined) return;
          else throw connectError(answer.code, answer.metadata);
        }
      });
    },
  });
  const server = createServer(handler);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  const kill = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    kill();
    server.close();
  });
  // It listens on TCP, so its address is no text.
  const { port } = server.address() as AddressInfo;
  return Object.assign(recorded, { port, kill });
};

function callFacts(context: HandlerContext): Pick<ServiceCall, "headers" | "closed"> {
  return {
    headers: Object.fromEntries(context.requestHeader),
    closed: new Promise((resolve) => {
      context.signal.addEventListener("abort", () => resolve());
    }),
  };
}

function connectError(code: number, values: ServiceAnswer["metadata"] = {}): ConnectError {
  const metadata = new Headers();
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) metadata.append(name, one);
  }
  return new ConnectError("refused", code, metadata);
}

interface QueuedMessage {
  readonly message?: string;
  readonly answer?: ServiceAnswer;
}

/** Messages in their order, for one reader. */
class MessageQueue {
  readonly #messages: QueuedMessage[] = [];
  #wake: (() => void) | undefined;

  push(message: QueuedMessage): void {
    this.#messages.push(message);
    this.#wake?.();
  }

  async next(): Promise<QueuedMessage> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
