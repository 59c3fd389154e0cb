import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { reasonCharsMax } from "../../core/base/audit-entry.js";
import type { PolicyService, ReplayOutcomeSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { problemRows } from "../../policy/problems/problem.js";
import type { FoundProblems } from "../../policy/problems/problem-log.js";
import {
  type LogReplay,
  type PolicyChangeOutcome,
  type ReplayedPolicy,
  replayFormats,
} from "./admin-parts.js";
import { actorOf, demandPart, demandRole } from "./call.js";
import { AdminFailure, notFound } from "./failures.js";
import { durationOf, encodePolicyVersion, timeOf, widened, wideOf } from "./messages.js";
import { conflict } from "./override-methods.js";
import { badToken, pageRule, pageToken, readPageToken } from "./pages.js";
import { explainedFilesMax, RequestReader, readFiles } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

const versionRule = { charsMax: 256 } as const;
const reasonRule = { charsMax: reasonCharsMax, isNeeded: true } as const;

/** Creates PolicyService. A policy concerns all domains, so it requires roles in all of them. */
export function policyService(parts: AdminServiceParts): ServiceImpl<typeof PolicyService> {
  return {
    getPolicy: (request, context) => {
      demandRole(context, "reader", undefined);
      const administration = demandPart(parts.policyAdministration);
      const reader = new RequestReader();
      const version = reader.text("version", request.version, versionRule);
      reader.end();
      const shadow = administration.shadow();
      const current = administration.current();
      const policy = version === "" ? current : administration.find(version);
      if (policy === undefined && version === "") {
        throw new AdminFailure("unavailable", "no policy is loaded yet");
      }
      if (policy === undefined) {
        const versions = administration.history().map((one) => one.version);
        throw notFound("version of the policy", version, versions);
      }
      return {
        policy: encodePolicyVersion(policy),
        ...(shadow === undefined ? {} : { shadow: encodePolicyVersion(shadow) }),
      };
    },
    listPolicies: (request, context) => {
      demandRole(context, "reader", undefined);
      const administration = demandPart(parts.policyAdministration);
      const reader = new RequestReader();
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      reader.end();
      const place = readPageToken(request.pageToken) ?? "0";
      if (!/^\d{1,9}$/.test(place)) throw badToken();
      const start = Number(place);
      const history = administration.history();
      const policies = history.slice(start, start + countMax);
      return {
        policies: policies.map((policy) => encodePolicyVersion({ ...policy, files: [] })),
        nextPageToken: start + countMax < history.length ? pageToken(String(start + countMax)) : "",
      };
    },
    validatePolicy: async (request, context) => {
      demandRole(context, "reader", undefined);
      const administration = demandPart(parts.policyAdministration);
      const files = readFiles("files", request.files);
      demandFiles(files.length);
      const review = await administration.review(files);
      return { ...encodeProblems(review), changes: [...review.changes] };
    },
    ...changeMethods(parts),
    getShadowReport: shadowMethod(parts),
    ...trialMethods(parts),
  };
}

function shadowMethod(
  parts: AdminServiceParts,
): ServiceImpl<typeof PolicyService>["getShadowReport"] {
  return (_request, context) => {
    demandRole(context, "reader", undefined);
    const report = demandPart(parts.policyAdministration).shadowReport();
    if (report === undefined) {
      throw new AdminFailure("notFound", "there is no shadow policy");
    }
    const { policyVersion, shadowVersion, sinceEpochMs, callCount, rules } = report;
    const { unseenCount = 0 } = report;
    return {
      policyVersion,
      shadowVersion,
      since: timeOf(sinceEpochMs),
      callCount: wideOf(callCount),
      unseenCallCount: wideOf(unseenCount),
      rules: rules.map(({ domain, label, ...counts }) => {
        return { domain, label, ...widened(counts) };
      }),
    };
  };
}

function changeMethods(
  parts: AdminServiceParts,
): Pick<ServiceImpl<typeof PolicyService>, "applyPolicy" | "enforcePolicy" | "rollBackPolicy"> {
  const read = (request: { readonly expectedVersion: string; readonly reason: string }) => {
    const reader = new RequestReader();
    const expectedVersion = reader.text("expected_version", request.expectedVersion, versionRule);
    const reason = reader.text("reason", request.reason, reasonRule);
    reader.end();
    return { expectedVersion, reason };
  };
  return {
    applyPolicy: async (request, context) => {
      demandRole(context, "operator", undefined);
      const administration = demandPart(parts.policyAdministration);
      const files = readFiles("files", request.files);
      demandFiles(files.length);
      const { dryRun: isDryRun, shadow: isShadow } = request;
      // A dry run changes nothing, so it needs no reason.
      const said = read(isDryRun ? { ...request, reason: request.reason || "dry run" } : request);
      const asked = { ...said, actor: actorOf(context), isDryRun, isShadow };
      const change = await administration.apply(files, asked);
      if (change.kind === "problems") return encodeProblems(change);
      const { policy, changes } = demandChange(change);
      return {
        changes: [...changes],
        ...(policy === undefined ? {} : { policy: encodePolicyVersion(policy) }),
      };
    },
    enforcePolicy: async (request, context) => {
      demandRole(context, "operator", undefined);
      const administration = demandPart(parts.policyAdministration);
      const reader = new RequestReader();
      const shadowVersion = reader.text("shadow_version", request.shadowVersion, versionRule);
      reader.end();
      const asked = { ...read(request), shadowVersion, actor: actorOf(context) };
      const { policy } = demandChange(await administration.enforce(asked));
      return policy === undefined ? {} : { policy: encodePolicyVersion(policy) };
    },
    rollBackPolicy: async (request, context) => {
      demandRole(context, "operator", undefined);
      const administration = demandPart(parts.policyAdministration);
      const reader = new RequestReader();
      const version = reader.text("version", request.version, versionRule);
      reader.end();
      const asked = { ...read(request), actor: actorOf(context) };
      const change = await administration.rollBack(version === "" ? undefined : version, asked);
      if (change.kind === "unknown") {
        throw notFound("version of the policy", version, change.versions);
      }
      const { policy } = demandChange(change);
      return policy === undefined ? {} : { policy: encodePolicyVersion(policy) };
    },
  };
}

function demandFiles(count: number): void {
  if (count > 0) return;
  throw new AdminFailure("invalid", `files: 1 to ${explainedFilesMax} are required`);
}

/** Returns what has changed, or throws why nothing has. */
function demandChange(
  change: PolicyChangeOutcome,
): Extract<PolicyChangeOutcome, { kind: "changed" }> {
  switch (change.kind) {
    case "changed":
      return change;
    case "conflict":
      throw conflict("policy", change.version);
    case "refused":
      throw new AdminFailure("refused", change.why);
    case "unknown":
      throw new AdminFailure("notFound", "unknown version of the policy");
    case "problems": {
      const [first] = change.problems;
      throw new AdminFailure(
        "refused",
        `the policy is invalid: ${first?.message ?? "it is empty"}`,
      );
    }
  }
}

/** The maximum size of the access log in one call, in bytes. */
export const replayedBytesMax = 4_194_304;

/** The methods that test a policy and replay an access log; they concern the whole policy. */
function trialMethods({
  trials,
}: Pick<AdminServiceParts, "trials">): Pick<
  ServiceImpl<typeof PolicyService>,
  "testPolicy" | "replayLog"
> {
  return {
    testPolicy: async (request, context) => {
      demandRole(context, "reader", undefined);
      const tester = demandPart(trials);
      const files = readFiles("files", request.files);
      const tests = readFiles("tests", request.tests);
      if (tests.length === 0) {
        throw new AdminFailure("invalid", "tests: at least one test file is required");
      }
      const report = await tester.test(files, tests);
      if (report === "textless") throw textless();
      if (report.kind === "problems") return encodeProblems(report);
      return {
        tests: report.tests.map(({ callCount, failures, ...test }) => {
          return { ...test, callCount: wideOf(callCount), failures: [...failures] };
        }),
        untestedRules: [...report.untestedRules],
      };
    },
    replayLog: async (request, context) => {
      demandRole(context, "reader", undefined);
      const replayer = demandPart(trials);
      const files = readFiles("files", request.files);
      const reader = new RequestReader();
      const { log: text } = request;
      const format = replayFormats.find((one) => one === (request.format || "auto"));
      if (text.length > replayedBytesMax) {
        reader.report("log", `must have at most ${replayedBytesMax} bytes`);
      }
      if (format === undefined) {
        reader.report("format", `must be one of ${replayFormats.join(", ")}`);
      }
      reader.end();
      const log = { text, format: format ?? "auto" };
      const replay = await replayer.replay(files, log);
      if (replay === "textless") throw textless();
      return replay.kind === "problems" ? encodeProblems(replay) : encodeReplay(replay);
    },
  };
}

function textless(): AdminFailure {
  return new AdminFailure(
    "refused",
    "the text of the active policy is not available on this replica; send the policy in `files`",
  );
}

function encodeProblems({ problems, unreportedCount }: FoundProblems) {
  const encoded = problems.map(({ id, file, line, column, message }) => {
    return { id, file, line, column, message, hint: problemRows[id].remedy };
  });
  return { problems: encoded, unreportedCount };
}

function encodeReplay(replay: LogReplay) {
  const { lineCount, unreadableCount, firstUnreadable = "", active, candidate } = replay;
  return {
    lineCount: wideOf(lineCount),
    unreadableCount: wideOf(unreadableCount),
    firstUnreadable,
    active: encodeOutcome(active),
    ...(candidate === undefined ? {} : { candidate: encodeOutcome(candidate) }),
    newlyDeniedCount: wideOf(replay.newlyDeniedCount),
    newlyAllowedCount: wideOf(replay.newlyAllowedCount),
    rules: replay.rules.map(({ domain, label, keys, ...counts }) => {
      return { domain, label, ...widened(counts), keys: encodeCounted(keys) };
    }),
  };
}

function encodeOutcome(outcome: ReplayedPolicy): MessageInitShape<typeof ReplayOutcomeSchema> {
  const { policyVersion, times, unknownParts, unmatchedHosts, ...counts } = outcome;
  return {
    policyVersion,
    ...widened(counts),
    unknownParts: encodeCounted(unknownParts),
    unmatchedHosts: encodeCounted(unmatchedHosts),
    ...(times === undefined
      ? {}
      : {
          start: timeOf(times.startUs / 1_000),
          step: durationOf(times.stepUs),
          calls: [...times.calls],
          denied: [...times.denied],
        }),
  };
}

function encodeCounted(counted: ReplayedPolicy["unknownParts"]) {
  return counted.map(({ text, count }) => ({ text, count: wideOf(count) }));
}
