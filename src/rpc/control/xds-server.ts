import type { Cancel } from "../../core/base/clock.js";
import { runtimeLayerName } from "../../core/feedback/runtime-keys.js";
import type {
  BidiAnswers,
  BidiContext,
  BidiReader,
  ServiceHandlers,
} from "../../wire/grpc/service.js";
import {
  type ControlService,
  type ControlStream,
  type ControlStreams,
  readMessages,
} from "../nodes/control-stream.js";
import type { Node } from "../nodes/node-registry.js";
import { type DiscoveryAsk, decodeDiscoveryAsk } from "./discovery-request.js";
import { encodeEmptyAnswer, encodeLayers, runtimeTypeUrl } from "./layer-encoder.js";
import { LayerPusher, type LayerSource, type PushTimes } from "./layer-pusher.js";

interface XdsServerParts {
  readonly streams: ControlStreams;
  readonly times: PushTimes;
  readonly source: LayerSource;
  /** The prefix of this process's nonces, which distinguishes them from other processes'. */
  readonly nonceStart: string;
}

/** Envoys whose layers are updated in one turn: a few milliseconds with twenty services. */
export const updatesPerTurn = 32;

/** Maximum number of types and layers with an empty response per stream. Others get none. */
export const emptyAnswersMax = 16;

/** Maximum length of an Envoy's error about a rejected layer, in characters. More is cut. */
export const refusalWordsMax = 200;

/**
 * Discovery for Envoys, state of the world: the runtime layer `headgate`, over aggregated discovery
 * or the runtime's own service, and nothing else. An Envoy that requests another type, and has
 * nothing of it, gets one empty response, so that it does not wait for the type at its start. An
 * Envoy that has something keeps it.
 *
 * Source: Envoy, "xDS REST and gRPC protocol"; envoy.service.runtime.v3.
 */
export class XdsServer {
  readonly #parts: XdsServerParts;
  readonly #pushers = new Set<LayerPusher>();
  /** Those to be updated, the one that has waited longest first. */
  readonly #due = new Set<LayerPusher>();
  #cancelRest: Cancel = () => {};
  #nonceCount = 0;

  constructor(parts: XdsServerParts) {
    this.#parts = parts;
  }

  /** The gRPC services. */
  get services(): readonly ServiceHandlers[] {
    const methodOf = (service: ControlService, name: string) => {
      const open = (call: BidiContext, answers: BidiAnswers): BidiReader =>
        new DiscoveryStream(this.#terms(), { service, call, answers }).reader;
      return { kind: "bidi", name, open } as const;
    };
    return [
      {
        name: "envoy.service.discovery.v3.AggregatedDiscoveryService",
        methods: [methodOf("ads", "StreamAggregatedResources")],
      },
      {
        name: "envoy.service.runtime.v3.RuntimeDiscoveryService",
        methods: [methodOf("rtds", "StreamRuntime")],
      },
    ];
  }

  /**
   * Sends each Envoy its layer if that has changed. In a large fleet, some Envoys per turn, so that
   * decisions need not wait for all of them.
   */
  update(): void {
    // One that already waits keeps its place: none waits forever, however often this is called.
    for (const pusher of this.#pushers) this.#due.add(pusher);
    this.#updateSome();
  }

  #updateSome(): void {
    this.#cancelRest();
    let count = 0;
    for (const pusher of this.#due) {
      if (count === updatesPerTurn) {
        const { clock } = this.#parts.streams.parts;
        this.#cancelRest = clock.scheduleTurn(() => this.#updateSome());
        return;
      }
      count += 1;
      this.#due.delete(pusher);
      pusher.update();
    }
  }

  #terms(): DiscoveryTerms {
    return {
      ...this.#parts,
      pushers: this.#pushers,
      nextNonce: () => {
        this.#nonceCount += 1;
        return `${this.#parts.nonceStart}-${this.#nonceCount}`;
      },
    };
  }
}

interface DiscoveryTerms extends XdsServerParts {
  readonly pushers: Set<LayerPusher>;
  readonly nextNonce: () => string;
}

interface OpenedDiscovery {
  readonly service: ControlService;
  readonly call: BidiContext;
  readonly answers: BidiAnswers;
}

class DiscoveryStream {
  readonly reader: BidiReader;
  readonly #terms: DiscoveryTerms;
  readonly #stream: ControlStream;
  readonly #answered = new Set<string>();
  #pusher: LayerPusher | undefined;

  constructor(terms: DiscoveryTerms, { service, call, answers }: OpenedDiscovery) {
    this.#terms = terms;
    this.#stream = terms.streams.open(service, answers, call);
    this.#stream.onOver(() => this.#stopPushing());
    this.reader = readMessages({
      stream: this.#stream,
      decode: decodeDiscoveryAsk,
      take: (request) => this.#take(request),
      onDrain: () => this.#pusher?.resume(),
    });
  }

  #take(request: DiscoveryAsk): void {
    const node = this.#stream.meet(request.node);
    if (node === undefined) return;
    if (request.typeUrl !== runtimeTypeUrl) {
      this.#answerEmpty(request);
      return;
    }
    if (request.responseNonce !== "") this.#noteAnswer(node, request);
    this.#subscribe(node, request);
  }

  /** Handles an ACK, or a NACK if it has an error. Both name the response that they refer to. */
  #noteAnswer(node: Node, { responseNonce, refusal }: DiscoveryAsk): void {
    const { counts, clock } = this.#terms.streams.parts;
    if (refusal === undefined) {
      if (node.ledger.noteAcknowledged(responseNonce, clock.monotonicMs())) {
        counts.acknowledgedCount += 1;
        node.refusal = undefined;
      } else counts.strayCount += 1;
    } else if (node.ledger.noteRefused(responseNonce)) {
      counts.refusedCount += 1;
      node.refusal = refusal.slice(0, refusalWordsMax);
    } else counts.strayCount += 1;
  }

  #subscribe(node: Node, { resourceNames: names, versionInfo }: DiscoveryAsk): void {
    const others = names.filter((name) => name !== runtimeLayerName && this.#isNew(name));
    if (!names.includes(runtimeLayerName)) {
      if (this.#pusher !== undefined) {
        this.#stopPushing();
        this.#stream.release(node, "layers");
      }
      if (others.length > 0) this.#sendEmptyLayers(others);
      return;
    }
    if (this.#pusher !== undefined) {
      if (others.length > 0) this.#sendEmptyLayers(others);
      return;
    }
    this.#stream.claim(node, "layers");
    const { streams, times, source, pushers, nextNonce } = this.#terms;
    const { clock, counts } = streams.parts;
    const parts = { stream: this.#stream, node, emptyNames: others, clock, counts };
    const hasLayer = versionInfo !== "";
    this.#pusher = new LayerPusher({ ...parts, times, source, hasLayer, nextNonce });
    pushers.add(this.#pusher);
    this.#pusher.update();
  }

  #sendEmptyLayers(names: readonly string[]): void {
    const { times, nextNonce } = this.#terms;
    const { ttlMs } = times;
    this.#stream.send(
      encodeLayers({ nonce: nextNonce(), layer: undefined, ttlMs, emptyNames: names }),
    );
  }

  /** Only if the Envoy has nothing of the type: an empty set would remove what it has. */
  #answerEmpty({ typeUrl, versionInfo }: DiscoveryAsk): void {
    if (versionInfo !== "" || !this.#isNew(typeUrl)) return;
    this.#stream.send(encodeEmptyAnswer(typeUrl, this.#terms.nextNonce()));
  }

  #isNew(name: string): boolean {
    if (this.#answered.has(name) || this.#answered.size >= emptyAnswersMax) return false;
    this.#answered.add(name);
    return true;
  }

  #stopPushing(): void {
    if (this.#pusher === undefined) return;
    this.#pusher.stop();
    this.#terms.pushers.delete(this.#pusher);
    this.#pusher = undefined;
  }
}
