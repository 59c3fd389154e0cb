import type { Cancel, Clock } from "../../core/base/clock.js";
import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import type { ControlCounts, ControlStream } from "../nodes/control-stream.js";
import type { NodeLayer } from "../nodes/layer-ledger.js";
import type { Node } from "../nodes/node-registry.js";
import { encodeLayers } from "./layer-encoder.js";
import { isSameLayer } from "./runtime-layers.js";

/** When layers are sent. */
export interface PushTimes {
  /** How long an Envoy keeps a layer that nobody renews. */
  readonly ttlMs: number;
  /** After that long an unchanged layer is sent again, whole: nothing else renews it. */
  readonly refreshMs: number;
  /** The least time between two layers to one Envoy. */
  readonly gapMs: number;
  /** A stream whose Envoy has acknowledged nothing for that long is ended. */
  readonly unacknowledgedMsMax: number;
}

/** Refreshes in the time that a layer lives: two of them may be lost. */
const refreshCount = 3;

/** What holds where layers live that long; at most ten of them a second go to an Envoy. */
export function pushTimesFor(layerTtlMs: number): PushTimes {
  return {
    ttlMs: layerTtlMs,
    refreshMs: Math.floor(layerTtlMs / refreshCount),
    gapMs: 100,
    unacknowledgedMsMax: 30_000,
  };
}

/** What holds where nobody says otherwise. */
export const defaultPushTimes: PushTimes = pushTimesFor(defaultLayerTtlMs);

/** Where layers come from. */
export interface LayerSource {
  /** What an Envoy should have now; undefined: nobody knows yet. */
  layerFor(node: Node): NodeLayer | undefined;
  /** What an Envoy that has nothing gets while nobody knows. */
  bareLayer(): NodeLayer;
  /**
   * Whether the fleet may have decided otherwise meanwhile, and others go by that. Who has its
   * layer from here keeps it then; nobody else is given one of that snapshot.
   */
  isOld(nowMs: number): boolean;
}

interface LayerPusherParts {
  readonly stream: ControlStream;
  readonly node: Node;
  /** Layers that were asked for beside ours. */
  readonly emptyNames: readonly string[];
  readonly clock: Clock;
  readonly counts: ControlCounts;
  readonly times: PushTimes;
  readonly source: LayerSource;
  /** The Envoy has a layer already, that this or another process sent on an earlier stream. */
  readonly hasLayer: boolean;
  /** Names an answer, as no other one was named. */
  readonly nextNonce: () => string;
}

/** Keeps one Envoy's layer as it should be, over one stream, until it is stopped. */
export class LayerPusher {
  readonly #parts: LayerPusherParts;
  #cancel: Cancel = () => {};
  /** The first answer of a stream is due, whatever the Envoy had before. */
  #isFirst = true;
  /** Whether it was sent what the fleet has decided, when that was new. */
  #isFollowing = false;
  #isStalled = false;
  #isStopped = false;

  constructor(parts: LayerPusherParts) {
    this.#parts = parts;
  }

  /** The layer may be another one than it was: it is sent as soon as the last one is old enough. */
  update(): void {
    this.#parts.stream.guard(() => this.#update());
  }

  /** More may be sent. */
  resume(): void {
    if (!this.#isStalled) return;
    this.#isStalled = false;
    this.update();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #update(): void {
    if (this.#isStopped || this.#isStalled) return;
    const { node, clock, times } = this.#parts;
    const nowMs = clock.monotonicMs();
    const { sentLayer, sentAtMs } = node.ledger;
    const layer = this.#wanted(nowMs);
    if (layer === undefined) return;
    const isDue = this.#isFirst || sentLayer === undefined || !isSameLayer(layer, sentLayer);
    const atMs = sentAtMs + (isDue ? times.gapMs : times.refreshMs);
    this.#cancel();
    if (nowMs >= atMs) this.#push(layer, nowMs);
    else this.#cancel = clock.schedule(atMs - nowMs, () => this.update());
  }

  /**
   * Who has nothing waits for an answer. Who has a layer keeps it, until there is a better one or
   * its time is over: an empty one would set it free just when a replica has died.
   *
   * An Envoy that comes over while this replica is cut off from the store may have been told less
   * meanwhile, and others may have been given the rest: an old snapshot is nothing to begin with.
   */
  #wanted(nowMs: number): NodeLayer | undefined {
    const { node, source, hasLayer } = this.#parts;
    const isOld = source.isOld(nowMs);
    const layer = isOld && !this.#isFollowing ? undefined : source.layerFor(node);
    if (layer === undefined) return hasLayer ? undefined : source.bareLayer();
    if (!isOld) this.#isFollowing = true;
    return layer;
  }

  #push(layer: NodeLayer, nowMs: number): void {
    const { stream, node, emptyNames, clock, counts, times, nextNonce } = this.#parts;
    const { ledger } = node;
    if (ledger.waitingMs(nowMs) > times.unacknowledgedMsMax) {
      stream.fail("unacknowledged");
      return;
    }
    if (!ledger.hasRoom(nowMs)) {
      this.#cancel = clock.schedule(times.refreshMs, () => this.update());
      return;
    }
    const nonce = nextNonce();
    const ttlMs = ledger.noteSent(nonce, layer, nowMs);
    counts.pushCount += 1;
    const names = this.#isFirst ? emptyNames : [];
    this.#isFirst = false;
    const mayGoOn = stream.send(encodeLayers({ nonce, layer, ttlMs, emptyNames: names }));
    // What is due while the Envoy does not read is made when it does, from what holds then.
    this.#isStalled = !mayGoOn;
    this.#cancel = clock.schedule(times.refreshMs, () => this.#renew());
  }

  #renew(): void {
    const { stream, node, clock, times } = this.#parts;
    if (!this.#isStalled) {
      this.update();
      return;
    }
    if (node.ledger.waitingMs(clock.monotonicMs()) > times.unacknowledgedMsMax) {
      stream.fail("unacknowledged");
      return;
    }
    this.#cancel = clock.schedule(times.refreshMs, () => this.#renew());
  }
}
