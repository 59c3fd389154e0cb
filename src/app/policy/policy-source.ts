import type { Clock } from "../../core/base/clock.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { ParseOptions } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import type { Logger } from "../base/logger.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import { policyVersion } from "../config/policy-files.js";
import {
  ActivePolicy,
  type PolicyFeed,
  type PolicyRefusal,
  type PolicyStatus,
} from "./active-policy.js";
import { readCurrent, type StoredPolicy } from "./policy-admin-records.js";
import { type ParsesPolicies, parsePolicyInWorker } from "./policy-parsing.js";

interface StoredPoliciesParts {
  readonly records: SharedRecords;
  /** The policy that is active until a policy is applied. */
  readonly first: PolicyFeed;
  readonly parse: ParseOptions;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Maximum time for which the start waits for the store's policy, in milliseconds. */
const startWaitMsMax = 2_000;

/**
 * Keeps the active policy from shared records: a policy that an operator applies to one replica
 * becomes active on all replicas. An invalid record changes only the log, a counter and the status,
 * until a valid one comes. Until there is one, the first policy applies.
 */
export class StoredPolicies implements PolicyFeed {
  readonly #parts: StoredPoliciesParts;
  readonly #active: ActivePolicy;
  readonly #listeners = new Set<() => void>();
  readonly #stopFollowing: readonly (() => void)[];
  readonly #looks = new SerializedPoll(() => this.#lookOnce());
  readonly #known: Promise<void>;
  #isKnown = false;
  /** Content of the last record that was looked at. */
  #seen: string | undefined;
  #isClosed = false;

  constructor(parts: StoredPoliciesParts) {
    this.#parts = parts;
    this.#active = new ActivePolicy(parts);
    const tell = (): void => {
      for (const listener of [...this.#listeners]) listener();
    };
    this.#stopFollowing = [
      this.#active.onLoaded(tell),
      parts.first.onLoaded(() => {
        if (!this.isStored) tell();
      }),
      parts.records.onChange((kind) => {
        if (kind === "policy") this.#looks.want();
      }),
    ];
    this.#known = parts.records.known().then(async () => {
      await this.refresh();
      this.#isKnown = true;
    });
  }

  /** Whether the store has reported the active policy, and that policy was looked at. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Whether the active policy comes from the store. */
  get isStored(): boolean {
    return this.#active.current() !== undefined;
  }

  current(): Policy | undefined {
    return this.#active.current() ?? this.#parts.first.current();
  }

  get status(): PolicyStatus {
    const stored = this.#active.status;
    const first = this.#parts.first.status;
    const { lastProblem } = stored;
    return {
      ...(this.isStored ? stored : first),
      ...(lastProblem === undefined ? {} : { lastProblem }),
      loadedCount: stored.loadedCount + first.loadedCount,
      refusedCount: stored.refusedCount + first.refusedCount,
    };
  }

  onLoaded(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Takes the policy in the store if the store reports it in time. Otherwise it follows later. */
  async begin(): Promise<void> {
    const { records, clock, logger } = this.#parts;
    let cancel = (): void => {};
    const isKnown = await Promise.race([
      records.known().then(() => true),
      new Promise<false>((resolve) => {
        cancel = clock.schedule(startWaitMsMax, () => resolve(false));
      }),
    ]);
    cancel();
    if (isKnown) await this.#known;
    else {
      logger.warn(
        { event: "storedPolicyUnknown", version: this.current()?.version },
        "The store does not answer which policy is active. Until then the policy " +
          "of the files is active, and limits answer with their on_store_failure.",
      );
    }
  }

  /** Resolves when the last policy known from the store now is active or refused. */
  async refresh(): Promise<void> {
    // The first look may have begun too early; then another one follows it.
    await this.#looks.now();
    await this.#looks.now();
  }

  /** Stops following changes. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stopFollowing) stop();
    this.#listeners.clear();
  }

  async #lookOnce(): Promise<void> {
    const found = readCurrent(this.#parts.records);
    const seen = found.kind === "found" ? `found ${found.value.version}` : found.kind;
    if (seen === this.#seen || this.#isClosed) return;
    this.#seen = seen;
    if (found.kind === "none") {
      if (this.isStored) this.#refuse("unreadable", "the active policy is missing in the store");
    } else if (found.kind === "unreadable") {
      this.#refuse("unreadable", "this version cannot read the policy in the store");
    } else if (found.value.version === this.#active.current()?.version) {
      this.#active.confirm();
    } else {
      await this.#take(found.value);
    }
  }

  async #take({ files, version }: StoredPolicy): Promise<void> {
    if (policyVersion(files) !== version) {
      this.#refuse("invalid", "the policy in the store does not match its version");
      return;
    }
    const { parse, parser = parsePolicyInWorker, clock } = this.#parts;
    const input = { kind: "texts", sources: files } as const;
    const parsing = await parser({ input, parse, version, clock });
    if (this.#isClosed) return;
    const change = this.#active.take(parsing, { source: "store" });
    if (change.kind === "refused") this.#logRefusal(change);
    // No thread or no time: it is tried again with the next change of any policy.
    if (parsing.kind === "failed") this.#seen = undefined;
  }

  #refuse(cause: PolicyRefusal["cause"], words: string): void {
    this.#logRefusal(this.#active.refuse({ cause, report: words, summary: words }));
  }

  /** Logs a refusal, unless the active policy comes from the store and has logged it itself. */
  #logRefusal({ cause, report }: PolicyRefusal): void {
    if (this.isStored) return;
    this.#parts.logger.error(
      { event: "policyRefused", cause, keptVersion: this.current()?.version },
      `The policy of the store is invalid; that of the files stays active:\n${report}`,
    );
  }
}
