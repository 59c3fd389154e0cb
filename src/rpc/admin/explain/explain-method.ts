import type { ServiceImpl } from "@connectrpc/connect";
import type { LimitService } from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { PolicyText } from "../../../policy/parse.js";
import type { Policy } from "../../../policy/policy.js";
import { callerOf } from "../call.js";
import { AdminFailure } from "../failures.js";
import { policyOf } from "../key-methods.js";
import { readFiles } from "../request-reader.js";
import type { AdminServiceParts } from "../service-parts.js";
import { type ExplainByParts, explainBy } from "./explain-request.js";

/** Dependencies of explanations. */
type ExplainParts = ExplainByParts & Pick<AdminServiceParts, "policies" | "readCandidate">;

/** The method that explains why the active policy, or a candidate, passes or refuses a request. */
export function explainMethod(
  parts: ExplainParts,
): Pick<ServiceImpl<typeof LimitService>, "explain"> {
  return {
    explain: async (request, context) => {
      const policy = policyOf(parts);
      const files = readFiles("candidate", request.candidate);
      const explaining = { request: request.request, caller: callerOf(context), active: policy };
      const current = await explainBy(parts, policy, explaining);
      if (files.length === 0) return { current };
      const candidate = await readCandidate(parts, files);
      return { current, candidate: await explainBy(parts, candidate, explaining) };
    },
  };
}

async function readCandidate(parts: ExplainParts, files: readonly PolicyText[]): Promise<Policy> {
  const read = await parts.readCandidate(files);
  switch (read.kind) {
    case "policy":
      return read.policy;
    case "problems": {
      const more =
        read.count > 1 ? ` (and ${read.count - 1} more; ValidatePolicy returns all)` : "";
      throw new AdminFailure("invalid", `candidate: ${read.first}${more}`);
    }
    case "failed":
      throw new AdminFailure("unavailable", `candidate: ${read.message}`);
  }
}
