import type { Server } from "node:http";
import { BlockList, isIP } from "node:net";
import type { Clock } from "../core/clock.js";
import { type FleetPageParts, renderFleet, shownNodesMax } from "./debug-fleet.js";
import { renderPolicy } from "./debug-policy.js";
import { Profiles, profileSecondsMax } from "./debug-profiles.js";
import { createGetServer, type Page, type PageAsk, textPage } from "./get-server.js";
import { hitStats, hitsPrefix, namedHits, type StatsSources, serviceStats } from "./stats.js";

/** What the debug port shows. */
export interface DebugParts {
  readonly sources: StatsSources;
  readonly fleet: FleetPageParts;
  readonly clock: Clock;
  /** Where it will listen. */
  readonly host: string;
  readonly onBug: (thrown: unknown) => void;
}

interface DebugPage {
  readonly help: string;
  readonly answer: (ask: PageAsk) => Promise<Page>;
}

/** The debug port's server. It does not listen yet. */
export function createDebugServer(parts: DebugParts): Server {
  const { sources, fleet, clock, host, onBug } = parts;
  const profiles = new Profiles(clock);
  const isLocal = isLoopback(host);
  const pages = new Map<string, DebugPage>([
    [
      "/debug/fleet",
      {
        help: `Envoys of the control port, up to ${shownNodesMax}; ?node= shows the one of that id`,
        answer: async ({ query }) => jsonPage(renderFleet(fleet, query.get("node") ?? undefined)),
      },
    ],
    [
      "/debug/pprof/heap",
      {
        help: "a heap snapshot, with all texts in memory; decisions wait while it is taken",
        // It holds passwords and callers' values: who asks for it must be on this machine.
        answer: async () => (isLocal ? profiles.heap() : textPage(403, heapRefusal)),
      },
    ],
    [
      "/debug/pprof/profile",
      {
        help: `a CPU profile; ?seconds= from 1 to ${profileSecondsMax}`,
        answer: (ask) => profiles.cpu(ask),
      },
    ],
    [
      "/rlconfig",
      {
        help: "the limits in force",
        answer: async () => rawPage(renderPolicy(sources.policies.current())),
      },
    ],
    [
      "/stats",
      {
        help: "statistics by the names of envoyproxy/ratelimit; ?filter= keeps those that hold it",
        answer: async ({ query }) => rawPage(renderStats(sources, query.get("filter") ?? "")),
      },
    ],
  ]);
  const index = [...pages].map(([path, { help }]) => `${path}: ${help}`).join("\n");
  return createGetServer(async (ask) => {
    if (!isOwnName(ask.host)) return textPage(403, nameRefusal);
    if (ask.path === "/" || ask.path === "/debug/pprof/") return textPage(200, index);
    const page = pages.get(ask.path);
    if (page !== undefined) return page.answer(ask);
    if (ask.path.startsWith("/debug/pprof/")) return textPage(404, otherProfiles);
    return textPage(404, `Nothing is here. There is:\n${index}`);
  }, onBug);
}

const heapRefusal = "Heap snapshots hold passwords: they are given on a loopback DEBUG_HOST only.";

const otherProfiles =
  "That is a profile of Go's runtime, which this is not: /debug/pprof/ says what there is.";

/** A name that somebody else owns could lead a browser of this machine here. */
const nameRefusal = "Ask for it by an address or by localhost.";

function isOwnName(host: string): boolean {
  return host === "" || host === "localhost" || /^[0-9.]+$|^\[[0-9a-f:.]+\]$/i.test(host);
}

/** Whether only this machine reaches what listens there. */
export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const family = isIP(host);
  if (family === 0) return false;
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8);
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

function jsonPage(value: unknown): Page {
  const body = `${JSON.stringify(value, undefined, 2)}\n`;
  return { status: 200, contentType: "application/json", body };
}

function rawPage(body: string): Page {
  return { status: 200, contentType: "text/plain; charset=utf-8", body };
}

/** A line a statistic, `name: value`, in the order of names. */
function renderStats(sources: StatsSources, filter: string): string {
  const values = new Map<string, number>();
  for (const { name, value } of serviceStats(sources)) values.set(name, value);
  for (const named of namedHits(sources)) {
    const prefix = hitsPrefix(named);
    for (const { name, field } of hitStats) {
      const full = `${prefix}.${name}`;
      // Two rules may read the same: they add up, as they do where statistics are sent.
      values.set(full, (values.get(full) ?? 0) + named.hits[field]);
    }
  }
  const lines = [...values]
    .filter(([name]) => name.includes(filter))
    .map(([name, value]) => `${name}: ${value}\n`);
  return lines.sort().join("");
}
