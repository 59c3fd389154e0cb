/** Processes that must not outlive this one: a single listener of its exit ends all of them. */
class KilledAtExit {
  readonly #kills = new Set<() => void>();

  /** @param kill called when this process exits @returns takes it back, once its process ended */
  add(kill: () => void): () => void {
    if (this.#kills.size === 0) process.on("exit", this.#killAll);
    this.#kills.add(kill);
    return () => {
      this.#kills.delete(kill);
      if (this.#kills.size === 0) process.off("exit", this.#killAll);
    };
  }

  readonly #killAll = (): void => {
    for (const kill of this.#kills) kill();
  };
}

/** Those of this process. */
export const killedAtExit = new KilledAtExit();
