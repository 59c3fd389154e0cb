/** A runtime layer as one Envoy gets it. */
export interface NodeLayer {
  /** Names the sheet that it was made of. */
  readonly version: string;
  /** By runtime key. */
  readonly values: ReadonlyMap<string, number>;
  /** Requests that it lets into work at once, by service; a service that it leaves out is free. */
  readonly shares: ReadonlyMap<string, number>;
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
export const unacknowledgedMax = 64;

interface Push {
  readonly nonce: string;
  readonly layer: NodeLayer;
  readonly sentAtMs: number;
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

  /** A layer leaves. @param nonce no other push of this Envoy has it */
  noteSent(nonce: string, layer: NodeLayer, nowMs: number): void {
    const push = { nonce, layer, sentAtMs: nowMs, endedAtMs: undefined };
    this.#pending.push(push);
    this.#last = push;
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
    const { ttlMs, configuredShare } = this.#parts;
    const usual = configuredShare(service);
    const acknowledged = this.#acknowledged;
    let most = 0;
    if (acknowledged === undefined || nowMs >= acknowledged.push.sentAtMs + ttlMs) most = usual;
    if (acknowledged !== undefined && nowMs < acknowledged.atMs + ttlMs) {
      most = Math.max(most, acknowledged.push.layer.shares.get(service) ?? usual);
    }
    for (const { layer } of this.#pending) {
      most = Math.max(most, layer.shares.get(service) ?? usual);
    }
    return most;
  }

  /** The services that any of these layers speaks of. */
  services(nowMs: number): ReadonlySet<string> {
    this.#forgetExpired(nowMs);
    const layers = [
      this.sentLayer,
      this.acknowledgedLayer,
      ...this.#pending.map((one) => one.layer),
    ];
    return new Set(
      layers.flatMap((layer) => (layer === undefined ? [] : [...layer.shares.keys()])),
    );
  }

  #forgetExpired(nowMs: number): void {
    const { ttlMs } = this.#parts;
    this.#pending = this.#pending.filter(({ endedAtMs }) => nowMs < (endedAtMs ?? nowMs) + ttlMs);
  }
}
