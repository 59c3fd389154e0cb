import { encodeBase64 } from "../../../core/base/base64.js";
import { assert } from "../../../core/base/errors.js";
import { quotaBucketKey, quotaClassKey } from "../../../core/quota/quota.js";
import { ConditionCompiler } from "../../../policy/cel/cel.js";
import type { CelExpression } from "../../../policy/cel/condition-expression.js";
import type { QuotaPart } from "../../../policy/quotas/quota-parts.js";
import type { QuotaPolicy, QuotaRate } from "../../../policy/quotas/quota-policy.js";
import type { TextMatch } from "../../../policy/services/descriptor-parts.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import { extension } from "../base/values.js";
import { refusedHeader } from "./local-replies.js";

/** The entries of a bucket id so far: texts, or their sources. */
type BucketEntries = Readonly<Record<string, TreeMap>>;

/**
 * Returns a matcher of `bucket_matchers`: the requests that a quota applies to, and the bucket of
 * each. A request that does not match passes and is not counted.
 *
 * Source: xds.type.matcher.v3.Matcher.
 *
 * @param hosts hosts whose requests it applies to. Undefined: all requests that reach the filter
 */
export function quotaMatcher(quota: QuotaPolicy, hosts: readonly string[] | undefined): TreeMap {
  const entries: BucketEntries = { [quotaBucketKey]: { string_value: quota.name } };
  const predicates = [
    ...(hosts === undefined ? [] : [hostPredicate(hosts)]),
    ...quota.match.map(headerPredicate),
    ...quota.bucket.flatMap((part) => (part.fallback === undefined ? presence(part) : [])),
    ...(quota.when === undefined ? [] : [conditionPredicate(quota.when)]),
  ];
  const whole = bucketOf(quota, quota.bucket, entries);
  const [first, ...others] = predicates;
  if (first === undefined) return { on_no_match: whole };
  const predicate = others.length === 0 ? first : { and_matcher: { predicate: predicates } };
  return { matcher_list: { matchers: [{ predicate, on_match: whole }] } };
}

/**
 * Returns the bucket of a request, part by part. A part with a fallback has two branches: with the
 * request's value and with the policy's. If Envoy does not find a value that it looks for, there is
 * no bucket, and the request would pass.
 *
 * Source: xds.type.matcher.v3.Matcher.OnMatch.
 */
function bucketOf(
  quota: QuotaPolicy,
  [part, ...rest]: readonly QuotaPart[],
  entries: BucketEntries,
): TreeMap {
  if (part === undefined) return classOf(quota, entries);
  const own = bucketOf(quota, rest, { ...entries, [part.key]: entryOf(part) });
  const [isThere] = presence(part);
  if (part.fallback === undefined || isThere === undefined) return own;
  const withFallback = { ...entries, [part.key]: { string_value: part.fallback } };
  return {
    matcher: {
      matcher_list: { matchers: [{ predicate: isThere, on_match: own }] },
      on_no_match: bucketOf(quota, rest, withFallback),
    },
  };
}

/** Adds the class. If a request has none of the classes, its bucket has no such entry. */
function classOf(quota: QuotaPolicy, entries: BucketEntries): TreeMap {
  const { classes } = quota;
  if (classes === undefined) return actionOf(quota, entries);
  const ways = Object.keys(classes.weights).map((name) => {
    const own = { ...entries, [quotaClassKey]: { string_value: name } };
    return [name, actionOf(quota, own)] as const;
  });
  return {
    matcher: {
      matcher_tree: {
        input: headerInput(classes.header),
        exact_match_map: { map: Object.fromEntries(ways) },
      },
      on_no_match: actionOf(quota, entries),
    },
  };
}

function entryOf(part: QuotaPart): TreeMap {
  return part.kind === "fixed" ? { string_value: part.value } : { custom_value: inputOf(part) };
}

/** Matches requests that have a value, and not the empty text, of which Envoy makes no entry. */
function presence(part: QuotaPart): readonly TreeMap[] {
  if (part.kind === "fixed" || part.kind === "remoteAddress") return [];
  return [predicateOf(inputOf(part), regex("(?s).+"))];
}

function inputOf(part: Exclude<QuotaPart, { readonly kind: "fixed" }>): TreeMap {
  switch (part.kind) {
    case "remoteAddress": {
      const type = "envoy.extensions.matching.common_inputs.network.v3.SourceIPInput";
      return extension("envoy.matching.inputs.source_ip", type);
    }
    case "header":
      return headerInput(part.header);
    case "query": {
      const type = "envoy.type.matcher.v3.HttpRequestQueryParamMatchInput";
      const fields = { query_param: part.parameter };
      return extension("envoy.matching.inputs.query_params", type, fields);
    }
  }
}

function headerInput(name: string): TreeMap {
  const type = "envoy.type.matcher.v3.HttpRequestHeaderMatchInput";
  return extension("envoy.matching.inputs.request_headers", type, { header_name: name });
}

function predicateOf(input: TreeMap, valueMatch: TreeMap): TreeMap {
  return { single_predicate: { input, value_match: valueMatch } };
}

/** Matches hosts as virtual hosts do: ignoring case and port. */
function hostPredicate(hosts: readonly string[]): TreeMap {
  const input = headerInput(":authority");
  const tests = hosts.flatMap((host) => [{ exact: host }, { prefix: `${host}:` }]);
  const predicates = tests.map((test) => predicateOf(input, { ...test, ignore_case: true }));
  return { or_matcher: { predicate: predicates } };
}

/** Source: xds.type.matcher.v3.StringMatcher. */
function headerPredicate({ name, test, text }: TextMatch): TreeMap {
  const input = headerInput(name);
  if (test === "present") return predicateOf(input, regex("(?s).*"));
  return predicateOf(input, test === "regex" ? regex(text) : { [test]: text });
}

function regex(pattern: string): TreeMap {
  return { safe_regex: { google_re2: {}, regex: pattern } };
}

/** Source: xds.type.matcher.v3.CelMatcher, with a parsed tree: Envoy does not parse its text. */
function conditionPredicate(when: string): TreeMap {
  const compiled = new ConditionCompiler().expression(when);
  assert(compiled.kind === "expression", "a policy's conditions were compiled when it was read");
  const input = "xds.type.matcher.v3.HttpAttributesCelMatchInput";
  const matcher = "xds.type.matcher.v3.CelMatcher";
  const parsed = { expr: expressionTree(compiled.expression) };
  return {
    single_predicate: {
      input: extension("envoy.matching.inputs.cel_data_input", input),
      custom_match: noted(
        when,
        extension("envoy.matching.matchers.cel_matcher", matcher, {
          expr_match: { cel_expr_parsed: parsed },
        }),
      ),
    },
  };
}

function expressionTree(expression: CelExpression): TreeMap {
  const { select_expr: select, call_expr: call, list_expr: list, ...rest } = expression;
  return {
    ...rest,
    select_expr: select && { ...select, operand: expressionTree(select.operand) },
    call_expr: call && {
      ...call,
      target: call.target && expressionTree(call.target),
      args: call.args.map(expressionTree),
    },
    list_expr: list && { elements: list.elements.map(expressionTree) },
  };
}

/**
 * Returns the settings of a bucket.
 *
 * Source: envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings.
 */
function actionOf(quota: QuotaPolicy, entries: BucketEntries): TreeMap {
  const type = "envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings";
  const { forSeconds, fallback } = quota.afterExpiry;
  return {
    action: extension(quota.name, type, {
      bucket_id_builder: { bucket_id_builder: entries },
      reporting_interval: "5s",
      no_assignment_behavior: { fallback_rate_limit: blanket(quota.beforeAssignment) },
      expired_assignment_behavior: {
        expired_assignment_behavior_timeout: `${forSeconds}s`,
        fallback_rate_limit:
          fallback.kind === "blanket" ? blanket(fallback.rule) : tokens(fallback.rate),
      },
      deny_response_settings: denial(quota),
    }),
  };
}

function blanket(rule: QuotaPolicy["beforeAssignment"]): TreeMap {
  return { blanket_rule: rule === "allow" ? "ALLOW_ALL" : "DENY_ALL" };
}

function tokens({ hits, periodSeconds, burst }: QuotaRate): TreeMap {
  return {
    token_bucket: {
      max_tokens: burst,
      tokens_per_fill: hits,
      fill_interval: `${periodSeconds}s`,
    },
  };
}

function denial({ deny }: QuotaPolicy): TreeMap {
  const { status, body, headers, grpcStatus } = deny;
  const added: readonly Tree[] = headers.map(({ name, value }) => ({
    header: { key: name, value },
    append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
  }));
  const mark = { header: refusedHeader, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" };
  return {
    http_status: { code: status },
    http_body: body === undefined ? undefined : noted(body, bytesText(body)),
    grpc_status: { code: grpcStatus },
    response_headers_to_add: [...added, mark],
  };
}

/** Encodes bytes for JSON: padded base64. */
function bytesText(text: string): string {
  const bare = encodeBase64(new TextEncoder().encode(text));
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, "=");
}
