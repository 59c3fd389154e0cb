/** A value of a runtime key: a number, or a boolean. */
export type LayerValue = number | boolean;

/** A runtime layer for one Envoy. */
export interface NodeLayer {
  /** Identifies the snapshot that it was derived from. */
  readonly version: string;
  /** By runtime key. */
  readonly values: ReadonlyMap<string, LayerValue>;
  /** Maximum number of concurrent requests, by service. A service without an entry is unlimited. */
  readonly shares: ReadonlyMap<string, number>;
  /**
   * When the layer must no longer be active, on our monotonic clock. Undefined: after its full ttl.
   */
  readonly untilMs?: number;
}

/** A layer without values: the configured defaults apply. */
export const emptyLayer: NodeLayer = { version: "0.0", values: new Map(), shares: new Map() };

/** The inputs of a `LayerLedger`. */
export interface LayerLedgerParts {
  /** How long an Envoy keeps a layer that is not renewed, in milliseconds. */
  readonly ttlMs: number;
  /** The limit of an Envoy without a layer: its configured default. */
  readonly configuredShare: (service: string) => number;
}

/** Maximum number of unacknowledged layers for one Envoy. Further ones must wait. */
export const unacknowledgedMax = 16;

interface Push {
  readonly nonce: string;
  readonly layer: NodeLayer;
  readonly sentAtMs: number;
  /** How long the Envoy keeps it, from when it receives it. */
  readonly ttlMs: number;
  /** When the stream that it was sent on ended: it cannot have been received later. */
  endedAtMs: number | undefined;
}

/**
 * Tracks what one Envoy was sent and has acknowledged, and therefore which limits may be active.
 * The ttl of a layer starts when the Envoy receives it: after it was sent, and before it was
 * acknowledged.
 */
export class LayerLedger {
  readonly #parts: LayerLedgerParts;
  #acknowledged: { readonly push: Push; readonly atMs: number } | undefined;
  #pending: Push[] = [];
  #last: Push | undefined;
  /** Whether it has acknowledged a layer on the current stream. */
  #isHeard = false;
  #heardUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: LayerLedgerParts) {
    this.#parts = parts;
  }

  /** The last sent layer. Undefined before the first one. */
  get sentLayer(): NodeLayer | undefined {
    return this.#last?.layer;
  }

  /** When a layer was last sent; minus infinity if none was. */
  get sentAtMs(): number {
    return this.#last?.sentAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** The last acknowledged layer. Undefined before the first one. */
  get acknowledgedLayer(): NodeLayer | undefined {
    return this.#acknowledged?.push.layer;
  }

  /**
   * How long the oldest layer that may still be acknowledged has been waiting; 0 if there is none.
   */
  waitingMs(nowMs: number): number {
    const oldest = this.#pending.find(({ endedAtMs }) => endedAtMs === undefined);
    return oldest === undefined ? 0 : nowMs - oldest.sentAtMs;
  }

  /** Whether another layer may be sent. */
  hasRoom(nowMs: number): boolean {
    this.#forgetExpired(nowMs);
    return this.#pending.length < unacknowledgedMax;
  }

  /**
   * Records that a layer was sent.
   *
   * @param nonce unique among the pushes to this Envoy
   * @returns how long the Envoy is to keep it, in milliseconds
   */
  noteSent(nonce: string, layer: NodeLayer, nowMs: number): number {
    const leftMs = (layer.untilMs ?? Number.POSITIVE_INFINITY) - nowMs;
    const ttlMs = Math.max(1, Math.floor(Math.min(this.#parts.ttlMs, leftMs)));
    const push = { nonce, layer, sentAtMs: nowMs, ttlMs, endedAtMs: undefined };
    this.#pending.push(push);
    this.#last = push;
    return ttlMs;
  }

  /**
   * The Envoy has applied the layer and nothing older remains. Returns false for an unknown nonce.
   */
  noteAcknowledged(nonce: string, nowMs: number): boolean {
    const at = this.#pending.findIndex((push) => push.nonce === nonce);
    const push = this.#pending[at];
    if (push === undefined) return false;
    this.#acknowledged = { push, atMs: nowMs };
    this.#isHeard = true;
    this.#pending = this.#pending.slice(at + 1);
    return true;
  }

  /**
   * The Envoy has rejected the layer and keeps the previous one. Returns false for an unknown
   * nonce.
   */
  noteRefused(nonce: string): boolean {
    const count = this.#pending.length;
    this.#pending = this.#pending.filter((push) => push.nonce !== nonce);
    return this.#pending.length < count;
  }

  /** The stream has ended: whatever was in flight has arrived by now, or never will. */
  noteStreamEnded(nowMs: number): void {
    for (const push of this.#pending) push.endedAtMs ??= nowMs;
    if (this.#isHeard) this.#heardUntilMs = this.heldAtMs(nowMs);
    this.#isHeard = false;
  }

  /**
   * The time up to which `held` is known to be complete: now, once the Envoy has acknowledged a
   * layer on its current stream; otherwise the end of its last stream here, because it may have
   * received more from another replica since. Minus infinity if never known; now if nothing was
   * ever sent.
   *
   * It is at most so late that the acknowledged layer lasts for half a ttl from then on, even if no
   * renewal arrives: readers assume that the configured default applies after that.
   */
  heldAtMs(nowMs: number): number {
    if (this.#last === undefined) return nowMs;
    const push = this.#acknowledged?.push;
    if (!this.#isHeard || push === undefined) return this.#heardUntilMs;
    return Math.min(nowMs, push.sentAtMs + push.ttlMs - this.#parts.ttlMs / 2);
  }

  /**
   * The most concurrent requests that this Envoy may admit for a service: by the last acknowledged
   * layer, by all layers sent after it, and by its configured default if the ttl of a layer may
   * have expired or nothing was ever acknowledged. 0 if no layer was ever sent.
   */
  held(service: string, nowMs: number): number {
    if (this.#last === undefined) return 0;
    this.#forgetExpired(nowMs);
    const configured = this.#parts.configuredShare(service);
    const acknowledged = this.#acknowledged;
    let most = 0;
    if (acknowledged === undefined) most = configured;
    else {
      const { layer, sentAtMs, ttlMs } = acknowledged.push;
      if (nowMs >= sentAtMs + ttlMs) most = configured;
      if (nowMs < acknowledged.atMs + ttlMs) {
        most = Math.max(most, layer.shares.get(service) ?? configured);
      }
    }
    for (const { layer } of this.#pending) {
      most = Math.max(most, layer.shares.get(service) ?? configured);
    }
    return most;
  }

  /** The active values, as far as the Envoy has acknowledged them. Empty without a layer. */
  activeValues(nowMs: number): NodeLayer["values"] {
    const acknowledged = this.#acknowledged;
    if (acknowledged === undefined) return emptyLayer.values;
    const { layer, ttlMs } = acknowledged.push;
    return nowMs < acknowledged.atMs + ttlMs ? layer.values : emptyLayer.values;
  }

  /** The services in any of these layers. */
  services(nowMs: number): Iterable<string> {
    this.#forgetExpired(nowMs);
    const { sentLayer, acknowledgedLayer } = this;
    if (this.#pending.length === 0 && sentLayer === acknowledgedLayer) {
      return sentLayer?.shares.keys() ?? [];
    }
    const layers = new Set([sentLayer, acknowledgedLayer]);
    for (const { layer } of this.#pending) layers.add(layer);
    const found = new Set<string>();
    for (const layer of layers) {
      if (layer !== undefined) for (const service of layer.shares.keys()) found.add(service);
    }
    return found;
  }

  #forgetExpired(nowMs: number): void {
    if (!this.#pending.some(({ endedAtMs, ttlMs }) => nowMs >= (endedAtMs ?? nowMs) + ttlMs))
      return;
    this.#pending = this.#pending.filter(
      ({ endedAtMs, ttlMs }) => nowMs < (endedAtMs ?? nowMs) + ttlMs,
    );
  }
}
