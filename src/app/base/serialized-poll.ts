/**
 * Looks at files that may change while they are looked at: looks never overlap, and one that is
 * wanted meanwhile follows, so the last change is always seen.
 */
export class SerializedPoll<Look> {
  readonly #lookOnce: () => Promise<Look>;
  #underWay: Promise<Look> | undefined;
  #isWantedAgain = false;

  /** @param lookOnce one look, from its beginning to what follows from it */
  constructor(lookOnce: () => Promise<Look>) {
    this.#lookOnce = lookOnce;
  }

  /** Looks now; who asks during a look is told what that one found. */
  async now(): Promise<Look> {
    this.#underWay ??= this.#lookOnce().finally(() => {
      this.#underWay = undefined;
      if (this.#isWantedAgain) this.want();
    });
    return this.#underWay;
  }

  /** Looks at what may have changed just now: a look under way may have missed it. */
  want(): void {
    if (this.#underWay !== undefined) {
      this.#isWantedAgain = true;
      return;
    }
    this.#isWantedAgain = false;
    void this.now();
  }
}
