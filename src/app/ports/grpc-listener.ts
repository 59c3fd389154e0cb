import { createServer, type Socket } from "node:net";
import type { NativeTransport } from "../../wire/grpc/native-transport.js";
import { boundByAddress } from "../base/address-bound.js";
import { type ListenAddress, listen } from "../base/listen.js";
import type { Config } from "../config/config.js";
import { listenOnSocket, type SocketAddress } from "../options/unix-socket.js";
import type { OpenTls } from "../tls/tls.js";
import { peerOf } from "../tls/tls-peer.js";

/** Where gRPC is served: a port, or a Unix socket. */
export type GrpcAddress = ListenAddress | SocketAddress;

/** What takes gRPC connections. */
interface GrpcListener {
  readonly address: GrpcAddress;
  /** Takes no more connections; those that it took go on. */
  close(): void;
}

interface GrpcListenerParts {
  readonly config: Config;
  /** Takes the connections, secured ones where there is TLS. */
  readonly transport: NativeTransport;
  /** Undefined where gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
  /** Told of each connection above what one address may have. */
  readonly onRefused: () => void;
}

/** The most connections at a time. A fleet's Envoys have one each worker. */
const grpcConnectionsMax = 10_000;

/**
 * Listens for gRPC, on GRPC_UDS where it is set, else on GRPC_HOST and GRPC_PORT.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting and what to do
 */
export async function listenForGrpc(parts: GrpcListenerParts): Promise<GrpcListener> {
  const { config, transport, tls, onRefused } = parts;
  const acceptPlain = (socket: Socket): void => transport.accept(socket, peerOf(socket));
  const { connectionsPerAddressMax: perAddressMax } = config;
  const accept = tls === undefined ? acceptPlain : tls.terminate(acceptPlain);
  const server = createServer(
    { noDelay: true },
    boundByAddress(accept, { perAddressMax, onRefused }),
  );
  const connectionsMax = grpcConnectionsMax;
  const address = await (config.grpcUds === undefined
    ? listen(server, {
        host: config.grpcHost,
        port: config.grpcPort,
        hostSetting: "GRPC_HOST",
        portSetting: "GRPC_PORT",
        connectionsMax,
      })
    : listenOnSocket(server, { path: config.grpcUds, setting: "GRPC_UDS", connectionsMax }));
  return { address, close: () => void server.close() };
}
