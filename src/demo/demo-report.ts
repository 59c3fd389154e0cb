import type { Style } from "../app/base/style.js";
import { many } from "../core/base/many.js";
import type { Answer, Caller, SeenLimit } from "./demo-traffic.js";

interface TrafficReportParts {
  readonly callers: readonly Caller[];
  readonly style: Style;
  readonly print: (text: string) => void;
  /** Shown once, below the first refusal. */
  readonly policyPath: string;
}

/** Outcomes of one caller's requests since the last line. */
interface Tally {
  allowed: number;
  refused: number;
  failed: number;
  lastWords: string;
}

/** Seconds after which lines come only every `laterEverySeconds`, to limit the output. */
const livelySeconds = 10;

/** Seconds between lines after that. */
const laterEverySeconds = 10;

/** Reports whether a line is printed in this second. */
export function isLineDue(seconds: number): boolean {
  return seconds <= livelySeconds || seconds % laterEverySeconds === 0;
}

const columnChars = 24;

/** Reports the outcomes of callers' requests: one line per second at first, then fewer. */
export class TrafficReport {
  readonly #parts: TrafficReportParts;
  readonly #tallies = new Map<string, Tally>();
  #seconds = 0;
  #hasRefused = false;

  constructor(parts: TrafficReportParts) {
    this.#parts = parts;
  }

  /** Prints the names of the columns. */
  printHead(): void {
    const { callers, style, print } = this.#parts;
    const cells = callers.map(({ name, plan }) => pad(`${name} (${plan})`, columnChars));
    print(style.dim(`         ${cells.join("")}`.trimEnd()));
  }

  /** Counts an answer. Explains the first refusal at once, and returns true for it. */
  note(caller: Caller, answer: Answer): boolean {
    const tally = this.#tally(caller);
    if (answer.kind === "allowed") tally.allowed += 1;
    if (answer.kind === "refused") tally.refused += 1;
    if (answer.kind === "failed") {
      tally.failed += 1;
      tally.lastWords = answer.words;
    }
    if (answer.kind !== "refused" || this.#hasRefused) return false;
    this.#hasRefused = true;
    this.#explain(caller, answer);
    return true;
  }

  /** Must be called once per second. Prints a line if one is due. */
  tick(): void {
    this.#seconds += 1;
    if (!isLineDue(this.#seconds)) return;
    const { callers, print, style } = this.#parts;
    const cells = callers.map((caller) => this.#cell(this.#tally(caller)));
    print(`${style.dim(`${String(this.#seconds).padStart(5)} s`)}  ${cells.join("").trimEnd()}`);
    this.#tallies.clear();
  }

  #tally({ name }: Caller): Tally {
    const known = this.#tallies.get(name);
    if (known !== undefined) return known;
    const tally = { allowed: 0, refused: 0, failed: 0, lastWords: "" };
    this.#tallies.set(name, tally);
    return tally;
  }

  #cell({ allowed, refused, failed, lastWords }: Tally): string {
    const { style } = this.#parts;
    const parts: ReadonlyArray<readonly [text: string, paint: (text: string) => string]> = [
      ...(allowed > 0 ? [[`${allowed} ok`, style.good] as const] : []),
      ...(refused > 0 ? [[`${refused} x 429`, style.bad] as const] : []),
      ...(failed > 0 ? [[`${failed} failed (${lastWords})`, style.bad] as const] : []),
    ];
    const width = parts.map(([text]) => text).join("  ").length;
    const painted = parts.map(([text, paint]) => paint(text)).join("  ");
    return painted + " ".repeat(Math.max(2, columnChars - width));
  }

  #explain(caller: Caller, { limit, waitSeconds }: Extract<Answer, { kind: "refused" }>): void {
    const { style, print, policyPath } = this.#parts;
    const rule = limit === undefined ? "the limit" : describeLimit(limit);
    const when = waitSeconds === undefined ? "" : ` The next request fits in ${waitSeconds} s.`;
    print("");
    print(`  ${style.bad("The first 429:")} ${caller.name} has used up ${rule}.${when}`);
    print(style.dim(`  Every caller has its own bucket. The rules are in ${policyPath}.`));
    print("");
  }
}

/** Example: `"free-pace", 5 requests in 10 s`. */
export function describeLimit({ name, hits, periodSeconds }: SeenLimit): string {
  const called = name === undefined ? "a limit of" : `"${name}",`;
  return `${called} ${many(hits, "request")} in ${periodSeconds} s`;
}

function pad(text: string, width: number): string {
  return text.length < width ? text.padEnd(width) : `${text}  `;
}
