import type { Server } from "node:http";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { denialOf, isSettled, type Limit, type Rule } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import {
  hitStats,
  hitsPrefix,
  namedHits,
  type StatsSources,
  serviceStats,
} from "../metrics/stats.js";
import { type FleetPageParts, renderFleet, shownNodesMax } from "./debug-fleet.js";
import { Profiles, profileSecondsMax } from "./debug-profiles.js";
import { createGetServer, type Page, type PageAsk, textPage } from "./get-server.js";

interface DebugParts {
  readonly sources: StatsSources;
  readonly fleet: FleetPageParts;
  readonly clock: Clock;
  /** Undefined: profiles are off for everyone. */
  readonly mayProfile: MayProfile | undefined;
  readonly onBug: (thrown: unknown) => void;
}

/** Reports whether the caller may take the requested profile. */
export type MayProfile = (ask: PageAsk) => Promise<boolean>;

interface DebugPage {
  readonly help: string;
  readonly answer: (ask: PageAsk) => Promise<Page>;
}

/** Creates the debug port's server. It does not listen yet. */
export function createDebugServer(parts: DebugParts): Server {
  const { sources, fleet, onBug } = parts;
  const profiles = profilePages(parts);
  const pages = new Map<string, DebugPage>([
    [
      "/debug/fleet",
      {
        help: `Envoys of the control port, at most ${shownNodesMax}; ?node= selects one by its id`,
        answer: async ({ query }) => jsonPage(renderFleet(fleet, query.get("node") ?? undefined)),
      },
    ],
    ...profiles,
    [
      "/rlconfig",
      {
        help: "the active limits",
        answer: async () => rawPage(renderPolicy(sources.policies.current())),
      },
    ],
    [
      "/stats",
      {
        help: "statistics with the names of envoyproxy/ratelimit; ?filter= selects by substring",
        answer: async ({ query }) => rawPage(renderStats(sources, query.get("filter") ?? "")),
      },
    ],
  ]);
  const index = [...pages].map(([path, { help }]) => `${path}: ${help}`).join("\n");
  return createGetServer(async (ask) => {
    if (!isOwnName(ask.host)) return textPage(httpStatuses.forbidden, nameRefusal);
    if (ask.path === "/" || ask.path === "/debug/pprof/") return textPage(httpStatuses.ok, index);
    const page = pages.get(ask.path);
    if (page !== undefined) return page.answer(ask);
    if (ask.path.startsWith("/debug/pprof/")) return textPage(httpStatuses.notFound, otherProfiles);
    return textPage(httpStatuses.notFound, `Not found. Available paths:\n${index}`);
  }, onBug);
}

/** Guards profiles: a heap snapshot contains passwords and callers' values, and both are slow. */
function profilePages({
  clock,
  mayProfile,
}: DebugParts): readonly (readonly [string, DebugPage])[] {
  const profiles = new Profiles(clock);
  const guarded = (take: (ask: PageAsk) => Promise<Page>) => async (ask: PageAsk) => {
    if (mayProfile === undefined) return textPage(httpStatuses.forbidden, profilesOff);
    return (await mayProfile(ask)) ? take(ask) : textPage(httpStatuses.forbidden, profilesRefused);
  };
  const note = mayProfile === undefined ? "; off" : "; for operators";
  return [
    [
      "/debug/pprof/heap",
      {
        help:
          "a heap snapshot, which contains all texts in memory; decisions wait while " +
          `it is taken${note}`,
        answer: guarded(() => profiles.heap()),
      },
    ],
    [
      "/debug/pprof/profile",
      {
        help: `a CPU profile; ?seconds= from 1 to ${profileSecondsMax}${note}`,
        answer: guarded((ask) => profiles.cpu(ask)),
      },
    ],
  ];
}

const profilesOff =
  "Profiles are off. Set HEADGATE_DEBUG_PROFILES=true to allow operators to take them.";

const profilesRefused =
  "Profiles need the role operator in all domains: send `authorization: Bearer TOKEN`, with a " +
  "token of HEADGATE_ADMIN_ACCESS or of its identity provider.";

const otherProfiles =
  "This is a Go runtime profile, and this process is not Go. /debug/pprof/ lists " +
  "the available profiles.";

/** A name that others own could direct a browser on this machine to this port. */
const nameRefusal = "Use an IP address or localhost as the host name.";

function isOwnName(host: string): boolean {
  return host === "" || host === "localhost" || /^[0-9.]+$|^\[[0-9a-f:.]+\]$/i.test(host);
}

function jsonPage(value: unknown): Page {
  const body = `${JSON.stringify(value, undefined, 2)}\n`;
  return { status: httpStatuses.ok, contentType: "application/json", body };
}

function rawPage(body: string): Page {
  return { status: httpStatuses.ok, contentType: "text/plain; charset=utf-8", body };
}

/** Renders one statistic per line, `name: value`, in order of names. */
function renderStats(sources: StatsSources, filter: string): string {
  const values = new Map<string, number>();
  for (const { name, value } of serviceStats(sources)) values.set(name, value);
  for (const named of namedHits(sources)) {
    const prefix = hitsPrefix(named);
    for (const { name, field } of hitStats) {
      const full = `${prefix}.${name}`;
      // Two rules may have the same name: they add up, as in statistics that are sent.
      values.set(full, (values.get(full) ?? 0) + named.hits[field]);
    }
  }
  const lines = [...values]
    .filter(([name]) => name.includes(filter))
    .map(([name, value]) => `${name}: ${value}\n`);
  return lines.sort().join("");
}

/**
 * Renders the active policy as text, one limit per line, like `/rlconfig` of envoyproxy/ratelimit,
 * plus facts that its files cannot express. Rules of its files have exactly its lines. Without a
 * policy or limits, the text is empty.
 *
 * Source: envoyproxy/ratelimit, src/config/config_impl.go, `dump`.
 */
export function renderPolicy(policy: Policy | undefined): string {
  const lines = policy?.rules.flatMap(ruleLines) ?? [];
  return lines.map((line) => `${line}\n`).join("");
}

function ruleLines(rule: Rule): readonly string[] {
  const name = `${rule.domain}.${rule.label}`;
  switch (rule.effect.kind) {
    case "none":
      return [];
    case "unlimited":
      return [`${name}: ${unlimitedText}`];
    case "limited":
      return rule.effect.limits.map((limit) => {
        const own = rule.settlesOncePeeked === true ? [] : ownFacts(limit);
        return `${name}: ${[limitText(limit), ...own].join(", ")}`;
      });
  }
}

/** Text of a rule without a limit: its unit is not set. */
const unlimitedText = "unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false";

function limitText({ hits, unit, role }: Limit): string {
  const denial = denialOf(role);
  const modes = `shadow_mode: ${denial === "shadow"}, quota_mode: ${denial === "quota"}`;
  return `unit=${unit.toUpperCase()} requests_per_unit=${hits}, ${modes}`;
}

function ownFacts(limit: Limit): readonly string[] {
  const { hits, unitMultiplier, burst, role, algorithm, onStoreFailure } = limit;
  const { overrideMax, spread } = limit;
  return [
    ...(isSettled(role) ? ["charge: settle"] : []),
    ...(limit.name === undefined ? [] : [`name: ${limit.name}`]),
    ...(unitMultiplier === 1 ? [] : [`unit_multiplier: ${unitMultiplier}`]),
    ...(burst === hits ? [] : [`burst: ${burst}`]),
    ...(algorithm?.kind === "fixed_window" ? ["algorithm: fixed_window"] : []),
    ...(algorithm?.kind === "fixed_window" && algorithm.timeZone !== undefined
      ? [`time_zone: ${algorithm.timeZone}`]
      : []),
    ...(onStoreFailure === "local" ? [] : [`on_store_failure: ${onStoreFailure}`]),
    ...(overrideMax === undefined ? [] : [`overrideMax: ${overrideMax}`]),
    ...(spread === undefined ? [] : [`spread: ${spread}`]),
  ];
}
