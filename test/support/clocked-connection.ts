import type { Clock } from "../../src/core/base/clock.js";
import type {
  ScriptCall,
  ScriptReply,
  StoreConnection,
  StoreScript,
} from "../../src/store/redis/scripts/connection.js";

/** Where a script asks the server what time it is. */
const timeCall = "call('TIME')";

/**
 * A connection to a real store whose scripts go by a test's clock: what they ask TIME for comes as
 * two more arguments. Everything else is the script's own text, run by the server.
 */
export class ClockedConnection implements StoreConnection {
  readonly #connection: StoreConnection;
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #scripts = new Map<StoreScript, StoreScript>();

  constructor(connection: StoreConnection, clock: Pick<Clock, "epochUs">) {
    this.#connection = connection;
    this.#clock = clock;
  }

  run(call: ScriptCall): Promise<ScriptReply> {
    const us = this.#clock.epochUs();
    const time = [String(Math.floor(us / 1_000_000)), String(us % 1_000_000)];
    const args = [...call.args, ...time];
    return this.#connection.run({ ...call, script: this.#clocked(call.script), args });
  }

  #clocked(script: StoreScript): StoreScript {
    const known = this.#scripts.get(script);
    if (known !== undefined) return known;
    const text = script.text.replaceAll(timeCall, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
    const clocked = { ...script, text };
    this.#scripts.set(script, clocked);
    return clocked;
  }
}
