import type { Cancel, Clock } from "../../core/base/clock.js";

interface SilenceWatchParts {
  readonly clock: Clock;
  /** Maximum silence while the server owes a reply. Default: `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** Whether the server owes a reply. */
  readonly isOwed: () => boolean;
  /** Bytes received over this connection so far. A different number means that some arrived. */
  readonly arrivedBytes: () => number;
  /** Called once. The watch then stops until the next `begin`. */
  readonly onSilence: () => void;
}

/**
 * Default of `SilenceWatchParts.silenceMsMax`. After this silence, the connection is dropped and
 * made again, because a stopped server and a partition without a reset look like this, also during
 * the handshake.
 */
export const defaultSilenceMsMax = 1_000;

/** Consecutive checks without new bytes after which the server has been silent for too long. */
const looksPerSilence = 10;

/**
 * Detects that a server has been silent for `silenceMsMax` although it owes a reply, at most two
 * checks later than that.
 *
 * If a process was paused for seconds, its timers are due before it has read what arrived
 * meanwhile, and by its clock every server was silent. So silence is counted in checks instead of
 * time, and the process can always read between two of them.
 */
export class SilenceWatch {
  readonly #parts: SilenceWatchParts;
  /** Time between two checks. Each check adds this much to the silence, however late it runs. */
  readonly #lookMs: number;
  #cancel: Cancel | undefined;
  #arrivedBytes = 0;
  #silentLookCount = 0;

  constructor(parts: SilenceWatchParts) {
    const { silenceMsMax = defaultSilenceMsMax } = parts;
    this.#parts = parts;
    this.#lookMs = silenceMsMax / looksPerSilence;
  }

  /** Starts checking until no reply is owed any more. No effect while it is already checking. */
  begin(): void {
    if (this.#cancel !== undefined) return;
    this.#silentLookCount = 0;
    this.#arrivedBytes = this.#parts.arrivedBytes();
    this.#lookLater();
  }

  /** Stops checking until the next `begin`. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #lookLater(): void {
    const { clock } = this.#parts;
    this.#cancel = clock.schedule(this.#lookMs, () => {
      this.#cancel = clock.scheduleTurn(() => this.#look());
    });
  }

  #look(): void {
    const { isOwed, arrivedBytes, onSilence } = this.#parts;
    this.#cancel = undefined;
    if (!isOwed()) return;
    const bytes = arrivedBytes();
    this.#silentLookCount = bytes === this.#arrivedBytes ? this.#silentLookCount + 1 : 0;
    this.#arrivedBytes = bytes;
    if (this.#silentLookCount >= looksPerSilence) onSilence();
    else this.#lookLater();
  }
}
