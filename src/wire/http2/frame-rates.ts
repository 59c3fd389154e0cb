import {
  emptyDataPerSecondMax,
  ignoredFramesPerSecondMax,
  pingsPerSecondMax,
  pingsPerSentFrameMax,
  pingsSavedMax,
  provokedResetsPerSecondMax,
  settingsPerSecondMax,
  windowUpdatesPerSecondMax,
  windowUpdatesPerSentFrameMax,
  windowUpdatesSavedMax,
} from "../base/http2-limits.js";

const secondMs = 1_000;

/**
 * Counts, per second, the frames that cost a peer little and this process something. Each method
 * reports whether one more is within the limit.
 *
 * A second begins with the first frame after the previous one. So a peer may send twice the limit
 * within one second, but never more on average.
 */
export class FrameRates {
  #beganMs = Number.NEGATIVE_INFINITY;
  #pingsLeft = pingsPerSecondMax;
  #settings = 0;
  #ignored = 0;
  #emptyData = 0;
  #windowUpdatesLeft = windowUpdatesPerSecondMax;
  #provokedResets = 0;

  /** Sets the time, before what was read at that time is counted. */
  at(nowMs: number): void {
    if (nowMs - this.#beganMs < secondMs) return;
    this.#beganMs = nowMs;
    this.#pingsLeft = Math.max(this.#pingsLeft, pingsPerSecondMax);
    this.#settings = 0;
    this.#ignored = 0;
    this.#emptyData = 0;
    this.#windowUpdatesLeft = Math.max(this.#windowUpdatesLeft, windowUpdatesPerSecondMax);
    this.#provokedResets = 0;
  }

  /** Notes a sent HEADERS or DATA frame: the peer may measure it, and open its windows again. */
  onSentFrame(): void {
    if (this.#pingsLeft < pingsSavedMax) this.#pingsLeft += pingsPerSentFrameMax;
    if (this.#windowUpdatesLeft < windowUpdatesSavedMax) {
      this.#windowUpdatesLeft += windowUpdatesPerSentFrameMax;
    }
  }

  takePing(): boolean {
    this.#pingsLeft -= 1;
    return this.#pingsLeft >= 0;
  }

  takeSettings(): boolean {
    this.#settings += 1;
    return this.#settings <= settingsPerSecondMax;
  }

  /** PRIORITY, GOAWAY and unknown types. */
  takeIgnored(): boolean {
    this.#ignored += 1;
    return this.#ignored <= ignoredFramesPerSecondMax;
  }

  takeEmptyData(): boolean {
    this.#emptyData += 1;
    return this.#emptyData <= emptyDataPerSecondMax;
  }

  takeWindowUpdate(): boolean {
    this.#windowUpdatesLeft -= 1;
    return this.#windowUpdatesLeft >= 0;
  }

  takeProvokedReset(): boolean {
    this.#provokedResets += 1;
    return this.#provokedResets <= provokedResetsPerSecondMax;
  }
}
