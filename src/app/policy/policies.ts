import type { Clock, Random } from "../../core/base/clock.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { ParseOptions, PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import { readVersion } from "../base/version.js";
import type { Config } from "../config/config.js";
import { type PolicyFileStyle, readPolicyFiles } from "../config/policy-files.js";
import { limitDefaultsOf } from "../options/decision-options.js";
import {
  ActivePolicy,
  type PolicyFeed,
  type PolicyStatus,
  type PolicyUpdate,
} from "./active-policy.js";
import { type ParsesPolicies, parsePolicyInWorker } from "./policy-parsing.js";
import { StoredPolicies } from "./policy-source.js";
import type { XdsStatus } from "./policy-xds.js";

/** Where the active policy may come from. */
export const policyOrigins = ["files", "xds", "store"] as const;

/** One of them. */
export type PolicyOrigin = (typeof policyOrigins)[number];

/** The active policy, kept up to date from where the configuration says. */
export interface OpenPolicies {
  readonly feed: PolicyFeed;
  /** What the configuration says. With `store`, files hold until a policy is applied. */
  readonly origin: PolicyOrigin;
  /** The texts of the active policy where they come from files; none else. */
  readonly texts: () => readonly PolicyText[];
  /** How texts are read. */
  readonly parse: ParseOptions;
  /** Absent where policies are files. */
  readonly xdsStatus?: () => XdsStatus;
  /** Follows changes from now on. */
  readonly watch: () => void;
  /** Whether the store has said which policy holds; absent: it is not asked. */
  readonly isKnown?: () => boolean;
  /** Resolves when what is known of the store is active here, or refused; absent: no store. */
  readonly refresh?: () => Promise<void>;
  readonly close: () => void;
  /** Why there is none, where the start went on to ask the store for one. */
  readonly failure?: StartFailure;
}

interface PoliciesParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Reads the texts of files and of the store; messages are a worker thread's. */
  readonly parser?: ParsesPolicies;
}

/**
 * Opens the source of policies. Files are read now; a control plane is asked now, and whoever needs
 * its answer waits for it.
 *
 * @throws StartFailure when files are missing or wrong, unless the start is forced
 */
export async function openPolicies(config: Config, parts: PoliciesParts): Promise<OpenPolicies> {
  const { xds } = config;
  if (xds === undefined) return openFiles(config, parts);
  // The client library is a quarter of all code, and only this source needs it.
  const { XdsPolicies } = await import("./policy-xds.js");
  const policies = new XdsPolicies({
    xds,
    parse: parseOptionsOf(config),
    programVersion: readVersion(),
    ...parts,
  });
  return {
    feed: policies,
    origin: "xds",
    texts: () => [],
    parse: parseOptionsOf(config),
    xdsStatus: () => policies.xdsStatus,
    watch: () => policies.start(),
    close: () => policies.close(),
  };
}

function parseOptionsOf(config: Config): ParseOptions {
  return {
    mergesDomains: config.mergesDomains,
    defaults: limitDefaultsOf(config),
    regionCount: config.regions?.names.length ?? 1,
  };
}

async function openFiles(config: Config, parts: PoliciesParts): Promise<OpenPolicies> {
  const { policyPath: path, policyStyle: style, watchedDirectories } = config;
  const parse = parseOptionsOf(config);
  const policies = new PolicyReloader({ path, style, parse, watchedDirectories, ...parts });
  const open: OpenPolicies = {
    feed: policies,
    origin: config.policySource,
    texts: () => policies.texts,
    parse,
    watch: () => policies.watch(),
    close: () => policies.close(),
  };
  const look = await policies.look();
  if (look.kind !== "refused") return open;
  if (config.forceStart) {
    const event = { event: "policyRefused", cause: look.cause };
    parts.logger.error(
      event,
      `There is no policy yet; calls fail until there is one:\n${look.report}`,
    );
    return open;
  }
  const remedy =
    "Set a file or directory with --policy or HEADGATE_POLICY, or create one: `headgate init`.";
  const failure =
    look.cause === "invalid"
      ? new StartFailure(exitCodes.invalidPolicy, look.report)
      : new StartFailure(exitCodes.failure, `There is no policy: ${look.report}. ${remedy}`);
  if (config.policySource === "store") return { ...open, failure };
  throw failure;
}

/**
 * Puts the policies of the store before those of files, which are closed apart, where the
 * configuration says so; else answers what it was given.
 *
 * @throws StartFailure when there is none in either place, unless the start is forced
 */
export async function followStore(
  files: OpenPolicies,
  parts: Pick<PoliciesParts, "clock" | "logger" | "parser"> & {
    readonly records: SharedRecords;
  },
): Promise<OpenPolicies> {
  if (files.origin !== "store") return files;
  const stored = new StoredPolicies({ ...parts, first: files.feed, parse: files.parse });
  await stored.begin();
  if (files.failure !== undefined && stored.current() === undefined) {
    stored.close();
    throw files.failure;
  }
  const { failure: _failure, ...open } = files;
  return {
    ...open,
    feed: stored,
    texts: () => (stored.isStored ? [] : files.texts()),
    isKnown: () => stored.isKnown,
    refresh: () => stored.refresh(),
    watch: () => {
      if (!stored.isStored) files.watch();
    },
    close: () => stored.close(),
  };
}

/** Whether this replica should be sent calls, by the active policy. */
export function isHealthyWith(feed: PolicyFeed, config: Config): boolean {
  const { version, domainCount } = feed.status;
  if (config.needsDomainForHealth) return domainCount > 0;
  return version !== undefined || config.forceStart;
}

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
