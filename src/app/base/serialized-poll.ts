/**
 * Looks at files that may change during a look. Looks never overlap, and one that is requested
 * during a look follows it, so the last change is always seen.
 */
export class SerializedPoll<Look> {
  readonly #lookOnce: () => Promise<Look>;
  #underWay: Promise<Look> | undefined;
  #isWantedAgain = false;

  /** @param lookOnce one look, including everything that follows from it */
  constructor(lookOnce: () => Promise<Look>) {
    this.#lookOnce = lookOnce;
  }

  /** Looks now. A call during a look returns the result of that look. */
  async now(): Promise<Look> {
    this.#underWay ??= this.#lookOnce().finally(() => {
      this.#underWay = undefined;
      if (this.#isWantedAgain) this.want();
    });
    return this.#underWay;
  }

  /** Requests a look after a change. One in progress may have missed it, so another follows. */
  want(): void {
    if (this.#underWay !== undefined) {
      this.#isWantedAgain = true;
      return;
    }
    this.#isWantedAgain = false;
    void this.now();
  }
}
