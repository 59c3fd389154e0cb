import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import type { XdsCommand, XdsRequest, XdsServerSettings } from "./xds-server.js";

/**
 * A program of its own: a control plane that serves aggregated discovery, state of the world, as
 * the widely used one in Go does. It answers a subscription with the set it holds, sends a changed
 * set at once, and sends a set that was refused again at once, as often as it is refused.
 *
 * It is told what to do over HTTP, and shows there what it was asked. Started with its settings as
 * JSON; prints its two ports as JSON once it listens.
 */
const settings: XdsServerSettings = JSON.parse(process.argv[2] ?? "{}");

interface Snapshot {
  readonly typeUrl: string;
  readonly version: string;
  readonly resources: readonly { readonly typeUrl: string; readonly base64: string }[];
}

interface Stream {
  readonly id: number;
  readonly call: ServerDuplexStream<Buffer, Buffer>;
  nonce: string;
  typeUrl: string;
}

let snapshot: Snapshot | undefined;
let isSilent = false;
let nonceCount = 0;
let streamCount = 0;
const streams = new Set<Stream>();
const requests: XdsRequest[] = [];

function serve(call: ServerDuplexStream<Buffer, Buffer>): void {
  streamCount += 1;
  const stream: Stream = { id: streamCount, call, nonce: "", typeUrl: "" };
  streams.add(stream);
  call.on("data", (bytes: Buffer) => receive(bytes, stream));
  call.on("error", () => {});
  call.on("end", () => call.end());
  call.on("close", () => streams.delete(stream));
  call.on("cancelled", () => streams.delete(stream));
}

function receive(bytes: Buffer, stream: Stream): void {
  const request = fromBinary(DiscoveryRequestSchema, bytes);
  const { versionInfo: version, responseNonce: nonce, typeUrl, node, errorDetail } = request;
  requests.push({
    stream: stream.id,
    version,
    nonce,
    typeUrl,
    resourceNames: request.resourceNames,
    nodeId: node?.id ?? "",
    nodeMetadata: { ...node?.metadata },
    userAgent: node?.userAgentName ?? "",
    headers: Object.fromEntries(
      Object.entries(stream.call.metadata.getMap()).map(([name, value]) => [name, String(value)]),
    ),
    ...(errorDetail === undefined ? {} : { refusal: errorDetail.message, code: errorDetail.code }),
  });
  stream.typeUrl = typeUrl;
  // An answer to a response that was overtaken says nothing.
  if (nonce !== stream.nonce) return;
  if (snapshot !== undefined && version !== snapshot.version) send(stream, snapshot);
}

function send(stream: Stream, { typeUrl, version, resources }: Snapshot): void {
  if (isSilent) return;
  nonceCount += 1;
  const nonce = `nonce-${nonceCount}`;
  if (typeUrl === stream.typeUrl) stream.nonce = nonce;
  const response = create(DiscoveryResponseSchema, {
    typeUrl,
    versionInfo: version,
    nonce,
    resources: resources.map((one) => {
      return { typeUrl: one.typeUrl, value: Buffer.from(one.base64, "base64") };
    }),
  });
  stream.call.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)));
}

function obey(command: XdsCommand): void {
  if (command.kind === "hold") {
    snapshot = command;
    for (const stream of streams) send(stream, command);
  } else if (command.kind === "send") {
    for (const stream of streams) send(stream, command);
  } else if (command.kind === "sendBytes") {
    for (const { call } of streams) call.write(Buffer.from(command.base64, "base64"));
  } else if (command.kind === "silence") {
    isSilent = true;
  } else {
    for (const { call } of streams) {
      if (command.code === 0) call.end();
      else call.emit("error", { code: command.code, details: command.details });
    }
  }
}

function credentials(): ServerCredentials {
  const { tls } = settings;
  if (tls === undefined) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(
    readFileSync(tls.authorityFile),
    [
      {
        cert_chain: readFileSync(tls.certificateFile),
        private_key: readFileSync(tls.keyFile),
      },
    ],
    true,
  );
}

const identity = (bytes: Buffer): Buffer => bytes;
const server = new Server({ "grpc.max_send_message_length": -1 });
server.addService(
  {
    StreamAggregatedResources: {
      path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
      requestStream: true,
      responseStream: true,
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    },
  },
  { StreamAggregatedResources: serve },
);

const control = createServer((request, response) => {
  if (request.method === "GET") {
    response.end(JSON.stringify({ requests, streamCount: streams.size }));
    return;
  }
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    obey(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.end();
  });
});

server.bindAsync(`127.0.0.1:${settings.port}`, credentials(), (error, port) => {
  if (error !== null) throw error;
  control.listen(0, "127.0.0.1", () => {
    const address = control.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ port, controlPort: address.port })}\n`);
  });
});
