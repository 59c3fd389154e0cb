import type { Server } from "node:http";
import { createServer, type Socket } from "node:net";
import type { Clock } from "../../core/base/clock.js";
import { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import {
  createExternalProcessorService,
  type ExternalProcessorParts,
} from "../../rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../rpc/ext-proc/ext-proc-codec.js";
import { createUsageCodec } from "../../rpc/ext-proc/observed-response.js";
import { createHealthService, type Health } from "../../rpc/grpc/health.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import { createRateLimitService, type RateLimitServiceParts } from "../../rpc/rls/rls.js";
import { NativeTransport } from "../../wire/grpc/native-transport.js";
import type { ServiceHandlers } from "../../wire/grpc/service.js";
import type { OpenBudgets } from "../admission/budgets.js";
import { boundByAddress, boundHttpByAddress } from "../base/address-bound.js";
import { cacheBounds } from "../base/cache-bounds.js";
import { type ListenAddress, listen } from "../base/listen.js";
import { openAll } from "../base/open-stack.js";
import type { Config } from "../config/config.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import {
  exchangeMetrics,
  NativeTransportCounts,
  nativeTransportMetrics,
} from "../metrics/grpc-port-metrics.js";
import { switchesOf } from "../options/decision-options.js";
import { listenOnSocket, type SocketAddress } from "../options/unix-socket.js";
import type { OpenTracing } from "../telemetry/tracing.js";
import type { OpenTls } from "../tls/tls.js";
import { peerOf } from "../tls/tls-peer.js";
import type { OpenWaitingRooms } from "../waiting-room/waiting-rooms.js";
import { createHttpServer, type HttpParts } from "./http.js";
import { openRespPort } from "./resp-port.js";

/** Addresses that serve decisions. */
export interface DecisionAddresses {
  readonly grpcAddress: GrpcAddress;
  /** Undefined with an empty HOST. */
  readonly httpAddress: ListenAddress | undefined;
  /** Undefined without HEADGATE_RESP_ADDR. */
  readonly respAddress: ListenAddress | undefined;
}

/** The ports that decide: gRPC, HTTP, and RESP. */
interface DecisionPorts {
  readonly addresses: DecisionAddresses;
  /** Stops accepting connections, and tells clients to go elsewhere. */
  announceClose(): Promise<void>;
  /** Resolves with whether all calls ended by themselves within the grace period. */
  close(): Promise<boolean>;
}

interface DecisionPortsParts extends Pick<Foundation, "tls"> {
  readonly decisions: Decisions;
  /** Waiting rooms, and admission behind them. */
  readonly rooms: Pick<OpenWaitingRooms, "admission">;
  readonly budgets: Pick<OpenBudgets, "budgets">;
  readonly tracing: OpenTracing | undefined;
  readonly http: HttpParts;
}

/** Maximum number of HTTP connections at the same time. */
const httpConnectionsMax = 1_000;

/** Maximum of one address: a proxy in front of callers of `POST /json` has a pool of them. */
const httpPerAddressMax = 500;

/** Time for clients to learn that the process stops, in milliseconds. */
const announceMsMax = 1_000;

/**
 * Opens the ports that decide.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting; nothing is left open then
 */
export function openDecisionPorts(
  runtime: Runtime,
  parts: DecisionPortsParts,
): Promise<DecisionPorts> {
  const { config, clock, refusedAt } = runtime;
  const { tls, http } = parts;
  return openAll(async (stack) => {
    const transport = createTransport(runtime, parts);
    const onRefused = refusedAt("grpc");
    const grpc = stack.keep(await listenForGrpc({ config, transport, tls, onRefused }));
    const resp = config.resp && (await openRespPort(runtime, { ...parts, choice: config.resp }));
    if (resp !== undefined) stack.keep({ close: () => resp.close(0) });
    const httpPort = await openHttp(runtime, http);
    return {
      addresses: {
        grpcAddress: grpc.address,
        httpAddress: httpPort?.address,
        respAddress: resp?.address,
      },
      announceClose: async () => {
        grpc.close();
        resp?.stopAccepting();
        await transport.announceClose(announceMsMax);
      },
      close: async () => {
        grpc.close();
        const graceMs = config.drainGraceMs;
        // Before the transport's own timer cuts the streams.
        const cancelCut = clock.schedule(graceMs, () => parts.budgets.budgets.cut());
        const ended = await Promise.all([
          transport.close(graceMs),
          httpPort === undefined || closeHttp(httpPort.server, { clock, graceMs }),
          resp?.close(graceMs) ?? true,
        ]);
        cancelCut();
        return ended.every((one) => one);
      },
    };
  });
}

/** Undefined with an empty HOST. */
async function openHttp({ config, refusedAt }: Runtime, parts: HttpParts) {
  if (config.host === "") return undefined;
  const server = createHttpServer(parts);
  boundHttpByAddress(server, { perAddressMax: httpPerAddressMax, onRefused: refusedAt("http") });
  const address = await listen(server, {
    host: config.host,
    port: config.port,
    hostSetting: "HOST",
    portSetting: "PORT",
    connectionsMax: httpConnectionsMax,
  });
  return { server, address };
}

/** Returns the services of the gRPC port. */
export function createDecisionServices(
  parts: RateLimitServiceParts & ExternalProcessorParts & { readonly health: Health },
): readonly ServiceHandlers[] {
  return [
    createRateLimitService(parts),
    createExternalProcessorService(parts),
    createHealthService(parts.health),
  ];
}

function createTransport(
  { config, clock, random, metrics, onBug }: Runtime,
  { decisions, rooms: { admission }, budgets: { budgets }, tracing, http }: DecisionPortsParts,
): NativeTransport {
  const { decider, counters, pressure } = decisions;
  const exchanges = new ExchangeCounts();
  const { observers } = budgets;
  const ends = new NativeTransportCounts();
  metrics.add(exchangeMetrics(exchanges), { counters: nativeTransportMetrics(ends) });
  const services = createDecisionServices({
    decider,
    clock,
    random,
    counters,
    extras: http.extras,
    tracer: tracing?.tracer,
    requestCache: { keptBytesMax: cacheBounds(config).requestCacheBytesMax },
    isShadow: switchesOf(config).isShadow,
    admission,
    codec: new ExtProcCodec(admission),
    counts: exchanges,
    usage: { observers, codec: createUsageCodec(observers), counts: exchanges },
    requestBytesMax: config.requestBytesMax,
    health: http.health,
  });
  return new NativeTransport({
    clock,
    random,
    onBug,
    services,
    isLate: () => pressure.isLate(clock.monotonicMs()),
    onDropped: () => counters.countFailure("DEADLINE_PASSED"),
    receivedBytesMax: config.requestBytesMax,
    connectionAgeMsMax: config.grpcConnectionAgeMsMax,
    connectionAgeGraceMs: config.grpcConnectionAgeGraceMs,
    toFailure: toCallFailure,
    // Sends the responses of one turn together, after all work that this turn has begun.
    scheduleFlush: (run) => process.nextTick(run),
    onConnectionEnd: (end) => ends.countEnd(end),
    onStreamError: (code) => ends.countReset(code),
  });
}

function closeHttp(
  server: Server,
  { clock, graceMs }: { readonly clock: Clock; readonly graceMs: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(graceMs, () => {
      server.closeAllConnections();
      resolve(false);
    });
    server.close(() => {
      cancel();
      resolve(true);
    });
    server.closeIdleConnections();
  });
}

/** Address of the gRPC server: a port, or a Unix socket. */
type GrpcAddress = ListenAddress | SocketAddress;

/** Accepts gRPC connections. */
interface GrpcListener {
  readonly address: GrpcAddress;
  /** Stops accepting connections. Accepted ones continue. */
  close(): void;
}

interface GrpcListenerParts {
  readonly config: Config;
  /** Takes the connections, after their handshake if there is TLS. */
  readonly transport: NativeTransport;
  /** Undefined if gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
  /** Called for each connection above the maximum of one address. */
  readonly onRefused: () => void;
}

/** Maximum number of connections at the same time. Each worker of a fleet's Envoys has one. */
const grpcConnectionsMax = 10_000;

/**
 * Listens for gRPC on GRPC_UDS if it is set, otherwise on GRPC_HOST and GRPC_PORT.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting and what to do
 */
async function listenForGrpc(parts: GrpcListenerParts): Promise<GrpcListener> {
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
