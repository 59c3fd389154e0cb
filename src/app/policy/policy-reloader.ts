import type { Clock } from "../../core/base/clock.js";
import type { ParseOptions, PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import { type PolicyFileStyle, readPolicyFiles } from "../config/policy-files.js";
import {
  ActivePolicy,
  type PolicyFeed,
  type PolicyStatus,
  type PolicyUpdate,
} from "./active-policy.js";
import { type ParsesPolicies, parsePolicyInWorker } from "./policy-parsing.js";

interface PolicyReloaderParts {
  /** A policy file, or a directory of them. */
  readonly path: string;
  /** Which files of a directory are read. Default `yamlFiles`. */
  readonly style?: PolicyFileStyle;
  /** How the files are read. */
  readonly parse?: ParseOptions;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  /** Further directories whose changes count. */
  readonly watchedDirectories: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How a look at the policy's files ended. */
type PolicyLook = { readonly kind: "unchanged" } | PolicyUpdate;

/**
 * Keeps the active policy: loads it, watches its files and swaps it whole. Files that are wrong
 * change nothing but the log, a counter and the status, until good ones come.
 */
export class PolicyReloader implements PolicyFeed {
  readonly #parts: PolicyReloaderParts;
  readonly #active: ActivePolicy;
  /** What the last look found, so that the same is neither parsed nor reported again. */
  #seen: string | undefined;
  #texts: readonly PolicyText[] = [];
  readonly #looks = new SerializedPoll(() => this.#lookOnce());
  #watcher: PathWatcher | undefined;

  constructor(parts: PolicyReloaderParts) {
    this.#parts = parts;
    this.#active = new ActivePolicy(parts);
  }

  current(): Policy | undefined {
    return this.#active.current();
  }

  get status(): PolicyStatus {
    return this.#active.status;
  }

  /** The texts of the active policy; none while there is none. */
  get texts(): readonly PolicyText[] {
    return this.#texts;
  }

  onLoaded(listener: () => void): () => void {
    return this.#active.onLoaded(listener);
  }

  /** Looks at the files now. Looks never overlap: one that is wanted meanwhile follows. */
  look(): Promise<PolicyLook> {
    return this.#looks.now();
  }

  /** Looks again whenever the files may have changed, until `close`. */
  watch(): void {
    const { path, watchedDirectories, clock } = this.#parts;
    const onChange = (): void => this.#looks.want();
    this.#watcher ??= new PathWatcher({ path, directories: watchedDirectories, clock, onChange });
  }

  /** Ends watching; a look under way still ends by itself. */
  close(): void {
    this.#watcher?.close();
  }

  async #lookOnce(): Promise<PolicyLook> {
    const { path, style } = this.#parts;
    const read = await readPolicyFiles(path, style);
    const seen = read.kind === "sources" ? read.version : read.message;
    if (seen === this.#seen) return { kind: "unchanged" };
    this.#seen = seen;
    if (read.kind === "unreadable") {
      const words = visibleText(read.message);
      return this.#active.refuse({ cause: "unreadable", report: words, summary: words });
    }
    const { sources, version } = read;
    const input = { kind: "texts", sources } as const;
    const { clock, parse = {}, parser = parsePolicyInWorker } = this.#parts;
    const parsing = await parser({ input, parse, version, clock });
    if (parsing.kind === "policy") this.#texts = sources;
    // The next look parses the same texts again.
    if (parsing.kind === "failed" && parsing.isPassing === true) this.#seen = undefined;
    return this.#active.take(parsing);
  }
}
