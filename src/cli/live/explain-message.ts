import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  type ExplainRequest,
  type ExplainResponse,
  ExplainResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { toConnectError } from "../../rpc/admin/connect-errors.js";
import type { Plain } from "../../rpc/codec/plain-message.js";
import { adminCallFailure } from "../admin/admin-call-failure.js";
import { nobody, runAdmin } from "../admin/admin-command.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import type { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { drawExplanation } from "./explain-report.js";

interface ExplainedMessage {
  readonly command: Command;
  readonly context: CommandContext;
  readonly request: Plain<ExplainRequest>["request"];
  /** Files of another policy, which Headgate compares with its own. */
  readonly candidate: readonly string[];
  /** Undefined: a running Headgate is asked. */
  readonly byFiles: (() => Promise<Plain<ExplainResponse>>) | undefined;
}

/** Prints an explanation from a message: the answer of a Headgate, or output for programs. */
export function explainAsMessage({
  command,
  context,
  request,
  candidate,
  byFiles,
}: ExplainedMessage): Promise<void> {
  return runAdmin(command, context, async (call) => {
    const ask = async (): Promise<ExplainResponse> => {
      const { sources } = await readPolicyTexts(candidate);
      return call.client.limits.explain({ request, candidate: sources });
    };
    const answer =
      byFiles === undefined ? await ask() : create(ExplainResponseSchema, await byFiles());
    call.printer.print(ExplainResponseSchema, answer, drawExplanation);
  });
}

/** Converts a failure to the one that the admin API would report. */
export function explainFailure(thrown: unknown): CommandFailure {
  const { error, isBug } = toConnectError(thrown);
  return adminCallFailure(isBug ? thrown : error, nobody);
}
