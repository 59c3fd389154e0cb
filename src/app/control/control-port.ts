import { createServer, type Socket } from "node:net";
import type { Clock, Random } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import { LogInterval } from "../../core/base/log-interval.js";
import type { Peer } from "../../core/base/peer.js";
import type { NodeReport } from "../../core/feedback/feedback.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { HeldSnapshot } from "../../fleet/loop/snapshot-holder.js";
import { type ControlPlane, controlMessageBytesMax } from "../../rpc/control/control-plane.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import type { OwnerFault } from "../../rpc/nodes/stream-owners.js";
import { SpareBuffers } from "../../wire/grpc/grpc-message.js";
import { NativeTransport } from "../../wire/grpc/native-transport.js";
import { boundByAddress } from "../base/address-bound.js";
import { type ListenAddress, listen } from "../base/listen.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import { isOwnPolicy } from "../config/control-choice.js";
import type { OpenTls } from "../tls/tls.js";
import { peerOf } from "../tls/tls-peer.js";
import { refusalReportMsMin } from "../tls/tls-refusal.js";
import type { OpenWaitingRooms } from "../waiting-room/waiting-rooms.js";

/** Source of snapshots made from reports: a loop in this process, or the leader of the fleet. */
export interface SnapshotSource {
  /** The valid snapshot. Undefined: there is none, or it was not renewed for too long. */
  held(): HeldSnapshot | undefined;
  /** Calls back after every new snapshot, until the returned function is called. */
  onSnapshot(listener: () => void): () => void;
  /** Takes what this replica's Envoys did since the last call. */
  report(reports: readonly NodeReport[]): void;
}

interface ControlPortParts {
  readonly plane: ControlPlane;
  readonly snapshots: SnapshotSource;
  readonly rooms: Pick<OpenWaitingRooms, "rejectPercents">;
  readonly policies: PolicySource & { onLoaded(listener: () => void): () => void };
  readonly config: Pick<
    Config,
    | "controlAddress"
    | "ownPolicyControlAddress"
    | "connectionsPerAddressMax"
    | "grpcConnectionAgeMsMax"
    | "grpcConnectionAgeGraceMs"
  >;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Undefined if gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
  /** Called for each connection above the maximum of one address. */
  readonly onRefused: () => void;
  readonly onBug: (thrown: unknown) => void;
}

/** The open control port. */
export interface ControlPort {
  /** Absent if there is none, or if its port is taken. */
  readonly address?: ListenAddress;
  /** Ends all streams, so that Envoys go to another replica, and stops all background work. */
  close(): Promise<void>;
}

/** Maximum number of connections at the same time: an Envoy has one, or one for each stream. */
const controlConnectionsMax = 20_000;

/** Time between two reports of Envoys' numbers, in milliseconds. */
const reportEveryMs = 1_000;

/** Maximum time for connections to end when the process ends, in milliseconds. */
const closeMsMax = 1_000;

/**
 * Opens the control port, separate from decisions: it has its own connections, and no fault here
 * affects a decision. If the port is taken, only a warning is logged, because the port is new to
 * users who never asked for it.
 */
export async function openControlPort(parts: ControlPortParts): Promise<ControlPort> {
  const { config, plane, policies, logger } = parts;
  const policy = policies.current();
  const isOwn = policy !== undefined && isOwnPolicy(policy);
  const place = config.controlAddress ?? (isOwn ? config.ownPolicyControlAddress : undefined);
  if (place === undefined) return { close: async () => {} };
  const transport = createTransport(parts);
  const { connectionsPerAddressMax: perAddressMax } = config;
  const { onRefused } = parts;
  const accept = boundByAddress(acceptor(transport, parts.tls), { perAddressMax, onRefused });
  const server = createServer({ noDelay: true }, accept);
  const setting = "HEADGATE_CONTROL_ADDR";
  const settings = { hostSetting: setting, portSetting: setting };
  try {
    const connectionsMax = controlConnectionsMax;
    const address = await listen(server, { ...place, ...settings, connectionsMax });
    logger.info({ event: "controlListening", address }, "The control port is listening.");
    const stop = follow(parts);
    return {
      address,
      close: async () => {
        stop();
        server.close();
        plane.close();
        await transport.close(closeMsMax);
      },
    };
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    logger.warn({ event: "controlPortFailed" }, `The control port is off: ${thrown.message}`);
    return { close: async () => {} };
  }
}

function createTransport({ plane, config, clock, random, onBug }: ControlPortParts) {
  return new NativeTransport({
    services: plane.services,
    clock,
    random,
    connectionAgeMsMax: config.grpcConnectionAgeMsMax,
    connectionAgeGraceMs: config.grpcConnectionAgeGraceMs,
    receivedBytesMax: controlMessageBytesMax,
    spareBuffers: new SpareBuffers(),
    onBug,
    isLate: () => false,
    onDropped: () => {},
    toFailure: toCallFailure,
    scheduleFlush: (run) => process.nextTick(run),
  });
}

function acceptor(transport: NativeTransport, tls: OpenTls | undefined): (socket: Socket) => void {
  if (tls === undefined) return (socket) => transport.accept(socket, peerOf(socket));
  return tls.terminate((socket) => transport.accept(socket, peerOf(socket)));
}

/** Passes policies and snapshots in, and reports on. No error may reach a timer. */
function follow(parts: ControlPortParts): () => void {
  const { plane, snapshots, rooms, policies, clock, onBug } = parts;
  const guard = (work: () => void) => (): void => {
    try {
      work();
    } catch (thrown) {
      onBug(thrown);
    }
  };
  const takePolicy = guard(() => {
    const policy = policies.current();
    plane.usePolicy(policy?.services ?? [], policy?.proxies);
  });
  const useSnapshot = (held: HeldSnapshot | undefined): void => {
    if (held === undefined) {
      plane.useSnapshot(undefined);
      return;
    }
    const { fleet, atMs: madeAtMs } = held;
    const gates = new Map([...fleet.verdicts].map(([service, { state }]) => [service, state]));
    plane.useSnapshot(fleet.snapshot, { gates, madeAtMs });
  };
  const takeSnapshot = guard(() => useSnapshot(snapshots.held()));
  let cancel = (): void => {};
  let cancelTurn = (): void => {};
  let underWay: ReturnType<ControlPlane["takeReportsInTurns"]> | undefined;
  const takeSome = guard(() => {
    const turns = underWay;
    underWay = undefined;
    const turn = turns?.next();
    if (turn?.done === true) snapshots.report(turn.value);
    if (turn?.done !== false) return;
    underWay = turns;
    cancelTurn = clock.scheduleTurn(takeSome);
  });
  const report = guard(() => {
    plane.useRooms(rooms.rejectPercents());
    // A snapshot that is not renewed expires between two new ones.
    const held = snapshots.held();
    if (held?.fleet.snapshot !== plane.snapshot) useSnapshot(held);
    if (underWay !== undefined) return;
    underWay = plane.takeReportsInTurns();
    takeSome();
  });
  const tick = (): void => {
    cancel = clock.schedule(reportEveryMs, () => {
      report();
      tick();
    });
  };
  takePolicy();
  takeSnapshot();
  tick();
  const stops = [policies.onLoaded(takePolicy), snapshots.onSnapshot(takeSnapshot)];
  stops.push(
    () => cancel(),
    () => cancelTurn(),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

/** Maximum length of an identity in a log line, in characters. */
const reportedIdentityCharsMax = 256;

/** Creates a callback that logs refused peers by cause now and then, with the last identity. */
export function createRefusalReport({
  clock,
  logger,
}: Pick<ControlPortParts, "clock" | "logger">): (fault: OwnerFault, peer: Peer) => void {
  const lines = new LogInterval<OwnerFault>(refusalReportMsMin);
  return (cause, { identity }) => {
    if (!lines.begins(cause, clock.monotonicMs())) return;
    const reported = identity.slice(0, reportedIdentityCharsMax).replace(/[^ -~]/g, "?");
    const sentence = `A stream of the control port was refused: ${refusalRows[cause]}.`;
    logger.warn({ event: "controlStreamRefused", cause, identity: reported }, sentence);
  };
}

const refusalRows: Readonly<Record<OwnerFault, string>> = {
  identity_not_allowed:
    "no rule of HEADGATE_CONTROL_NODES allows its certificate to use its node id",
  owned_by_another: "a client with another certificate uses its node id",
  too_many_of_identity:
    "its client has reached its share of streams or nodes " +
    "(HEADGATE_CONTROL_IDENTITY_PERCENT_MAX)",
  too_many_nodes: "the maximum number of nodes is reached: add replicas",
};
