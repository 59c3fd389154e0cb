import { type FSWatcher, realpathSync, watch } from "node:fs";
import { dirname } from "node:path";
import type { Cancel, Clock } from "../../core/base/clock.js";

interface PathWatcherParts {
  /** The file or directory that is watched. */
  readonly path: string;
  /** Additional directories whose changes count. */
  readonly directories: readonly string[];
  readonly clock: Clock;
  /** Called when something may have changed, so also if nothing has. */
  readonly onChange: () => void;
}

/** Quiet time that ends a burst of changes, in ms. Half-written files are thus mostly not read. */
export const settleMs = 250;

/** Maximum time for which continuous changes delay a look, in milliseconds. */
export const settleMsMax = 2_000;

/** Time between two looks without any change, in ms. File systems without notification need it. */
export const pollMs = 10_000;

/**
 * Reports when a path may have changed. It watches directories, not files: editors and ConfigMaps
 * replace files and swap symbolic links, and the watcher of a replaced file gets no more events.
 */
export class PathWatcher {
  readonly #parts: PathWatcherParts;
  #watchers: readonly FSWatcher[] = [];
  #cancelSettle: Cancel | undefined;
  #cancelPoll: Cancel | undefined;
  #firstChangeMs: number | undefined;
  #isClosed = false;

  constructor(parts: PathWatcherParts) {
    this.#parts = parts;
    this.#watch();
    this.#armPoll();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelSettle?.();
    this.#cancelPoll?.();
    for (const watcher of this.#watchers) watcher.close();
  }

  #noteChange(): void {
    if (this.#isClosed) return;
    const { clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    this.#firstChangeMs ??= nowMs;
    const leftMs = this.#firstChangeMs + settleMsMax - nowMs;
    this.#cancelSettle?.();
    this.#cancelSettle = clock.schedule(Math.max(0, Math.min(settleMs, leftMs)), () => {
      this.#firstChangeMs = undefined;
      this.#look();
    });
  }

  #armPoll(): void {
    this.#cancelPoll = this.#parts.clock.schedule(pollMs, () => {
      this.#look();
      this.#armPoll();
    });
  }

  /** Watches first and reports then, so that a change during the look causes another one. */
  #look(): void {
    if (this.#isClosed) return;
    for (const watcher of this.#watchers) watcher.close();
    this.#watch();
    this.#parts.onChange();
  }

  #watch(): void {
    const { path, directories } = this.#parts;
    const real = realPath(path);
    const watched = new Set([dirname(path), path, dirname(real), real, ...directories]);
    this.#watchers = [...watched].flatMap((one) => this.#watchOne(one));
  }

  #watchOne(path: string): readonly FSWatcher[] {
    try {
      const watcher = watch(path, { persistent: false }, () => this.#noteChange());
      // If a directory is removed, its watcher ends. The next look starts a new one.
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      return [];
    }
  }
}

/** Returns the target of the path. If it has none, returns the path itself. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
