/**
 * A plugin of Stryker's: runs vitest for the mutants that were drawn alone, and tells how far they
 * are. Stryker itself takes ranges of a file, and mutants nest: a block's range holds all mutants
 * of its statements. (A plugin that checks mutants before they run could hold them back too, but
 * then Stryker starts a second process for tests.)
 *
 * Plain JavaScript, since Stryker's worker processes load no TypeScript.
 */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { strykerPlugins as vitestPlugins } from "@stryker-mutator/vitest-runner";

/** The test runner and the reporter, as Stryker's options name them. */
const name = "drawn";

/** How often it is told how many mutants are done. */
const toldEach = 20;

const root = fileURLToPath(new URL("../..", import.meta.url));

/** @param {{ drawn: string[] }} options Stryker's, with the keys of the mutants that were drawn */
function isDrawnBy({ drawn }) {
  const keys = new Set(drawn);
  /** Stryker counts lines and columns from 0 where it runs mutants. */
  return ({ fileName, location: { start, end }, mutatorName, replacement }) => {
    const span = [start.line, start.column, end.line, end.column].join(":");
    return keys.has([relative(root, fileName), span, mutatorName, replacement].join("|"));
  };
}

/** Vitest, for what was drawn. The rest survives without a test, and is no part of any count. */
class DrawnRunner {
  #vitest;
  #isDrawn;

  constructor(vitest, options) {
    this.#vitest = vitest;
    this.#isDrawn = isDrawnBy(options);
  }

  capabilities() {
    return this.#vitest.capabilities();
  }

  init() {
    return this.#vitest.init();
  }

  dryRun(options) {
    return this.#vitest.dryRun(options);
  }

  async mutantRun(options) {
    const isDrawn = this.#isDrawn(options.activeMutant);
    return isDrawn ? this.#vitest.mutantRun(options) : { status: "survived", nrOfTests: 0 };
  }

  dispose() {
    return this.#vitest.dispose();
  }
}

/** Tells how many tests there are, and now and then how many mutants are done. */
class DrawnReporter {
  #isDrawn;
  #drawnCount;
  #doneCount = 0;
  #missedCount = 0;

  constructor(options) {
    this.#isDrawn = isDrawnBy(options);
    this.#drawnCount = options.drawn.length;
  }

  onDryRunCompleted({ result: { tests } }) {
    const files = new Set(tests.map(({ fileName }) => fileName));
    console.log(`${tests.length} tests of ${files.size} files pass without a mutant`);
  }

  onMutantTested(mutant) {
    if (!this.#isDrawn(fromZero(mutant))) return;
    this.#doneCount += 1;
    if (mutant.status === "Survived" || mutant.status === "NoCoverage") this.#missedCount += 1;
    if (this.#doneCount % toldEach !== 0 && this.#doneCount !== this.#drawnCount) return;
    console.log(`${this.#doneCount} of ${this.#drawnCount}, ${this.#missedCount} not noticed`);
  }
}

/** Results count lines and columns from 1. */
function fromZero(mutant) {
  const place = ({ line, column }) => ({ line: line - 1, column: column - 1 });
  const { start, end } = mutant.location;
  return { ...mutant, location: { start: place(start), end: place(end) } };
}

const createRunner = (injector) => {
  const [vitest] = vitestPlugins;
  return new DrawnRunner(injector.injectFunction(vitest.factory), injector.resolve("options"));
};
createRunner.inject = ["$injector"];

const createReporter = (options) => new DrawnReporter(options);
createReporter.inject = ["options"];

/** What Stryker loads. */
export const strykerPlugins = [
  { kind: "TestRunner", name, factory: createRunner },
  { kind: "Reporter", name, factory: createReporter },
];

/** The option of Stryker's that is ours. */
export const strykerValidationSchema = {
  properties: { drawn: { type: "array", items: { type: "string" } } },
};
