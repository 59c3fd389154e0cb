import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import type { RegionShare } from "../../core/limits/lending.js";
import type { LimitKey } from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { LimitSwitches } from "../../decide/rate-limit/switches.js";
import { ShadowRun } from "../../decide/shadow/shadow.js";
import { noDifference, type ShadowCounts } from "../../decide/shadow/shadow-counts.js";
import type { ShadowLedger } from "../../fleet/claims/shadow-ledger.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { ParseOptions } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import type { ShadowReport, ShadowRule } from "../../rpc/admin/admin-parts.js";
import type { LedgerEntry, LedgerSums } from "../../store/coordination/ledger-store.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { Logger } from "../base/logger.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import type { PolicyFeed } from "../policy/active-policy.js";
import { readShadow, type StoredShadow, shadowId } from "../policy/policy-admin-records.js";
import { type ParsesPolicies, parsePolicyInWorker } from "../policy/policy-parsing.js";

/** The dependencies of a `PolicyShadow`. */
export interface PolicyShadowParts {
  readonly records: SharedRecords;
  readonly ledger: Pick<ShadowLedger, "add">;
  readonly policies: Pick<PolicyFeed, "current" | "onLoaded">;
  readonly overrides: { current(): OverrideTable };
  /** Opens separate buckets, under a name of letters, digits and colons. */
  readonly openSpace: (name: string) => LimitStore;
  /** The name of a key's bucket in the store of decisions. */
  readonly liveNameOf: (key: LimitKey) => LimitKey;
  readonly parse: ParseOptions;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly storeBudgetMs: number;
  readonly newKeysPerSecondMax: number;
  readonly switches: LimitSwitches;
  /** This region among those that share global limits. A candidate's limits borrow nothing. */
  readonly region?: RegionShare | undefined;
  readonly digest: (text: string) => string;
  /** Whether this process has no time, or no store, for work that no caller waits for. */
  readonly isBusy: () => boolean;
}

/** Time between two entries in the ledger of a run, in milliseconds. */
const tellMs = 1_000;

/** Minimum time budget of the candidate's store, in milliseconds: no caller waits for it. */
const shadowBudgetMsMin = 50;

/** A candidate that runs on this replica. */
interface Running {
  readonly stored: StoredShadow;
  readonly run: ShadowRun;
  sums: LedgerSums;
  /** Entry that the ledger has not confirmed yet. */
  unsent: LedgerEntry | undefined;
  hasBegun: boolean;
}

/**
 * Runs the candidate named by shared records beside the active policy, on this replica, and reports
 * its counts to the ledger of the run each second. Ends when the record is removed, when the
 * candidate becomes active, and when its report was not read for an hour.
 */
export class PolicyShadow {
  readonly #parts: PolicyShadowParts;
  readonly #stopFollowing: readonly (() => void)[];
  readonly #looks = new SerializedPoll(() => this.#lookOnce());
  readonly totals = {
    comparedCount: 0,
    newlyDeniedCount: 0,
    newlyAllowedCount: 0,
    unseenCount: 0,
  };
  #running: Running | undefined;
  #lookedAtRun: string | undefined;
  #seen: string | undefined;
  #cancelTell: Cancel;
  #isClosed = false;

  constructor(parts: PolicyShadowParts) {
    this.#parts = parts;
    const want = (): void => this.#looks.want();
    this.#stopFollowing = [
      parts.records.onChange((kind) => {
        if (kind === "policy") want();
      }),
      parts.policies.onLoaded(want),
    ];
    this.#cancelTell = this.#scheduleTell();
    want();
  }

  current(): ShadowRun | undefined {
    return this.#running?.run;
  }

  /** The candidate that runs here, as it is stored. */
  get stored(): StoredShadow | undefined {
    return this.#running?.stored;
  }

  /** One of this many calls is compared here now. 0: nothing runs. */
  get divisor(): number {
    return this.#running?.run.divisor ?? 0;
  }

  /** The counts of all replicas, up to a second old. Undefined: nothing runs. */
  report(): ShadowReport | undefined {
    const running = this.#running;
    if (running === undefined) return undefined;
    const { stored, sums } = running;
    this.#lookedAtRun = stored.run;
    return {
      policyVersion: this.#parts.policies.current()?.version ?? "",
      shadowVersion: stored.version,
      sinceEpochMs: stored.appliedEpochMs,
      callCount: sums.get(sumNames.compared) ?? 0,
      unseenCount: sums.get(sumNames.unseen) ?? 0,
      rules: rulesOf(sums),
    };
  }

  /** Resolves when the candidate named by records runs here, or is known not to. */
  async refresh(): Promise<void> {
    // The first look may have begun too early; then another one follows it.
    await this.#looks.now();
    await this.#looks.now();
  }

  /** Stops all background work. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTell();
    for (const stop of this.#stopFollowing) stop();
    this.#running?.run.close();
    this.#running = undefined;
  }

  async #lookOnce(): Promise<void> {
    const { records, policies, logger } = this.#parts;
    const found = readShadow(records);
    if (found.kind === "unreadable") {
      this.#end();
      if (this.#seen === found.kind) return;
      logger.error({ event: "shadowRefused" }, "The shadow policy in the store cannot be read.");
    }
    if (found.kind !== "found") {
      this.#seen = found.kind;
      this.#end();
      return;
    }
    const stored = found.value;
    if (stored.version === policies.current()?.version) {
      // It is active now, so there is nothing to compare.
      this.#end();
      this.#takeAway(stored);
      return;
    }
    if (this.#running?.stored.run === stored.run || this.#seen === stored.run) return;
    this.#seen = stored.run;
    const policy = await this.#parse(stored);
    // During parsing, the record may have been replaced or removed.
    const now = readShadow(records);
    if (this.#isClosed || now.kind !== "found" || now.value.run !== stored.run) return;
    if (policy !== undefined) this.#begin(stored, policy);
  }

  async #parse({ files, version }: StoredShadow): Promise<Policy | undefined> {
    const { parse, parser = parsePolicyInWorker, clock, logger } = this.#parts;
    const input = { kind: "texts", sources: files } as const;
    const parsing = await parser({ input, parse, version, clock });
    if (parsing.kind === "policy") return parsing.policy;
    logger.error(
      { event: "shadowRefused", version },
      "The shadow policy is invalid and cannot run.",
    );
    return undefined;
  }

  #begin(stored: StoredShadow, policy: Policy): void {
    this.#end();
    const { storeBudgetMs, openSpace, logger } = this.#parts;
    const run = new ShadowRun({
      ...this.#parts,
      policy,
      store: openSpace(`shadow:${stored.run}:`),
      sinceEpochMs: stored.appliedEpochMs,
      storeBudgetMs: Math.max(shadowBudgetMsMin, storeBudgetMs),
    });
    const sums: LedgerSums = new Map();
    this.#running = { stored, run, sums, unsent: undefined, hasBegun: false };
    const { version } = stored;
    logger.info({ event: "shadowBegan", version }, "A shadow policy is running.");
    void this.#tell();
  }

  #end(): void {
    const running = this.#running;
    if (running === undefined) return;
    running.run.close();
    this.#running = undefined;
    const { version } = running.stored;
    this.#parts.logger.info({ event: "shadowEnded", version }, "The shadow policy has ended.");
  }

  #takeAway({ recordVersion }: StoredShadow): void {
    const gone = { kind: "policy", id: shadowId, value: undefined, audit: undefined } as const;
    this.#parts.records.change({ ...gone, expectedVersion: recordVersion }).catch(() => {
      // The store is unreachable: the next replica that looks finds the record again.
    });
  }

  #scheduleTell(): Cancel {
    return this.#parts.clock.schedule(tellMs, () => {
      this.#tell().finally(() => {
        if (!this.#isClosed) this.#cancelTell = this.#scheduleTell();
      });
    });
  }

  /** Reports new counts to the ledger, or those that it has not confirmed. Never rejects. */
  async #tell(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    const { run } = running.stored;
    const isLookedAt = this.#lookedAtRun === run;
    if (running.unsent === undefined) {
      const counts = running.run.take();
      this.#addTotals(counts);
      // A replica that joins later must not restart a run that is over. The record is removed for
      // the same reason.
      const begins = !running.hasBegun;
      running.unsent = { run, counts: countsByName(counts), begins, isLookedAt };
    }
    const { unsent } = running;
    let sums: LedgerSums | undefined;
    try {
      sums = await this.#parts.ledger.add(unsent);
    } catch {
      // The store is unreachable: the same entry is sent again, and counts once.
      return;
    }
    if (unsent.isLookedAt && this.#lookedAtRun === run) this.#lookedAtRun = undefined;
    running.unsent = undefined;
    running.hasBegun = true;
    if (sums !== undefined) running.sums = sums;
    else if (this.#running === running) this.#expire(running);
  }

  #expire({ stored }: Running): void {
    const { version } = stored;
    this.#parts.logger.info(
      { event: "shadowExpired", version },
      "The shadow policy ends, because nobody has read its report for an hour.",
    );
    this.#end();
    this.#takeAway(stored);
  }

  #addTotals(counts: ShadowCounts | undefined): void {
    if (counts === undefined) return;
    this.totals.comparedCount += counts.comparedCount;
    this.totals.newlyDeniedCount += counts.newlyDeniedCount;
    this.totals.newlyAllowedCount += counts.newlyAllowedCount;
    this.totals.unseenCount += counts.unseenCount;
  }
}

/** Names in the ledger. Those of rules are JSON. */
const sumNames = { compared: "compared", unseen: "unseen" } as const;

/** Names of a rule's counts in the ledger. */
const ruleCounts = ["newlyDenied", "newlyAllowed", "same", "beganLive", "beganEmpty"] as const;

function countsByName(counts: ShadowCounts | undefined): LedgerSums {
  const named = new Map<string, number>();
  if (counts === undefined) return named;
  named.set(sumNames.compared, counts.comparedCount);
  named.set(sumNames.unseen, counts.unseenCount);
  for (const rule of counts.rules) {
    for (const what of ruleCounts) {
      const count = rule[`${what}Count`];
      if (count > 0) named.set(JSON.stringify([what, rule.domain, rule.label]), count);
    }
  }
  return named;
}

/** Returns the rules, those with the most differences first. */
function rulesOf(sums: LedgerSums): readonly ShadowRule[] {
  const rules = new Map<string, { -readonly [Name in keyof ShadowRule]: ShadowRule[Name] }>();
  for (const [name, count] of sums) {
    const [what, domain, label] = partsOf(name);
    if (domain === undefined || label === undefined) continue;
    const id = JSON.stringify([domain, label]);
    const rule = rules.get(id) ?? { domain, label, ...noDifference };
    rules.set(id, rule);
    for (const known of ruleCounts) if (what === known) rule[`${known}Count`] = count;
  }
  return [...rules.values()].sort((one, other) => differences(other) - differences(one));
}

function differences({ newlyDeniedCount, newlyAllowedCount }: ShadowRule): number {
  return newlyDeniedCount + newlyAllowedCount;
}

/** Parses a name in the ledger. Empty if the name is not a rule's, or not written by Headgate. */
function partsOf(name: string): readonly string[] {
  if (!name.startsWith("[")) return [];
  let parts: unknown;
  try {
    parts = JSON.parse(name);
  } catch {
    return [];
  }
  return Array.isArray(parts) ? parts.map(String) : [];
}
