import type { Cancel, Clock } from "../../core/base/clock.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { Peer } from "../../core/base/peer.js";
import type { BidiAnswers, BidiReader } from "../../wire/grpc/service.js";
import { GrpcFailure } from "../grpc/status.js";
import { type NodeIdentity, nodeIdCharsMax } from "./node-identity.js";
import type { Node, NodeRegistry, StreamClaim } from "./node-registry.js";
import type { OwnerFault, StreamOwners } from "./stream-owners.js";

/** The services of the control port, as label values of metrics. */
const controlServices = ["ads", "rtds", "load_stats", "metrics", "quotas"] as const;

/** An element of `controlServices`. */
export type ControlService = (typeof controlServices)[number];

/** Why the control port ends a stream, as label values of metrics. */
const streamFaults = [
  "unreadable",
  "node_without_id",
  "node_id_too_long",
  "node_id_changed",
  "too_many_nodes",
  "too_many_streams",
  "identity_not_allowed",
  "owned_by_another",
  "too_many_of_identity",
  "silent",
  "taken_over",
  "unacknowledged",
  "unread",
] as const;

type StreamFault = (typeof streamFaults)[number];

/** Maximum number of open streams of all kinds. Further ones are refused. */
export const controlStreamsMax = 40_000;

/** How long a stream may take to identify its Envoy, in milliseconds. */
export const introductionMsMax = 30_000;

/** The error for the Envoy, which logs it. */
const faultRows: Readonly<Record<StreamFault, readonly [grpcStatus: number, message: string]>> = {
  unreadable: [grpcStatuses.invalidArgument, "The message cannot be parsed."],
  node_without_id: [
    grpcStatuses.invalidArgument,
    "The node has no id; set node.id, or start Envoy with --service-node.",
  ],
  node_id_too_long: [
    grpcStatuses.invalidArgument,
    `The node's id is longer than ${nodeIdCharsMax} characters.`,
  ],
  node_id_changed: [grpcStatuses.invalidArgument, "The node's id changed during the stream."],
  too_many_nodes: [grpcStatuses.resourceExhausted, "The maximum number of nodes is reached."],
  too_many_streams: [
    grpcStatuses.resourceExhausted,
    "The maximum number of open streams is reached.",
  ],
  identity_not_allowed: [
    grpcStatuses.permissionDenied,
    "The client certificate may not use this node id.",
  ],
  owned_by_another: [
    grpcStatuses.permissionDenied,
    "A client with another certificate uses this node id.",
  ],
  too_many_of_identity: [
    grpcStatuses.resourceExhausted,
    "The client has reached its maximum number of streams or nodes.",
  ],
  silent: [grpcStatuses.deadlineExceeded, "No first message arrived in time."],
  taken_over: [
    grpcStatuses.unavailable,
    "A newer stream of a node with this id has replaced this one; ids must be unique.",
  ],
  unacknowledged: [grpcStatuses.deadlineExceeded, "The client does not acknowledge responses."],
  unread: [grpcStatuses.deadlineExceeded, "The client does not read responses."],
};

/** Counters of the control port. Plain integers, read when metrics are scraped. */
export class ControlCounts {
  readonly openStreams = new Map<ControlService, number>(controlServices.map((one) => [one, 0]));
  readonly messages = new Map<ControlService, number>(controlServices.map((one) => [one, 0]));
  readonly faults = new Map<StreamFault, number>(streamFaults.map((one) => [one, 0]));
  pushCount = 0;
  acknowledgedCount = 0;
  refusedCount = 0;
  /** Acknowledgements that match nothing that was sent. */
  strayCount = 0;

  countMessage(service: ControlService): void {
    this.messages.set(service, (this.messages.get(service) ?? 0) + 1);
  }

  countFault(fault: StreamFault): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }

  addOpen(service: ControlService, count: 1 | -1): void {
    this.openStreams.set(service, (this.openStreams.get(service) ?? 0) + count);
  }
}

/** Dependencies that all streams of the control port share. */
interface ControlStreamsParts {
  readonly registry: NodeRegistry;
  readonly owners: StreamOwners;
  readonly counts: ControlCounts;
  readonly clock: Clock;
  /** Called for each stream that is refused because of its peer. */
  readonly onRefused?: (fault: OwnerFault, peer: Peer) => void;
}

/** What is known about the owner of a new stream. */
interface StreamCaller {
  readonly peer: Peer;
  /** The node name that was given before the first message. Undefined if there is none. */
  readonly node?: string | undefined;
}

/** The open streams. */
export class ControlStreams {
  readonly parts: ControlStreamsParts;
  readonly #open = new Set<ControlStream>();

  constructor(parts: ControlStreamsParts) {
    this.parts = parts;
  }

  /** Opens a stream. @throws GrpcFailure if there are too many, or the peer is not allowed */
  open(service: ControlService, answers: BidiAnswers, caller: StreamCaller): ControlStream {
    const { counts } = this.parts;
    const fault = this.#open.size >= controlStreamsMax ? "too_many_streams" : this.#admit(caller);
    if (fault !== undefined) {
      counts.countFault(fault);
      throw failureOf(fault);
    }
    counts.addOpen(service, 1);
    const stream: ControlStream = new ControlStream(this.parts, {
      service,
      answers,
      caller,
      onOver: () => {
        this.#open.delete(stream);
        counts.addOpen(service, -1);
      },
    });
    this.#open.add(stream);
    return stream;
  }

  #admit({ peer, node }: StreamCaller): OwnerFault | undefined {
    const { owners, onRefused } = this.parts;
    let fault = owners.open(peer);
    if (fault === undefined && node !== undefined) {
      fault = owners.claim(peer, { node });
      if (fault !== undefined) owners.close(peer);
    }
    if (fault !== undefined) onRefused?.(fault, peer);
    return fault;
  }

  /** Ends all streams, so that their Envoys connect to another replica. */
  closeAll(): void {
    const failure = new GrpcFailure(grpcStatuses.unavailable, "The server is stopping.");
    for (const stream of [...this.#open]) stream.failWith(failure);
  }
}

interface ControlStreamTerms {
  readonly service: ControlService;
  readonly answers: BidiAnswers;
  readonly caller: StreamCaller;
  readonly onOver: () => void;
}

/** One stream, which has one owner and ends once. */
export class ControlStream {
  readonly #parts: ControlStreamsParts;
  readonly #terms: ControlStreamTerms;
  readonly #claimed = new Set<StreamClaim>();
  readonly #onTakenOver = (): void => this.fail("taken_over");
  readonly #cancelIntroduction: Cancel;
  #onOver: () => void = () => {};
  #node: Node | undefined;
  /** The node name that its peer owns at least as long as the stream is open. */
  #ownedName: string | undefined;
  #isOver = false;

  constructor(parts: ControlStreamsParts, terms: ControlStreamTerms) {
    this.#parts = parts;
    this.#terms = terms;
    this.#ownedName = terms.caller.node;
    this.#cancelIntroduction = parts.clock.schedule(introductionMsMax, () => this.fail("silent"));
  }

  /** Registers a callback for the end of the stream, for any reason. */
  onOver(callback: () => void): void {
    this.#onOver = callback;
  }

  /**
   * Identifies the sender of a message. The first message must name the node; later ones repeat it
   * or omit it. Undefined: the stream was ended because of the message.
   */
  meet(identity: NodeIdentity | undefined): Node | undefined {
    const { registry, owners, counts, onRefused } = this.#parts;
    counts.countMessage(this.#terms.service);
    const known = this.#node;
    if (known !== undefined) {
      if (identity !== undefined && identity.id !== known.id) return this.fail("node_id_changed");
      registry.noteHeard(known);
      return known;
    }
    if (identity === undefined || identity.id === "") return this.fail("node_without_id");
    if (identity.id.length > nodeIdCharsMax) return this.fail("node_id_too_long");
    const { peer } = this.#terms.caller;
    const { id, cluster } = identity;
    const fault = owners.claim(peer, { node: id, cluster });
    if (fault !== undefined) {
      onRefused?.(fault, peer);
      return this.fail(fault);
    }
    this.#ownedName = id;
    // Without a certificate, the identity is an address, which may stand for many Envoys.
    const owner = peer.kind === "certificate" ? peer.identity : undefined;
    const node = registry.meet(identity, owner);
    if (node === undefined) return this.fail("too_many_nodes");
    this.#cancelIntroduction();
    this.#node = node;
    return node;
  }

  /** Handles a message of a stream without node names: the first one counts as identification. */
  hear(): void {
    this.#parts.counts.countMessage(this.#terms.service);
    this.#cancelIntroduction();
  }

  /** Makes this the node's only stream of its kind. */
  claim(node: Node, claim: StreamClaim): void {
    if (this.#isOver || this.#claimed.has(claim)) return;
    this.#claimed.add(claim);
    this.#parts.registry.claim(node, claim, this.#onTakenOver);
  }

  /** Gives up the claim. */
  release(node: Node, claim: StreamClaim): void {
    this.#claimed.delete(claim);
    this.#parts.registry.release(node, claim, this.#onTakenOver);
  }

  /** Sends a message. Returns false if the next one should wait until the peer has read more. */
  send(bytes: Uint8Array): boolean {
    return this.#isOver || this.#terms.answers.send(bytes);
  }

  /** Signals that the current message has been processed. */
  next(): void {
    if (!this.#isOver) this.#terms.answers.next();
  }

  /** The peer has closed the stream or disconnected. */
  end(): void {
    if (this.#finish()) this.#terms.answers.end();
  }

  /** Runs a step of the stream's work. An internal error in it ends only this stream. */
  guard(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      if (this.#finish()) this.#terms.answers.fail(thrown);
    }
  }

  fail(fault: StreamFault): undefined {
    if (this.#isOver) return;
    this.#parts.counts.countFault(fault);
    this.failWith(failureOf(fault));
  }

  failWith(failure: GrpcFailure): void {
    if (this.#finish()) this.#terms.answers.fail(failure);
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#cancelIntroduction();
    if (this.#node !== undefined) {
      for (const claim of this.#claimed) {
        this.#parts.registry.release(this.#node, claim, this.#onTakenOver);
      }
    }
    const { owners } = this.#parts;
    if (this.#ownedName !== undefined) owners.release(this.#ownedName);
    owners.close(this.#terms.caller.peer);
    this.#onOver();
    this.#terms.onOver();
    return true;
  }
}

/** How one kind of stream reads its messages. */
interface MessageReading<Message> {
  readonly stream: ControlStream;
  /** Throws for bytes that are not a valid message. */
  readonly decode: (bytes: Uint8Array) => Message;
  readonly take: (message: Message) => void;
  /** False: read no further message until the reader calls `next` of the stream. */
  readonly isReady?: () => boolean;
  /** Called before the stream ends because the peer has closed it. */
  readonly onEnd?: () => void;
  readonly onDrain?: () => void;
}

/** Reads a stream's messages in order. An invalid message ends the stream. */
export function readMessages<Message>(reading: MessageReading<Message>): BidiReader {
  const { stream, decode, take, isReady, onEnd, onDrain } = reading;
  const read = (bytes: Uint8Array): void => {
    let message: Message;
    try {
      message = decode(bytes);
    } catch {
      // The decoder's error may quote the input, so it is not forwarded.
      stream.fail("unreadable");
      return;
    }
    take(message);
  };
  return {
    onMessage(bytes) {
      stream.guard(() => read(bytes));
      if (isReady?.() !== false) stream.next();
    },
    onEnd() {
      onEnd?.();
      stream.end();
    },
    onCancel: () => stream.end(),
    onDrain: () => onDrain?.(),
  };
}

function failureOf(fault: StreamFault): GrpcFailure {
  return new GrpcFailure(...faultRows[fault]);
}
