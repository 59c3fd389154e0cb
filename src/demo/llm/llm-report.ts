import type { Style } from "../../app/base/style.js";
import type { LlmEnd, LlmUser } from "./llm-callers.js";

interface LlmReportParts {
  readonly users: readonly LlmUser[];
  readonly style: Style;
  readonly print: (text: string) => void;
  readonly policyPath: string;
}

/** Outcomes of a user's calls since the last line, by the words that are shown. */
type Tally = Map<string, number>;

const columnChars = 30;

/** Reports the outcomes of users' calls: one line per second at first, then fewer. */
export class LlmReport {
  readonly #parts: LlmReportParts;
  readonly #tallies = new Map<LlmUser, Tally>();
  readonly #explained = new Set<string>();

  constructor(parts: LlmReportParts) {
    this.#parts = parts;
  }

  /** Prints the names of the columns. */
  printHead(): void {
    const { users, style, print } = this.#parts;
    const cells = users.map(({ name, team }) => `${name} (team ${team})`.padEnd(columnChars));
    print(style.dim(`         ${cells.join("")}`.trimEnd()));
  }

  /** Counts the end of a call. Explains the first one of each kind. */
  note(user: LlmUser, end: LlmEnd): void {
    const words = wordsOf(end);
    const tally = this.#tallies.get(user) ?? new Map<string, number>();
    this.#tallies.set(user, tally);
    tally.set(words, (tally.get(words) ?? 0) + 1);
    const explanation = this.#explanation(user, end);
    if (explanation === undefined || this.#explained.has(words)) return;
    this.#explained.add(words);
    this.#parts.print(`\n  ${this.#parts.style.bold(explanation.what)}`);
    this.#parts.print(this.#parts.style.dim(`  ${explanation.why}\n`));
  }

  /** Prints the outcomes of calls since the last line. */
  printLine(seconds: number): void {
    const { users, style, print } = this.#parts;
    const cells = users.map((user) => this.#cell(this.#tallies.get(user)));
    print(`${style.dim(`${String(seconds).padStart(5)} s`)}  ${cells.join("").trimEnd()}`);
    this.#tallies.clear();
  }

  #cell(tally: Tally = new Map()): string {
    const { style } = this.#parts;
    const parts = Array.from(tally, ([words, count]) => `${count} ${words}`);
    const painted = parts.map((part) => (/refused|failed/.test(part) ? style.bad(part) : part));
    const width = parts.join("  ").length;
    return painted.join("  ") + " ".repeat(Math.max(2, columnChars - width));
  }

  #explanation(
    { name, team }: LlmUser,
    end: LlmEnd,
  ): { readonly what: string; readonly why: string } | undefined {
    const { policyPath } = this.#parts;
    if (end === "fallback") {
      return {
        what: `The first fallback: team ${team} has spent its budget of the month.`,
        why: "Its calls go to the cheaper model now, and nobody has to change a client.",
      };
    }
    if (end === "left") {
      return {
        what: `${name} has left in the middle of an answer.`,
        why: "What was sent until then is charged; the rest of what was reserved is given back.",
      };
    }
    if (typeof end === "string" || !("refusedBy" in end)) return undefined;
    return {
      what: `The first refusal by ${end.refusedBy}: ${name} of team ${team}. ${end.detail}`,
      why: `Nothing is charged for it. The limits are in ${policyPath}.`,
    };
  }
}

function wordsOf(end: LlmEnd): string {
  if (end === "answered") return "ok";
  if (end === "fallback") return "cheaper";
  if (end === "left") return "left";
  return "failed" in end ? `failed (${end.failed})` : `refused (${end.refusedBy})`;
}
