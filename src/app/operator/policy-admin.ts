import { type AuditActor, auditEntry } from "../../core/base/audit-entry.js";
import type { Clock, Random } from "../../core/base/clock.js";
import type { JsonObject } from "../../core/base/json.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { PolicyText } from "../../policy/parse.js";
import type {
  ChangeRequest,
  PolicyAdministration,
  PolicyChangeOutcome,
  PolicyReview,
  PolicyVersion,
  ShadowReport,
} from "../../rpc/admin/admin-parts.js";
import { policyVersion } from "../config/policy-files.js";
import type { PolicyShadow } from "../decisions/policy-shadow.js";
import type { OpenPolicies } from "../policy/policies.js";
import {
  policyRecordBytesMax,
  policyToJson,
  recordBytes,
  type StoredPolicy,
} from "../policy/policy-admin-records.js";
import type { ParsesPolicies } from "../policy/policy-parsing.js";
import { PolicyReviewer } from "./policy-admin-review.js";
import { PolicyRepository, type RepositoryOutcome } from "./policy-repository.js";

interface PolicyAdminParts {
  readonly policies: OpenPolicies;
  readonly records: SharedRecords;
  readonly shadow: Pick<PolicyShadow, "report" | "refresh">;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  readonly clock: Clock;
  readonly random: Random;
  /** Identifier of this replica in the audit log. */
  readonly replica: string;
}

/** A request for a change. */
type Asked = ChangeRequest & { readonly expectedVersion: string };

/**
 * Changes of the policy by operators. An applied policy is stored in shared records, and every
 * replica that follows them activates it. Concurrent changes do not overwrite each other: each
 * names the version that it replaces, and the second one gets a conflict.
 */
export class PolicyAdmin implements PolicyAdministration {
  readonly #parts: PolicyAdminParts;
  readonly #repository: PolicyRepository;
  readonly #reviewer: PolicyReviewer;

  constructor(parts: PolicyAdminParts) {
    this.#parts = parts;
    this.#repository = new PolicyRepository(parts.records);
    this.#reviewer = new PolicyReviewer(parts);
  }

  current(): PolicyVersion | undefined {
    const { policies } = this.#parts;
    const { version, loadedEpochUs } = policies.feed.status;
    if (version === undefined) return undefined;
    const stored = this.#repository.history().find((one) => one.version === version);
    if (policies.origin === "store" && stored !== undefined) return stored;
    return {
      version,
      appliedEpochMs: loadedEpochUs && Math.floor(loadedEpochUs / 1_000),
      author: "",
      reason: "",
      files: policies.texts(),
      source: policies.origin === "xds" ? "xds" : "files",
    };
  }

  shadow(): PolicyVersion | undefined {
    return this.#repository.shadow();
  }

  find(version: string): PolicyVersion | undefined {
    const current = this.current();
    if (current?.version === version) return current;
    return this.#repository.history().find((one) => one.version === version);
  }

  history(): readonly PolicyVersion[] {
    const stored = this.#repository.history();
    const current = this.current();
    const isKept = current === undefined || stored.some((one) => one.version === current.version);
    const all = isKept ? stored : [current, ...stored];
    return all.map((one) => ({ ...one, files: [] }));
  }

  async review(files: readonly PolicyText[]): Promise<PolicyReview> {
    const reviewed = await this.#reviewer.review(files);
    if (reviewed.kind === "problems") return { ...reviewed, changes: [] };
    return { problems: [], unreportedCount: 0, changes: reviewed.changes };
  }

  async apply(
    files: readonly PolicyText[],
    request: Asked & { readonly isShadow: boolean; readonly isDryRun: boolean },
  ): Promise<PolicyChangeOutcome> {
    const { isShadow, isDryRun } = request;
    const refusal = isShadow || isDryRun ? undefined : this.#refusal();
    if (refusal !== undefined) return refusal;
    const reviewed = await this.#reviewer.review(files);
    if (reviewed.kind === "problems") return reviewed;
    // The version now: parsing took time.
    const current = this.current();
    if (request.expectedVersion !== (current?.version ?? "")) return conflictWith(current);
    const { changes } = reviewed;
    if (isDryRun) return { kind: "changed", policy: undefined, changes };
    const policy = this.#made(files, request);
    // The active policy may be lost in the store. Applying it again repairs that.
    const isKept = policy.version === current?.version && this.#isKept(current);
    if (isKept || (isShadow && policy.version === current?.version)) {
      if (isShadow) return { kind: "refused", why: "This policy is already active." };
      return { kind: "changed", policy: current, changes };
    }
    if (recordBytes(policyToJson(policy)) > policyRecordBytesMax) {
      const why = `A policy in the store has at most ${policyRecordBytesMax} bytes.`;
      return { kind: "refused", why };
    }
    const change = isShadow
      ? await this.#putShadow(policy, request)
      : await this.#put(policy, { ...request, action: "ApplyPolicy" });
    return change.kind === "changed" ? { ...change, changes } : change;
  }

  async enforce({
    shadowVersion,
    ...request
  }: Asked & { readonly shadowVersion: string }): Promise<PolicyChangeOutcome> {
    const refusal = this.#refusal();
    if (refusal !== undefined) return refusal;
    const shadow = this.#repository.shadow();
    if (shadow === undefined) return noShadow;
    // The caller has reviewed the differences of that version.
    if (shadowVersion !== "" && shadowVersion !== shadow.version) return conflictWith(shadow);
    const current = this.current();
    if (request.expectedVersion !== (current?.version ?? "")) return conflictWith(current);
    const reviewed = await this.#reviewer.review(shadow.files);
    if (reviewed.kind === "problems") return reviewed;
    const policy = this.#made(shadow.files, request);
    const change = await this.#put(policy, { ...request, action: "EnforcePolicy" });
    if (change.kind !== "changed") return change;
    // If this process ends here, the active policy remains as the shadow, and replicas remove it.
    await this.#repository.endShadow(shadow, undefined);
    await this.#parts.shadow.refresh();
    return change;
  }

  async rollBack(version: string | undefined, request: Asked): Promise<PolicyChangeOutcome> {
    const current = this.current();
    if (request.expectedVersion !== (current?.version ?? "")) return conflictWith(current);
    const shadow = this.#repository.shadow();
    if (version === undefined && shadow !== undefined) {
      const audit = this.#audit(request, {
        action: "RollBackPolicy",
        before: summaryOf(shadow),
        after: undefined,
      });
      const outcome = await this.#repository.endShadow(shadow, audit);
      if (outcome !== "changed") return this.#failed(outcome);
      await this.#parts.shadow.refresh();
      return { kind: "changed", policy: current, changes: [] };
    }
    const refusal = this.#refusal();
    if (refusal !== undefined) return refusal;
    const history = this.#repository.history();
    const earlier = history.filter((one) => one.version !== current?.version);
    const wanted =
      version === undefined
        ? policyBefore(history)
        : earlier.find((one) => one.version === version);
    if (wanted === undefined) {
      if (version === undefined) return { kind: "refused", why: "There is no earlier policy." };
      return { kind: "unknown", versions: [...new Set(earlier.map((one) => one.version))] };
    }
    // A policy that was valid once may be invalid for a later version of this program.
    const reviewed = await this.#reviewer.review(wanted.files);
    if (reviewed.kind === "problems") return reviewed;
    const { restoredEpochMs = wanted.appliedEpochMs } = wanted;
    const policy = { ...this.#made(wanted.files, request), restoredEpochMs };
    return this.#put(policy, { ...request, action: "RollBackPolicy" });
  }

  shadowReport(): ShadowReport | undefined {
    return this.#parts.shadow.report();
  }

  /** Returns the reason why no policy can be activated here. Undefined: one can. */
  #refusal(): Extract<PolicyChangeOutcome, { kind: "refused" }> | undefined {
    const { origin } = this.#parts.policies;
    if (origin === "store") return undefined;
    const place = origin === "xds" ? "the control plane" : "its files";
    const why =
      `The policy comes from ${place}: change it there, or start with ` +
      "HEADGATE_POLICY_SOURCE=store. You can run it as the shadow policy.";
    return { kind: "refused", why };
  }

  /** Whether the active policy still exists in its source. */
  #isKept({ source, version, files }: PolicyVersion): boolean {
    return (source === "files" && files.length > 0) || this.#repository.isCurrent(version);
  }

  #made(files: readonly PolicyText[], { actor, reason }: ChangeRequest): StoredPolicy {
    const appliedEpochMs = Math.floor(this.#parts.clock.epochUs() / 1_000);
    const version = policyVersion(files);
    return { version, appliedEpochMs, author: actor.name, reason, files, source: "admin" };
  }

  /** Makes a policy the active one. When it resolves, the policy is active here, too. */
  async #put(
    policy: StoredPolicy,
    request: Asked & { readonly action: string },
  ): Promise<PolicyChangeOutcome> {
    const current = this.current();
    const isFound = current !== undefined && current.files.length > 0;
    const { appliedEpochMs = policy.appliedEpochMs } = current ?? {};
    const outcome = await this.#repository.put(policy, {
      // Keeps the policy that a new fleet began with, so that operators can return to it.
      first: isFound ? { ...current, appliedEpochMs } : undefined,
      audit: this.#audit(request, {
        action: request.action,
        before: current && summaryOf(current),
        after: summaryOf(policy),
      }),
    });
    if (outcome !== "changed") return this.#failed(outcome);
    await this.#parts.policies.refresh?.();
    return { kind: "changed", policy, changes: [] };
  }

  async #putShadow(policy: StoredPolicy, request: Asked): Promise<PolicyChangeOutcome> {
    const before = this.#repository.shadow();
    const outcome = await this.#repository.putShadow(policy, {
      run: this.#parts.random.id(),
      audit: this.#audit(request, {
        action: "ApplyPolicy",
        before: before && summaryOf(before),
        after: { ...summaryOf(policy), shadow: true },
      }),
    });
    if (outcome !== "changed") return this.#failed(outcome);
    await this.#parts.shadow.refresh();
    return { kind: "changed", policy, changes: [] };
  }

  #failed(outcome: Exclude<RepositoryOutcome, "changed">): PolicyChangeOutcome {
    if (outcome === "conflict") return conflictWith(this.current());
    return { kind: "refused", why: "The store keeps the maximum number of policies." };
  }

  #audit(
    { actor, reason }: { readonly actor: AuditActor; readonly reason: string },
    facts: {
      readonly action: string;
      readonly before: JsonObject | undefined;
      readonly after: JsonObject | undefined;
    },
  ): JsonObject {
    const { replica } = this.#parts;
    return auditEntry({ ...facts, actor, reason, subject: "policy", domain: undefined, replica });
  }
}

const noShadow: PolicyChangeOutcome = {
  kind: "refused",
  why: "There is no shadow policy.",
};

function conflictWith(current: Pick<PolicyVersion, "version"> | undefined): PolicyChangeOutcome {
  return { kind: "conflict", version: current?.version ?? "" };
}

/** Returns the audit log's summary of a policy, without its texts: the records keep them. */
function summaryOf({ version, author, source, files }: PolicyVersion): JsonObject {
  return { version, author, source, files: files.map(({ file }) => file) };
}

/** Returns the policy before the active one or, if that was restored, before its original entry. */
function policyBefore(history: readonly StoredPolicy[]): StoredPolicy | undefined {
  const [current] = history;
  if (current === undefined) return undefined;
  const { version, restoredEpochMs } = current;
  // The oldest one: others with the same time are copies of it.
  const place = history.findLastIndex((one) => {
    if (restoredEpochMs === undefined) return one === current;
    return one.version === version && one.appliedEpochMs === restoredEpochMs;
  });
  if (place === -1) return undefined;
  return history.slice(place + 1).find((one) => one.version !== version);
}
