/** What a runtime key may be set to: a number, or whether something is on. */
export type LayerValue = number | boolean;

/** A runtime layer as one Envoy gets it. */
export interface NodeLayer {
  /** Names the snapshot that it was made of. */
  readonly version: string;
  /** By runtime key. */
  readonly values: ReadonlyMap<string, LayerValue>;
  /** Requests that it lets into work at once, by service; a service that it leaves out is free. */
  readonly shares: ReadonlyMap<string, number>;
  /** When it must not be active any more, on our monotonic clock; undefined: its time is full. */
  readonly untilMs?: number;
}

/** What a layer says when there is nothing to say: configured defaults hold. */
export const emptyLayer: NodeLayer = { version: "0.0", values: new Map(), shares: new Map() };

/** What a `LayerLedger` goes by. */
export interface LayerLedgerParts {
  /** How long an Envoy keeps a layer that nobody renews, in milliseconds. */
  readonly ttlMs: number;
  /** What an Envoy lets into work without a layer: its configured default. */
  readonly configuredShare: (service: string) => number;
}

/** Layers that may be sent to one Envoy before it has acknowledged any; then it has to wait. */
export const unacknowledgedMax = 16;

interface Push {
  readonly nonce: string;
  readonly layer: NodeLayer;
  readonly sentAtMs: number;
  /** How long the Envoy keeps it, from when it receives it. */
  readonly ttlMs: number;
  /** When the stream that it left on ended: nobody can have received it later. */
  endedAtMs: number | undefined;
}

/**
 * What one Envoy was sent and has acknowledged, and so what it may still be doing. An Envoy counts
 * the time of a layer from when it received it: after it was sent, and before it acknowledged it.
 */
export class LayerLedger {
  readonly #parts: LayerLedgerParts;
  #acknowledged: { readonly push: Push; readonly atMs: number } | undefined;
  #pending: Push[] = [];
  #last: Push | undefined;
  /** Whether it has acknowledged something on the stream of now. */
  #isHeard = false;
  #heardUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: LayerLedgerParts) {
    this.#parts = parts;
  }

  /** The layer that was sent last; undefined before the first. */
  get sentLayer(): NodeLayer | undefined {
    return this.#last?.layer;
  }

  /** When a layer was sent last; never: minus infinity. */
  get sentAtMs(): number {
    return this.#last?.sentAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** The layer that was acknowledged last; undefined before the first. */
  get acknowledgedLayer(): NodeLayer | undefined {
    return this.#acknowledged?.push.layer;
  }

  /** How long the oldest layer that may still be acknowledged waits for that; 0 with none. */
  waitingMs(nowMs: number): number {
    const oldest = this.#pending.find(({ endedAtMs }) => endedAtMs === undefined);
    return oldest === undefined ? 0 : nowMs - oldest.sentAtMs;
  }

  /** Whether one more layer may be sent. */
  hasRoom(nowMs: number): boolean {
    this.#forgetExpired(nowMs);
    return this.#pending.length < unacknowledgedMax;
  }

  /**
   * A layer leaves.
   *
   * @param nonce no other push of this Envoy has it
   * @returns how long it is to be kept, in milliseconds
   */
  noteSent(nonce: string, layer: NodeLayer, nowMs: number): number {
    const leftMs = (layer.untilMs ?? Number.POSITIVE_INFINITY) - nowMs;
    const ttlMs = Math.max(1, Math.floor(Math.min(this.#parts.ttlMs, leftMs)));
    const push = { nonce, layer, sentAtMs: nowMs, ttlMs, endedAtMs: undefined };
    this.#pending.push(push);
    this.#last = push;
    return ttlMs;
  }

  /** The Envoy has it, and nothing older any more. False for a nonce that waits for nothing. */
  noteAcknowledged(nonce: string, nowMs: number): boolean {
    const at = this.#pending.findIndex((push) => push.nonce === nonce);
    const push = this.#pending[at];
    if (push === undefined) return false;
    this.#acknowledged = { push, atMs: nowMs };
    this.#isHeard = true;
    this.#pending = this.#pending.slice(at + 1);
    return true;
  }

  /** The Envoy has refused it, and keeps what it had. False for a nonce that waits for nothing. */
  noteRefused(nonce: string): boolean {
    const count = this.#pending.length;
    this.#pending = this.#pending.filter((push) => push.nonce !== nonce);
    return this.#pending.length < count;
  }

  /** The stream has ended: what was on its way has arrived by now, or never will. */
  noteStreamEnded(nowMs: number): void {
    for (const push of this.#pending) push.endedAtMs ??= nowMs;
    if (this.#isHeard) this.#heardUntilMs = nowMs;
    this.#isHeard = false;
  }

  /**
   * Until when `held` is known to be all: now, once the Envoy has acknowledged a layer on its new
   * stream; otherwise when its last stream here ended, since it may have been given more elsewhere
   * meanwhile. Never known: minus infinity; and where nothing was ever sent: now.
   */
  heldAtMs(nowMs: number): number {
    if (this.#last === undefined) return nowMs;
    return this.#isHeard ? nowMs : this.#heardUntilMs;
  }

  /**
   * The most that this Envoy may let into work for a service: by what it acknowledged last, by all
   * that was sent after it, and by its configured default when the time of a layer may have run
   * out, or nothing was ever acknowledged. 0 where it was never sent any layer.
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

  /** What it was told that is active, as far as it has said so; nothing without a layer. */
  activeValues(nowMs: number): NodeLayer["values"] {
    const acknowledged = this.#acknowledged;
    if (acknowledged === undefined) return emptyLayer.values;
    const { layer, ttlMs } = acknowledged.push;
    return nowMs < acknowledged.atMs + ttlMs ? layer.values : emptyLayer.values;
  }

  /** The services that any of these layers speaks of. */
  services(nowMs: number): ReadonlySet<string> {
    this.#forgetExpired(nowMs);
    const layers = new Set([this.sentLayer, this.acknowledgedLayer]);
    for (const { layer } of this.#pending) layers.add(layer);
    const found = new Set<string>();
    for (const layer of layers) {
      if (layer !== undefined) for (const service of layer.shares.keys()) found.add(service);
    }
    return found;
  }

  #forgetExpired(nowMs: number): void {
    if (this.#pending.length === 0) return;
    this.#pending = this.#pending.filter(
      ({ endedAtMs, ttlMs }) => nowMs < (endedAtMs ?? nowMs) + ttlMs,
    );
  }
}
