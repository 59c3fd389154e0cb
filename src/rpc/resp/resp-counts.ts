/** Commands of RESP. `other` are those that are not supported. */
export type RespCommand =
  | "throttle"
  | "ping"
  | "hello"
  | "auth"
  | "client"
  | "command"
  | "info"
  | "select"
  | "quit"
  | "other";

/** The result of a command: a decision, for `throttle`, or a reply. */
export type RespResult = "allowed" | "limited" | "ok" | "error";

/** Commands of RESP that were answered, by result. Read when metrics are scraped. */
export class RespCounts {
  readonly #counts = new Map<RespCommand, Map<RespResult, number>>();

  count(command: RespCommand, result: RespResult): void {
    let results = this.#counts.get(command);
    if (results === undefined) {
      results = new Map();
      this.#counts.set(command, results);
    }
    results.set(result, (results.get(result) ?? 0) + 1);
  }

  /** Calls back with each count above 0. */
  read(add: (count: number, command: RespCommand, result: RespResult) => void): void {
    for (const [command, results] of this.#counts) {
      for (const [result, count] of results) add(count, command, result);
    }
  }
}
