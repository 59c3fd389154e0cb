import { type UsageCount, usageCountMax, usageCounts } from "../../core/budgets/usage.js";
import { usageFormats } from "../../core/usage/usage-forms.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import {
  bytes,
  duration,
  type FieldType,
  number,
  readBy,
  ruledText,
  text,
  whole,
  words,
} from "../text/form.js";
import { findNearestName } from "../text/nearest-name.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, inner, object, wordOr } from "../text/object.js";
import type { DurationBounds, NumberBounds } from "../text/quantities.js";
import { headerName } from "../text/service-texts.js";
import { keyRule, type TextRule } from "../text/text-rules.js";
import type { ModelSource, ServiceUsage, UsageSource } from "./budget-policy.js";
import { modelName } from "./model-pattern.js";

/** Bounds of the bytes of a request's body that may be read to decide on it. */
const requestBodyBounds: NumberBounds = { min: 1_024, max: 8 * 2 ** 20 };

/** Bounds of the maximum duration of a call. */
const callBounds: DurationBounds = { minMs: 1_000, maxMs: 86_400_000 };

/** Maximum number of steps of one path into a response. */
export const usagePathMax = 16;

/** Counts that responses report. Headgate measures the others itself. */
const reportedCounts: readonly UsageCount[] = usageCounts.filter((count) => {
  return count !== "responseBytes" && count !== "durationMs";
});

const header = field(headerName, "The header's name, in lower case.", { needs: "a header's name" });

const modelPath = object(
  { title: "a path of a model", docs: "The segment of the path that names the model." },
  {
    after: field(
      ruledText({
        charsMax: 128,
        forbidden: /[^\w.~-]/,
        expected: "a segment of the path, such as models",
      }),
      "The segment before it: `models` for `/v1beta/models/gemini-pro:generateContent`.",
      { needs: "a segment of the path, such as models" },
    ),
  },
);

const modelNames = ["header", "path", "fixed"] as const;
const modelExpected = "body, {header: x-model}, {path: {after: models}} or {fixed: gpt-4o}";

const modelMap = object(
  {
    title: "a model of a usage",
    docs: "Where a request names its model.",
    exclusive: [modelNames],
    needed: [modelNames],
  },
  {
    header: field(headerName, "A request header, in lower case."),
    path: field(inner(modelPath, "after: models"), "A segment of the request's path."),
    fixed: field(modelName, "The model of all calls."),
  },
  {
    data({ header: name, path, fixed }): ModelSource | undefined {
      if (name !== undefined) return { kind: "header", header: name };
      if (path?.after !== undefined) return { kind: "path", after: path.after };
      return fixed === undefined ? undefined : { kind: "fixed", model: fixed };
    },
    check: (block) => refuseNone(block, modelExpected),
  },
);

const declaredHeader = object(
  { title: "a declaredMax", docs: "A header with the maximum of output tokens." },
  { header },
);

/** Names of counts, each with its place in a response; `expected` describes them. */
function countMap<Place>(place: FieldType<Place>, expected: string) {
  type Counts = Readonly<Partial<Record<UsageCount, Place>>>;
  const names = new RegExp(`^(?:${reportedCounts.join("|")})$`);
  const form = { kind: "texts", key: names, value: place, max: reportedCounts.length } as const;
  return readBy<Counts>(form, (reader, at) => {
    const rows = reader.readTextMap(at, { title: "fields", expected });
    if (rows === undefined) return undefined;
    if (rows.length === 0) {
      const message = `${quoteText(at.name)} is empty`;
      return reader.report(at.key, { id: "HG125", message, expected });
    }
    const counts: { -readonly [Count in keyof Counts]: Counts[Count] } = {};
    for (const row of rows) {
      const count = countOf(reader, row);
      const value = place.read(reader, row);
      if (count !== undefined && value !== undefined) counts[count] = value;
    }
    return counts;
  });
}

function countOf(reader: NodeReader, row: Field): UsageCount | undefined {
  const count = reportedCounts.find((name) => name === row.name);
  if (count !== undefined) return count;
  return reader.report(row.key, {
    id: "HG133",
    message: `${quoteText(row.name)} is not a count that a response can report`,
    expected: reportedCounts.join(", "),
    suggestion: findNearestName(row.name, reportedCounts),
  });
}

const pathRule: TextRule = {
  charsMax: 256,
  forbidden: /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: "names joined by dots, such as usage.prompt_tokens",
};

const pathPattern = /^[^.]+(?:\.[^.]+)*$/;

/** A path of names, separated by dots. */
const jsonPath = readBy<readonly string[]>(text(pathRule, pathPattern), (reader, place) => {
  const written = reader.readText(place, pathRule);
  if (written === undefined) return undefined;
  const names = written.split(".");
  if (pathPattern.test(written) && names.length <= usagePathMax) return names;
  return reader.reportContent(place.value ?? place.key, {
    id: "HG250",
    message: `${quoteText(written)} is not a path`,
    expected: `${pathRule.expected}, at most ${usagePathMax}`,
  });
});

const pathsExpected = "paths by count, such as {outputTokens: usage.output}";
const headersExpected = "headers by count, such as {customUnits: x-gpu-seconds}";

const pathFields = countMap(jsonPath, pathsExpected);

const bodyNames = ["format", "fields"] as const;

const body = object(
  {
    title: "a body of a usage",
    docs: "How the response's body reports the usage.",
    exclusive: [bodyNames],
  },
  {
    format: field(
      words(...usageFormats.filter((format) => format !== "json")),
      "The form of responses, streamed or not. `auto` recognizes them.",
      { dependentDefault: "auto" },
    ),
    fields: field(
      pathFields,
      "Paths of counts, for JSON of any other form, streamed or not. Instead of `format`.",
    ),
  },
  {
    data({ format = "auto", fields }): UsageSource {
      if (fields === undefined) return { kind: "body", format, fields: {} };
      return { kind: "body", format: "json", fields };
    },
  },
);

const metadata = object(
  { title: "metadata of a usage", docs: "Dynamic metadata of another filter." },
  {
    namespace: field(ruledText(keyRule), "The filter's namespace.", {
      needs: "a namespace, such as envoy.ai_gateway",
    }),
    fields: field(pathFields, "Paths of counts.", { needs: pathsExpected }),
  },
  {
    data({ namespace, fields }): UsageSource | undefined {
      if (namespace === undefined || fields === undefined) return undefined;
      return { kind: "metadata", namespace, fields };
    },
  },
);

const headerCounts = countMap(headerName, headersExpected);

const sourceNames = ["body", "headers", "metadata"] as const;
const sourceExpected = "body, none, {body: ...}, {headers: ...} or {metadata: ...}";

const sourceMap = object(
  {
    title: "a source of usage",
    docs: "Where the usage of a call is reported.",
    exclusive: [sourceNames],
    needed: [sourceNames],
  },
  {
    body: field(inner(body), "In the response's body."),
    headers: field(headerCounts, "In response headers or trailers, by count."),
    metadata: field(inner(metadata, "namespace, fields"), "In dynamic metadata of another filter."),
  },
  {
    data({ body: read, headers, metadata: other }): UsageSource | undefined {
      return read ?? (headers && { kind: "headers", fields: headers }) ?? other;
    },
    check: (block) => refuseNone(block, sourceExpected),
  },
);

function refuseNone(block: Block, expected: string): void {
  if (!block.isEmpty) return;
  const message = "the map says no source";
  block.reader.report(block.fields.node, { id: "HG125", message, expected });
}

const requestBody = object(
  { title: "a requestBody", docs: "Bodies of requests that are read." },
  {
    maxBytes: field(
      bytes(requestBodyBounds),
      "The largest body. Larger ones are not read: the call has no model, and declares nothing.",
      { larger: "different", as: "requestBytesMax", default: 2 ** 20, writtenDefault: "1Mi" },
    ),
  },
);

const estimate = object(
  { title: "an estimate", docs: "What is reserved for a call that declares no maximum." },
  {
    quantile: field(
      number({ min: 0.5, max: 0.999 }),
      "The quantile of the earlier calls of the same account and model.",
      { larger: "stricter", default: 0.9 },
    ),
    initial: field(
      whole({ min: 1, max: usageCountMax }),
      "Before anything is learned: output tokens, or units of a budget that counts no tokens.",
      { larger: "stricter", default: 1_000 },
    ),
  },
);

const autoBody = { kind: "body", format: "auto", fields: {} } as const;

/** `usage` of a service. */
export const serviceUsage = object(
  { title: "a usage", docs: "How calls of the service are measured. {} applies the defaults." },
  {
    model: field(
      wordOr(["body"], inner(modelMap, modelExpected), modelExpected),
      "Where a request names its model. `body`: in `model` of a JSON body.",
      { isGenerated: true, default: "body" },
    ),
    declaredMax: field(
      wordOr(["body", "none"], inner(declaredHeader), "body, none or {header: x-max-tokens}"),
      "Where a request declares its maximum of output tokens, which is then reserved. Default: " +
        "`body` where the model is in the body, otherwise none.",
      { isGenerated: true },
    ),
    requestBody: field(inner(requestBody), "Bodies of requests that are read.", {
      isGenerated: true,
      default: requestBody.defaults,
    }),
    from: field(
      wordOr(["body", "none"], inner(sourceMap, sourceExpected), sourceExpected),
      "Where the usage is reported. `body`: in the response's body, in a form that Headgate " +
        "recognizes. `none`: calls, bytes and seconds count alone.",
      { isGenerated: true, as: "source", default: "body" },
    ),
    estimate: field(inner(estimate), "What is reserved for a call that declares no maximum.", {
      isGenerated: false,
      default: estimate.defaults,
    }),
    maxDuration: field(
      duration(callBounds),
      "The longest call. It is charged then with what is known of it.",
      { larger: "different", as: "callMsMax", default: 1_800_000 },
    ),
  },
  {
    data({ model, declaredMax, requestBody: read, source: from, ...rest }): ServiceUsage {
      const where: ModelSource = model === "body" ? { kind: "body" } : model;
      const declared = declaredMax ?? (where.kind === "body" ? "body" : "none");
      return {
        ...rest,
        ...read,
        model: where,
        source: from === "body" ? autoBody : from === "none" ? { kind: "none" } : from,
        declaredMax: declaredOf(declared),
      };
    },
    check(block, { model, declaredMax }) {
      if (model.kind === "body" || declaredMax?.kind === "body") return;
      if (block.field("requestBody") === undefined) return;
      const message = '"requestBody" has no effect, because nothing is read from bodies';
      const expected = "model: body, or declaredMax: body";
      block.report("requestBody", { id: "HG207", message, expected });
    },
  },
);

function declaredOf(
  read: "body" | "none" | typeof declaredHeader.defaults,
): ServiceUsage["declaredMax"] {
  if (read === "none") return undefined;
  if (read === "body") return { kind: "body" };
  return read.header === undefined ? undefined : { kind: "header", header: read.header };
}
