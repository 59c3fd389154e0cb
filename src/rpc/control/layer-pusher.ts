import type { Cancel, Clock } from "../../core/base/clock.js";
import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import type { ControlCounts, ControlStream } from "../nodes/control-stream.js";
import type { NodeLayer } from "../nodes/layer-ledger.js";
import type { Node } from "../nodes/node-registry.js";
import { encodeLayers } from "./layer-encoder.js";
import { isSameLayer } from "./runtime-layers.js";

/** When layers are sent. */
export interface PushTimes {
  /** How long an Envoy keeps a layer that is not renewed. */
  readonly ttlMs: number;
  /** After this time, an unchanged layer is sent again, as a whole: nothing else renews it. */
  readonly refreshMs: number;
  /** Minimum time between two layers to one Envoy. */
  readonly gapMs: number;
  /** How long an Envoy may acknowledge nothing before its stream is ended. */
  readonly unacknowledgedMsMax: number;
}

/** Refreshes within the ttl of a layer: two of them may be lost. */
const refreshCount = 3;

/** Returns the times for a ttl of layers. An Envoy gets at most ten layers per second. */
export function pushTimesFor(layerTtlMs: number): PushTimes {
  return {
    ttlMs: layerTtlMs,
    refreshMs: Math.floor(layerTtlMs / refreshCount),
    gapMs: 100,
    unacknowledgedMsMax: 30_000,
  };
}

/** The default times. */
export const defaultPushTimes: PushTimes = pushTimesFor(defaultLayerTtlMs);

/** The source of layers. */
export interface LayerSource {
  /** Returns the layer that an Envoy should have now. Undefined if it is not known yet. */
  layerFor(node: Node): NodeLayer | undefined;
  /** Returns the layer for an Envoy that has none, while its own one is not known. */
  bareLayer(): NodeLayer;
  /**
   * Whether the fleet may have decided differently since, and others follow that. An Envoy that has
   * its layer from here then keeps it, but no other one gets a layer of that snapshot.
   */
  isOld(nowMs: number): boolean;
}

interface LayerPusherParts {
  readonly stream: ControlStream;
  readonly node: Node;
  /** Other layers that were requested. */
  readonly emptyNames: readonly string[];
  readonly clock: Clock;
  readonly counts: ControlCounts;
  readonly times: PushTimes;
  readonly source: LayerSource;
  /** Whether the Envoy has a layer from an earlier stream of this or another process. */
  readonly hasLayer: boolean;
  /** Returns a nonce that no other response has. */
  readonly nextNonce: () => string;
}

/** Keeps one Envoy's layer up to date, over one stream, until it is stopped. */
export class LayerPusher {
  readonly #parts: LayerPusherParts;
  #cancel: Cancel = () => {};
  /** Whether the first response of the stream is due, whatever the Envoy had before. */
  #isFirst = true;
  /** Whether it was sent a layer of the fleet that was not old. */
  #isFollowing = false;
  #isStalled = false;
  #isStopped = false;

  constructor(parts: LayerPusherParts) {
    this.#parts = parts;
  }

  /** Sends the layer if it may have changed, as soon as the last one is old enough. */
  update(): void {
    this.#parts.stream.guard(() => this.#update());
  }

  /** Continues after a stall: more may be sent. */
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
   * An Envoy without a layer waits for a response. An Envoy with a layer keeps it, until there is a
   * better one or it expires: an empty one would lift its limits just when a replica has died.
   *
   * An Envoy that connects while this replica is cut off from the store may have a smaller share by
   * now, and others may have the rest. So an old snapshot must not be the first one it gets here.
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
    // What is due while the Envoy does not read is created when it does, from the state then.
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
