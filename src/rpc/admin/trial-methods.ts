import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { PolicyService, ReplayOutcomeSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type LogReplay,
  type ReplayedPolicy,
  replayFormats,
  type TrialProblems,
} from "./admin-parts.js";
import { demandPart, demandRole } from "./call.js";
import { readFiles } from "./explain-method.js";
import { AdminFailure } from "./failures.js";
import { durationOf, timeOf, wideOf } from "./messages.js";
import { RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** The maximum size of the access log in one call, in bytes. */
export const replayedBytesMax = 4_194_304;

/** The methods that test a policy and replay an access log; they concern the whole policy. */
export function trialMethods({
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
      if (tests.length === 0)
        throw new AdminFailure("invalid", "tests: at least one test file is required");
      const report = await tester.test(files, tests);
      if (report === "textless") throw textless();
      if (report.kind === "problems") return problemsOf(report);
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
      return replay.kind === "problems" ? problemsOf(replay) : encodeReplay(replay);
    },
  };
}

function textless(): AdminFailure {
  return new AdminFailure(
    "refused",
    "the text of the active policy is not available on this replica; send the policy in `files`",
  );
}

function problemsOf({ problems, unreportedCount }: TrialProblems) {
  return { problems: problems.map((problem) => ({ ...problem })), unreportedCount };
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
    rules: replay.rules.map(({ domain, label, keys, ...counts }) => ({
      domain,
      label,
      activeCallCount: wideOf(counts.activeCallCount),
      activeOverCount: wideOf(counts.activeOverCount),
      candidateCallCount: wideOf(counts.candidateCallCount),
      candidateOverCount: wideOf(counts.candidateOverCount),
      keys: encodeCounted(keys),
    })),
  };
}

function encodeOutcome(outcome: ReplayedPolicy): MessageInitShape<typeof ReplayOutcomeSchema> {
  const { policyVersion, times, unknownParts, unaskedHosts } = outcome;
  return {
    policyVersion,
    callCount: wideOf(outcome.callCount),
    unaskedCount: wideOf(outcome.unaskedCount),
    deniedCount: wideOf(outcome.deniedCount),
    limitedThenCount: wideOf(outcome.limitedThenCount),
    limitedBothCount: wideOf(outcome.limitedBothCount),
    lateCount: wideOf(outcome.lateCount),
    unknownParts: encodeCounted(unknownParts),
    unaskedHosts: encodeCounted(unaskedHosts),
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
