import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  type StatusObject,
} from "@grpc/grpc-js";
import { DiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import { runtimeTypeUrl } from "../../src/rpc/control/layer-encoder.js";
import { type SeenLayer, TestStream } from "./control-rig.js";

const { StreamMetricsMessageSchema } = metricsService;

/** One open call, as a client has it. */
export interface ClientStream {
  /** Layers that came so far. */
  readonly layers: readonly SeenLayer[];
  /** How it ended. */
  readonly ended: Promise<StatusObject>;
  send(bytes: Uint8Array): void;
  cancel(): void;
}

const identity = (bytes: Buffer): Buffer => bytes;

/** A client of the control port on a connection of its own, by a library. */
export class ControlClient {
  readonly #client: Client;

  constructor(port: number, of: ChannelCredentials = credentials.createInsecure()) {
    this.#client = new Client(`127.0.0.1:${port}`, of, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.ssl_target_name_override": "headgate.shop",
      "grpc.max_send_message_length": -1,
      "grpc.enable_retries": 0,
    });
  }

  /** @param path of the method, such as `/envoy.service.runtime.v3.RuntimeDiscoveryService/...` */
  open(path: string): ClientStream {
    const call: ClientDuplexStream<Buffer, Buffer> = this.#client.makeBidiStreamRequest(
      path,
      identity,
      identity,
    );
    const seen = new TestStream();
    call.on("data", (bytes: Buffer) => seen.send(bytes));
    call.on("error", () => {});
    return {
      get layers() {
        return seen.layers;
      },
      ended: new Promise((resolve) => call.once("status", resolve)),
      send: (bytes) => void call.write(Buffer.from(bytes)),
      cancel: () => call.cancel(),
    };
  }

  /** An Envoy that asks for its layer. */
  subscribe(node: MessageInitShape<typeof DiscoveryRequestSchema>["node"]): ClientStream {
    const stream = this.open("/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime");
    const resourceNames = ["headgate"];
    const init = { ...(node && { node }), typeUrl: runtimeTypeUrl, resourceNames };
    stream.send(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, init)));
    return stream;
  }

  /** An Envoy that pushes statistics. */
  push(init: MessageInitShape<typeof StreamMetricsMessageSchema>): ClientStream {
    const stream = this.open("/envoy.service.metrics.v3.MetricsService/StreamMetrics");
    stream.send(toBinary(StreamMetricsMessageSchema, create(StreamMetricsMessageSchema, init)));
    return stream;
  }

  close(): void {
    this.#client.close();
  }
}
