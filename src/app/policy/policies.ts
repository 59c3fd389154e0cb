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

/** Possible sources of the active policy. */
export const policyOrigins = ["files", "xds", "store"] as const;

/** One of these sources. */
export type PolicyOrigin = (typeof policyOrigins)[number];

/** The active policy, kept up to date from the configured source. */
export interface OpenPolicies {
  readonly feed: PolicyFeed;
  /** The configured source. With `store`, files apply until a policy is applied. */
  readonly origin: PolicyOrigin;
  /** The texts of the active policy if they come from files, otherwise none. */
  readonly texts: () => readonly PolicyText[];
  /** Options for reading texts. */
  readonly parse: ParseOptions;
  /** Absent if policies are files. */
  readonly xdsStatus?: () => XdsStatus;
  /** Starts following changes. */
  readonly watch: () => void;
  /** Whether the store has reported which policy is active. Absent: the store is not asked. */
  readonly isKnown?: () => boolean;
  /** Resolves when the last policy known from the store is active or refused. Absent: no store. */
  readonly refresh?: () => Promise<void>;
  readonly close: () => void;
  /** Reason why there is no policy, if the start continued to ask the store for one. */
  readonly failure?: StartFailure;
}

interface PoliciesParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Parses the policies of all sources. Default: a worker thread. */
  readonly parser?: ParsesPolicies;
}

/**
 * Opens the source of policies. Files are read now. A control plane is asked from `watch` on, and a
 * caller that needs its response waits for it.
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
 * Puts the store's policies before those of files, if so configured. Otherwise returns `files`
 * unchanged. The caller closes the files separately.
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

/** Reports whether this replica should receive calls, by the active policy. */
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
  /** Options for reading the files. */
  readonly parse?: ParseOptions;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  /** Additional directories whose changes count. */
  readonly watchedDirectories: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Result of a look at the policy's files. */
type PolicyLook = { readonly kind: "unchanged" } | PolicyUpdate;

/**
 * Keeps the active policy: loads it, watches its files and replaces it as a whole. Invalid files
 * change only the log, a counter and the status, until valid ones come.
 */
export class PolicyReloader implements PolicyFeed {
  readonly #parts: PolicyReloaderParts;
  readonly #active: ActivePolicy;
  /** Content found by the last look, so that it is neither parsed nor reported again. */
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

  /** The texts of the active policy. Empty while there is none. */
  get texts(): readonly PolicyText[] {
    return this.#texts;
  }

  onLoaded(listener: () => void): () => void {
    return this.#active.onLoaded(listener);
  }

  /** Looks at the files now. Looks never overlap: one requested during a look follows it. */
  look(): Promise<PolicyLook> {
    return this.#looks.now();
  }

  /** Looks again whenever the files may have changed, until `close`. */
  watch(): void {
    const { path, watchedDirectories, clock } = this.#parts;
    const onChange = (): void => this.#looks.want();
    this.#watcher ??= new PathWatcher({ path, directories: watchedDirectories, clock, onChange });
  }

  /** Stops watching. A look in progress still completes. */
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
