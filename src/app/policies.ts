import type { Clock, Random } from "../core/clock.js";
import type { ParseOptions } from "../policy/parse.js";
import type { Config } from "./config.js";
import { limitDefaultsOf } from "./decision-options.js";
import { exitCodes, StartFailure } from "./failure.js";
import type { Logger } from "./logger.js";
import type { PolicyFeed } from "./policy-in-force.js";
import { PolicyReloader } from "./policy-reloader.js";
import { XdsPolicies, type XdsStatus } from "./policy-xds.js";
import { readVersion } from "./version.js";

/** The policy in force, kept up to date from where the configuration says. */
export interface OpenPolicies {
  readonly feed: PolicyFeed;
  /** Absent where policies are files. */
  readonly xdsStatus?: () => XdsStatus;
  /** Follows changes from now on. */
  readonly watch: () => void;
  readonly close: () => void;
}

/** What opening them needs. */
export interface PoliciesParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
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
  const policies = new XdsPolicies({
    xds,
    parse: parseOptionsOf(config),
    programVersion: readVersion(),
    ...parts,
  });
  return {
    feed: policies,
    xdsStatus: () => policies.xdsStatus,
    watch: () => policies.start(),
    close: () => policies.close(),
  };
}

function parseOptionsOf(config: Config): ParseOptions {
  return { mergesDomains: config.mergesDomains, defaults: limitDefaultsOf(config) };
}

async function openFiles(config: Config, { clock, logger }: PoliciesParts): Promise<OpenPolicies> {
  const { policyPath: path, policyStyle: style, watchedDirectories } = config;
  const parse = parseOptionsOf(config);
  const policies = new PolicyReloader({ path, style, parse, watchedDirectories, clock, logger });
  const open: OpenPolicies = {
    feed: policies,
    watch: () => policies.watch(),
    close: () => policies.close(),
  };
  const look = await policies.look();
  if (look.kind !== "refused") return open;
  if (config.forceStart) {
    const event = { event: "policyRefused", cause: look.cause };
    logger.error(event, `There is no policy yet, and calls fail until there is:\n${look.report}`);
    return open;
  }
  if (look.cause === "invalid") throw new StartFailure(exitCodes.invalidPolicy, look.report);
  const remedy = "Name a file or directory with --policy or HEADGATE_POLICY.";
  throw new StartFailure(exitCodes.failure, `There is no policy: ${look.report}. ${remedy}`);
}

/** Whether this replica should be sent calls, by the policy in force. */
export function isHealthyWith(feed: PolicyFeed, config: Config): boolean {
  const { version, domainCount } = feed.status;
  if (config.needsDomainForHealth) return domainCount > 0;
  return version !== undefined || config.forceStart;
}
