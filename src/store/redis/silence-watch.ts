import type { Cancel, Clock } from "../../core/base/clock.js";

interface SilenceWatchParts {
  readonly clock: Clock;
  /** The longest silence while a reply is owed. Default `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** Whether the server owes us a reply. */
  readonly isOwed: () => boolean;
  /** Bytes that have arrived over this connection so far; another number means that some did. */
  readonly arrivedBytes: () => number;
  /** Told once; the watch then waits for the next `begin`. */
  readonly onSilence: () => void;
}

/**
 * Default of `SilenceWatchParts.silenceMsMax`. After it the connection is dropped and made anew: a
 * stopped server, and a partition that sends no reset, look just like this, also amid the
 * handshake.
 */
export const defaultSilenceMsMax = 1_000;

/** Looks in a row that find nothing new: then a server has been silent for too long. */
const looksPerSilence = 10;

/**
 * Tells when a server has been silent for `silenceMsMax` although it owes a reply: at most two
 * looks later than that.
 *
 * A process that stood still for seconds finds its timers due before it has read what arrived
 * meanwhile, and by its clock every server was silent. So silence is counted in looks and not by
 * the clock, and between two of them there is always a chance to read.
 */
export class SilenceWatch {
  readonly #parts: SilenceWatchParts;
  /** Time between two looks, each of which adds as much to a silence, however late it comes. */
  readonly #lookMs: number;
  #cancel: Cancel | undefined;
  #arrivedBytes = 0;
  #silentLookCount = 0;

  constructor(parts: SilenceWatchParts) {
    const { silenceMsMax = defaultSilenceMsMax } = parts;
    this.#parts = parts;
    this.#lookMs = silenceMsMax / looksPerSilence;
  }

  /** Looks from now on, until nothing is owed any more; without effect while it does. */
  begin(): void {
    if (this.#cancel !== undefined) return;
    this.#silentLookCount = 0;
    this.#arrivedBytes = this.#parts.arrivedBytes();
    this.#lookLater();
  }

  /** Looks no more, until the next `begin`. */
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
