import { quoteText, visibleText } from "../problems/problem.js";
import type { ProblemLog } from "../problems/problem-log.js";
import type { SourceText } from "../problems/source-text.js";
import { findNearestName } from "../text/nearest-name.js";
import type { NodeReader } from "../text/node-reader.js";
import type { PlacedValue } from "../text/object.js";
import { textFault } from "../text/text-rules.js";
import { baseName } from "./page-file.js";
import { checkTemplate, templateRule } from "./room-page.js";

const firstCharacter = { start: 0, end: 1 };

/** The HTML files of a policy, by the last part of their paths. */
export class PageTemplates {
  readonly #log: ProblemLog;
  readonly #sources = new Map<string, SourceText>();
  readonly #used = new Set<SourceText>();

  constructor(log: ProblemLog) {
    this.#log = log;
  }

  /** Adds a file; reports a second one of the same name. A refused file is not checked. */
  add(source: SourceText, isRefused: boolean): void {
    if (isRefused) this.#used.add(source);
    const name = baseName(source.file);
    const known = this.#sources.get(name);
    if (known === undefined) {
      this.#sources.set(name, source);
      return;
    }
    this.#log.report(source, firstCharacter, {
      id: "HG285",
      message: `a template named ${quoteText(name)} is already in ${visibleText(known.file)}`,
    });
  }

  /** Returns the template that a room names. Its problems are reported once, in its own file. */
  use({ value: name, node }: PlacedValue<string>, reader: NodeReader): string | undefined {
    const source = this.#sources.get(name);
    if (source === undefined) {
      return reader.reportContent(node, {
        id: "HG284",
        message: `the policy has no file named ${quoteText(name)}`,
        expected: "an HTML file beside the policy, by the last part of its path",
        suggestion: findNearestName(name, [...this.#sources.keys()]),
      });
    }
    if (!this.#used.has(source)) this.#check(source);
    this.#used.add(source);
    return source.text;
  }

  /** Warns of files that no room names. */
  warnOfUnused(): void {
    for (const [name, source] of this.#sources) {
      if (this.#used.has(source)) continue;
      this.#log.warnings.report(source, firstCharacter, {
        id: "HG286",
        message: `no waiting room uses ${quoteText(name)}`,
        expected: `page: {templateFile: ${visibleText(name)}}`,
      });
    }
  }

  #check(source: SourceText): void {
    const { text } = source;
    const fault = textFault(text, templateRule);
    if (fault === undefined) {
      checkTemplate(text, (finding, part) => {
        this.#log.report(source, part ?? firstCharacter, finding);
      });
      return;
    }
    const start = fault.id === "HG132" ? text.search(templateRule.forbidden) : 0;
    this.#log.report(source, { start, end: start + 1 }, fault);
  }
}
