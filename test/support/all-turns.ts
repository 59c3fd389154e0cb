/** What comes of something that is done in turns, done at once. */
export function allTurns<T>(turns: Iterator<undefined, T>): T {
  for (;;) {
    const turn = turns.next();
    if (turn.done === true) return turn.value;
  }
}
