import type { NodeReport } from "../../src/core/feedback/feedback.js";
import type { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { eachRow, type ReadReport, readReport } from "../../src/fleet/loop/report-reader.js";
import { ReportScale } from "../../src/fleet/loop/report-scale.js";
import { ReportWriter } from "../../src/fleet/loop/report-writer.js";
import { allTurns } from "./all-turns.js";

/** Does what is done in turns, all of it. */
type RunTurns = <T>(turns: Generator<undefined, T>) => T;

/** A replica that writes records of what its Envoys do, and what a leader knows of it. */
export class RecordedReplica {
  readonly #name: string;
  readonly #writer = new ReportWriter();
  readonly #scale = new ReportScale();
  #number = 0;
  #base: ReadReport | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** A record; the store has it. @param nodes one report of each Envoy and service at most */
  tell(nodes: readonly NodeReport[], nowMs: number, run: RunTurns = allTurns): Buffer {
    this.#number += 1;
    const terms = { number: this.#number, now: () => nowMs };
    const { bytes } = run(this.#writer.encode({ nodes, services: [] }, terms));
    this.#writer.confirm();
    return bytes;
  }

  /** What the leader reads of a record. */
  read(bytes: Buffer, atMs: number, run: RunTurns = allTurns): ReadReport {
    const read = run(readReport({ bytes, atMs }, this.#base));
    if (read === undefined) throw new Error("a record that cannot be read");
    if (read.baseNumber === 0) this.#base = read;
    return read;
  }

  /** Takes in what was read, in turns, as `LeaderTerm` does. */
  *take(loop: FleetLoop, read: ReadReport, nowMs: number): Generator<undefined, void> {
    yield* eachRow(read, this.#scale, (report) => loop.take(report, nowMs));
    for (const samples of read.samples) loop.takeSamples(samples);
    const { atMs } = read;
    for (const one of read.remainders) {
      loop.takeRemainder({ ...one, source: this.#name, atMs });
    }
  }
}
