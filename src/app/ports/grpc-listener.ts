import { createServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Transport } from "../../wire/grpc/transport.js";
import { boundByAddress } from "../base/address-bound.js";
import { type ListenAddress, listen } from "../base/listen.js";
import type { Config } from "../config/config.js";
import { listenOnSocket, type SocketAddress } from "../options/unix-socket.js";
import type { OpenTls } from "../tls/tls.js";
import { TlsConnection } from "../tls/tls-connection.js";
import { peerOf } from "../tls/tls-peer.js";

/** Where gRPC is served: a port, or a Unix socket. */
export type GrpcAddress = ListenAddress | SocketAddress;

/** What takes gRPC connections. */
export interface GrpcListener {
  readonly address: GrpcAddress;
  /** Takes no more connections; those that it took go on. */
  close(): void;
}

/** What a listener is made of. */
export interface GrpcListenerParts {
  readonly config: Config;
  /** Takes the connections, secured ones where there is TLS. */
  readonly transport: Transport;
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
  const acceptSecured = (socket: TLSSocket): void => {
    const connection = config.transport === "grpc-js" ? new TlsConnection(socket) : socket;
    transport.accept(connection, peerOf(socket));
  };
  const { connectionsPerAddressMax: perAddressMax } = config;
  const accept =
    tls === undefined
      ? (socket: Socket) => transport.accept(socket, peerOf(socket))
      : tls.terminate(acceptSecured);
  const server = createServer(
    { noDelay: true },
    boundByAddress(accept, { perAddressMax, onRefused }),
  );
  const close = (): void => {
    server.close();
    tls?.close();
  };
  const connectionsMax = grpcConnectionsMax;
  const listening =
    config.grpcUds === undefined
      ? listen(server, {
          host: config.grpcHost,
          port: config.grpcPort,
          hostSetting: "GRPC_HOST",
          portSetting: "GRPC_PORT",
          connectionsMax,
        })
      : listenOnSocket(server, { path: config.grpcUds, setting: "GRPC_UDS", connectionsMax });
  try {
    return { address: await listening, close };
  } catch (thrown) {
    tls?.close();
    throw thrown;
  }
}
