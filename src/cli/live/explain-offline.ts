import { create } from "@bufbuild/protobuf";
import { systemClock } from "../../app/base/clock.js";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { isServiceError } from "../../core/base/errors.js";
import { defaultDefaults } from "../../core/limits/limit.js";
import { noOverrides } from "../../core/limits/override-table.js";
import { type LeftOutDescriptor, serviceQuery } from "../../decide/admission/service-query.js";
import { Explainer } from "../../decide/inspect/explain.js";
import type { RateLimitQuery } from "../../decide/rate-limit/query.js";
import {
  type ExplainRequest,
  type Explanation,
  ExplanationSchema,
  type HttpRequest,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { addressAttribute, pathHeader, type RequestFacts } from "../../policy/cel/request-facts.js";
import type { Policy } from "../../policy/policy.js";
import { quoteText, visibleText } from "../../policy/problems/problem.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { encodeExplanation } from "../../rpc/admin/messages.js";
import { CommandFailure } from "../terminal/command-failure.js";

/**
 * Explains a request by a policy that nothing runs with: all buckets are empty, and there are no
 * overrides.
 *
 * @throws CommandFailure
 */
export async function explainOffline(
  request: ExplainRequest["request"],
  policy: Policy,
): Promise<Explanation> {
  const { query, service, leftOut } = readQuestion(request, policy);
  const switches = {
    isShadow: false,
    isQuota: false,
    chargesDenied: false,
    defaults: defaultDefaults,
  };
  const { version: policyVersion } = policy;
  const nothing = { policyVersion, isDomainKnown: true, isDenied: false, descriptors: [] };
  try {
    const explained =
      query === undefined
        ? nothing
        : await new Explainer({ switches, digest: sha256 }).explain({
            query,
            policy,
            overrides: noOverrides,
            peek: async () => undefined,
            epochUs: systemClock.epochUs(),
          });
    const nearestDomain = explained.isDomainKnown
      ? undefined
      : findNearestName(query?.domain ?? "", [...policy.domains.keys()]);
    const source = { service, leftOut, nearestDomain };
    return create(ExplanationSchema, encodeExplanation(explained, source));
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    throw new CommandFailure(exitCodes.failure, visibleText(thrown.message));
  }
}

interface Question {
  readonly query: RateLimitQuery | undefined;
  readonly service: string;
  readonly leftOut: readonly LeftOutDescriptor[];
}

function readQuestion(request: ExplainRequest["request"], policy: Policy): Question {
  if (request.case === "http") return askService(request.value, policy);
  const { domain = "", descriptors = [] } = request.value ?? {};
  const query = {
    domain,
    descriptors: descriptors.map(({ entries, hits }) => {
      return { entries, hits: Math.max(1, Number(hits)), isRefund: false };
    }),
  };
  return { query, service: "", leftOut: [] };
}

function askService(request: HttpRequest, { services, serviceIndex }: Policy): Question {
  const { host } = request;
  const indexed = serviceIndex.at(host) ?? serviceIndex.named(host);
  if (indexed === undefined) {
    const nearest = findNearestName(
      host,
      services.flatMap(({ name, hosts }) => [name, ...hosts]),
    );
    const hint = nearest === undefined ? "" : `; did you mean ${visibleText(nearest)}?`;
    throw new CommandFailure(
      exitCodes.failure,
      `No service of the policy has the host ${quoteText(host)}${hint}`,
    );
  }
  const { service } = indexed;
  const asked = serviceQuery(service, factsOf(request));
  if (asked === undefined) {
    throw new CommandFailure(
      exitCodes.failure,
      `The service ${visibleText(service.name)} has no rate limits (rateLimit in the policy).`,
    );
  }
  return { ...asked, service: service.name };
}

function factsOf({ method, host, path, headers, remoteAddress }: HttpRequest): RequestFacts {
  return {
    headers: new Map([
      ...Object.entries(headers),
      [":method", method],
      [":authority", host],
      [pathHeader, path],
    ]),
    attributes: new Map(remoteAddress === "" ? [] : [[addressAttribute, remoteAddress]]),
  };
}
