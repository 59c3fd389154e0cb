import type { Problem, ProblemId } from "./problem.js";
import type { SourceText, TextRange } from "./source-text.js";

/** Maximum number of problems that are described; the rest are counted. */
export const problemsMax = 100;

/** A problem at a place. */
export interface Finding {
  readonly id: ProblemId;
  readonly message: string;
  readonly expected?: string | undefined;
  readonly suggestion?: string | undefined;
}

/** Problems in the order of sources and places, and the number of further ones. */
export interface FoundProblems {
  /** At most `problemsMax`. */
  readonly problems: readonly Problem[];
  readonly unreportedCount: number;
}

/** Result of reading wrong texts: at least one problem. */
export interface ParseProblems extends FoundProblems {
  readonly kind: "problems";
}

/** Collects the problems of all sources of one policy, and separately their warnings. */
export class ProblemLog {
  /** Valid texts that are probably mistakes. */
  readonly warnings = new Problems();
  readonly #problems = new Problems();

  /** Number of problems so far, described or not. */
  get count(): number {
    return this.#problems.count;
  }

  /** Adds a problem; beyond `problemsMax` it is only counted. */
  report(source: SourceText, range: TextRange, finding: Finding): void {
    this.#problems.report(source, range, finding);
  }

  /** Returns the described problems, and the number of further ones. */
  found(): FoundProblems {
    return this.#problems.found();
  }
}

class Problems {
  readonly #entries: { readonly order: number; readonly offset: number; problem: Problem }[] = [];
  #unreportedCount = 0;

  get count(): number {
    return this.#entries.length + this.#unreportedCount;
  }

  report(source: SourceText, range: TextRange, finding: Finding): void {
    if (this.#entries.length >= problemsMax) {
      this.#unreportedCount += 1;
      return;
    }
    const { text, start, length } = source.excerpt(range);
    const problem: Problem = {
      file: source.file,
      ...source.position(range.start),
      id: finding.id,
      message: finding.message,
      excerpt: text,
      caret: { start, length },
      ...(finding.expected === undefined ? {} : { expected: finding.expected }),
      ...(finding.suggestion === undefined ? {} : { suggestion: finding.suggestion }),
    };
    this.#entries.push({ order: source.order, offset: range.start, problem });
  }

  found(): FoundProblems {
    const sorted = this.#entries.toSorted((a, b) => a.order - b.order || a.offset - b.offset);
    return {
      problems: sorted.map((entry) => entry.problem),
      unreportedCount: this.#unreportedCount,
    };
  }
}
