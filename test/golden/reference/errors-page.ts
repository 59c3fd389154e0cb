import { exitCodeMeanings, exitCodes } from "../../../src/app/base/failure.js";
import { remedyOf } from "../../../src/app/store/store-remedies.js";
import { refusalCauses, refusalOf, refusalRows } from "../../../src/core/admission/refusal.js";
import { type ErrorCode, errorRows } from "../../../src/core/base/errors.js";
import { grpcStatuses } from "../../../src/core/base/grpc-status.js";
import { snakeCase } from "../../../src/core/base/text.js";
import { limitResponse } from "../../../src/core/limits/limit-headers.js";
import { statusRows } from "../../../src/rpc/grpc/status.js";
import { block, code, paragraphs, type ReferencePage, table } from "./markdown.js";

/** A status as the field writes it: `8 RESOURCE_EXHAUSTED`. */
function grpcStatus(status: number): string {
  const name = Object.entries(grpcStatuses).find(([, one]) => one === status)?.[0] ?? "";
  return `${status} ${snakeCase(name).toUpperCase()}`;
}

function exitCodeTable(): string {
  const names: readonly (keyof typeof exitCodes)[] = [
    "ok",
    "failure",
    "usage",
    "invalidPolicy",
    "stale",
    "unreachable",
  ];
  const rows = names.map((name) => [String(exitCodes[name]), exitCodeMeanings[name]]);
  return table(["code", "meaning"], rows);
}

interface Answer {
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly body?: string | undefined;
}

/** An answer as it is on the wire, with what Envoy makes of a status. */
function httpAnswer(status: string, { headers, body = "" }: Answer): string {
  const lines = headers.map(({ name, value }) => `${name}: ${value}`);
  return block([status, ...lines, "", body].join("\n"));
}

function rateLimitExample(): string {
  const limit = { hits: 50, burst: 50, unit: "second", unitMultiplier: 10 } as const;
  return httpAnswer(
    "HTTP/1.1 429 Too Many Requests",
    limitResponse(
      [
        {
          label: "plan_free.user",
          headers: "x-ratelimit",
          body: "problem+json",
          status: {
            isOver: true,
            currentLimit: { ...limit, name: "free-pace" },
            limitRemaining: 0,
            durationUntilResetUs: 3_000_000,
          },
        },
      ],
      { isDenied: true },
    ),
  );
}

function admissionExample(contentType: string | undefined): Answer {
  return refusalOf(
    { statusByCause: {} },
    {
      service: "orders",
      cause: "queueFull",
      request: { method: "GET", contentType },
      retrySeconds: 2,
    },
  );
}

function causeTable(): string {
  const rows = refusalCauses.map((cause) => {
    const { status, grpcStatus: grpc, reason } = refusalRows[cause];
    return [code(cause), String(status), grpcStatus(grpc), reason];
  });
  return table(["cause", "HTTP", "gRPC", "`x-headgate-reason`"], rows);
}

function isErrorCode(word: string): word is ErrorCode {
  return Object.hasOwn(errorRows, word);
}

function errorTable(): string {
  const rows = Object.entries(errorRows).map(([word, { meaning, transient }]) => {
    const known = isErrorCode(word) ? word : undefined;
    const statuses = known && statusRows[known];
    return [
      `<a id="${word.toLowerCase()}"></a>${code(word)}`,
      meaning,
      statuses === undefined ? "" : grpcStatus(statuses.grpc),
      statuses === undefined ? "" : String(statuses.http),
      transient ? "yes" : "no",
      (known && remedyOf(known)) ?? "",
    ];
  });
  const header = ["code", "meaning", "gRPC", "HTTP", "transient", "what to do"];
  return table(header, rows);
}

const rateLimitText = `\
Each decision of RateLimitService has the gRPC status OK. Its \`overall_code\` is \`OK\` or
\`OVER_LIMIT\`, for which Envoy answers 429. \`POST /json\` answers 200 or 429 with a
RateLimitResponse in JSON. A request with more hits than allowed for one request
(\`REQUEST_TOO_LARGE\`) is \`OVER_LIMIT\` over gRPC, because Envoy could let it pass after an
error.

The limit's \`headers\` and \`body\`, and [settings](settings.md#decisions), determine the
headers and the body of a denied response:

- \`x-ratelimit\`: \`x-ratelimit-limit\`, \`x-ratelimit-remaining\` and \`x-ratelimit-reset\` of
  the tightest limit.
- \`ietf\`: \`RateLimit\` and \`RateLimit-Policy\`, of every limit with this style.
- \`retry-after\`, in whole seconds, at least 1: with both styles, and if
  \`HEADGATE_RETRY_AFTER_HEADER\` is set.
- \`x-headgate-rule\` contains the rule, if \`tellRule.header\` allows it. Dynamic metadata
  contains it for Envoy's access log.
- \`body: problem+json\` adds a body in the format of RFC 9457. An example with \`x-ratelimit\`
  headers:`;

const admissionText = `\
Every refusal has \`retry-after\` in whole seconds, at least 1. It is the expected wait, if known,
plus a random part of up to 50 %, so that callers do not all return at the same time.
\`x-headgate-reason\` contains the reason. Over HTTP the body has the format of RFC 9457
(\`application/problem+json\`); a response to HEAD has no body. Over gRPC the reason is the
message, and the time is also in the details (\`RetryInfo\`) and in \`grpc-retry-pushback-ms\`.
Refusals never echo parts of the request.
To change the HTTP status of a cause, set \`admission.reject.status\`. 429 means that the caller or
its class has used its part, 503 that the service has no capacity left, and 504 that the remaining
time is too short.`;

const errorText = `\
A call that cannot be decided fails with one of these codes; logs and metrics
(\`headgate_failed_requests_total\`, \`headgate_store_failures_total\`) use the same
codes. After a failure of the store, the limit's \`on_store_failure\` determines the answer: the
call fails only with \`error\`, and then Envoy's \`failure_mode_deny\` decides. No answer has
gRPC status UNKNOWN, because Envoy lets such a request pass with any failure mode. Over HTTP the
body is \`{"code": ..., "message": ...}\`. \`SIGNAL_\` codes are those of polls in the
background and never answer a call. \`headgate help CODE\` prints the same as this table.`;

const httpRows = [
  [
    "`POST /json`",
    "200 or 429; 400, 413, 502, 503 or 504 with a code as above; 403 if it is disabled; 408 if " +
      "the body is not complete in time",
  ],
  ["`GET /healthcheck`", "200 `OK`, or 500 `NOT_SERVING` while stopping"],
  ["`GET /livez`", "200"],
  [
    "`GET /readyz`",
    "200 `ready` or `degraded`, with the reason; 503 while waiting for a policy or stopping",
  ],
  ["`GET /metrics`", "200, Prometheus text"],
  ["others", "404; 405 with `allow` for another method"],
];

/** Statuses, headers and bodies of refusals and errors; exit codes. */
export function errorsPage(): ReferencePage {
  const overHttp = httpAnswer("HTTP/1.1 429 Too Many Requests", admissionExample(undefined));
  const overGrpc = admissionExample("application/grpc");
  return {
    path: "errors.md",
    title: "Refusals, errors and exit codes",
    purpose: "This page lists the responses to refused callers, error codes, and exit codes.",
    body: paragraphs(
      "## Refused by a rate limit",
      rateLimitText,
      rateLimitExample(),
      "## Refused by admission",
      admissionText,
      causeTable(),
      "A request that found the queue full, over HTTP and over gRPC:",
      overHttp,
      block(
        [
          "grpc-status: 8",
          `grpc-message: ${overGrpc.body ?? ""}`,
          ...overGrpc.headers.map(({ name, value }) => `${name}: ${value}`),
        ].join("\n"),
      ),
      "## Refused by a quota",
      "Envoy sends the quota's [deny](policy/quotas.md#quotasdeny) response: 429 by default, " +
        "with `retry-after`.",
      "## Errors",
      errorText,
      errorTable(),
      "## The HTTP port",
      table(["path", "answer"], httpRows),
      "## Exit codes",
      exitCodeTable(),
    ),
  };
}
