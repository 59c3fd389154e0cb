import { keysOf } from "../base/key-of.js";
import type { UsageCount } from "../budgets/usage.js";
import { createJsonTree, type JsonNode, type WantedPath } from "./json-paths.js";

/** The provider whose format a response body has. `json`: counts at paths of the policy. */
export const usageFormats = ["auto", "openai", "anthropic", "gemini", "bedrock", "json"] as const;

/** One of `usageFormats`. */
export type UsageFormat = (typeof usageFormats)[number];

/** A count as providers report it. `ReportedUsage` makes a `Usage` of them. */
export type ReportedCount =
  /** All input tokens, including those of caches. */
  | "allInput"
  /** Input tokens, including those of caches only if reported as their details. */
  | "input"
  /** Input tokens of tools, which are not included in the others. */
  | "toolInput"
  /** Tokens from a cache, as a detail of the input tokens. */
  | "cachedDetail"
  /** Tokens from a cache, in addition to `input`. */
  | "cached"
  /** Tokens that were written to a cache, as a detail of the input tokens. */
  | "writtenDetail"
  /** Tokens that were written to a cache, in addition to `input`. */
  | "written"
  | "output"
  /** Reasoning tokens, in addition to `output`. */
  | "thoughts"
  /** Reasoning tokens, as a detail of `output`. */
  | "reasoning"
  /** All tokens of a call that also reports `allInput`. */
  | "total";

/** A value that is read from a response body. */
export type UsageSlot =
  | ReportedCount
  | UsageCount
  | "model"
  /** Text that the model wrote. Its size is an estimate of output tokens that are not reported. */
  | "outputText"
  /** A document of the same form in base64. */
  | "base64";

/** Where to find values in a response body. Created once for each service. */
export interface UsageForm {
  readonly tree: JsonNode<UsageSlot>;
  /** For messages of `application/vnd.amazon.eventstream`. */
  readonly frameTree: JsonNode<UsageSlot>;
  /** Whether Bedrock's response headers count. */
  readonly hasBedrockHeaders: boolean;
}

/**
 * @param format the provider whose format it is
 * @param fields for `json`: paths of the counts; `*` is any item of a list, of
 *   which the last one counts. The other formats ignore it
 */
export function createUsageForm({
  format,
  fields,
}: {
  readonly format: UsageFormat;
  readonly fields: Readonly<Partial<Record<UsageCount, readonly string[]>>>;
}): UsageForm {
  const paths =
    format === "json"
      ? keysOf(fields).map((slot) => pathOf(slot, fields[slot] ?? []))
      : tablesOf(format).flatMap(pathsOf);
  const bytesPath = { steps: ["bytes"], leaf: { kind: "pieces", slot: "base64" } } as const;
  return {
    tree: createJsonTree(paths),
    frameTree: createJsonTree([...paths, bytesPath]),
    hasBedrockHeaders: format === "bedrock" || format === "auto",
  };
}

type FormTable = Readonly<Partial<Record<UsageSlot, readonly string[]>>>;

/**
 * Chat Completions, Completions, Embeddings and Responses of OpenAI, and of the many compatible
 * servers. `usage` is in the response, in the last chunk, in each chunk (vLLM's
 * `continuous_usage_stats`), in `response` of an event, or in `x_groq`.
 *
 * Details of `prompt_tokens` and of `input_tokens` are parts of them; OpenRouter adds
 * `cache_write_tokens`, and DeepSeek has `prompt_cache_hit_tokens`. `total_tokens` is read because
 * xAI leaves reasoning out of `completion_tokens`, but not out of the total.
 */
const openai: FormTable = {
  model: ["model", "response.model"],
  allInput: ["usage.prompt_tokens", "x_groq.usage.prompt_tokens"],
  input: ["usage.input_tokens", "response.usage.input_tokens"],
  cachedDetail: [
    "usage.prompt_tokens_details.cached_tokens",
    "usage.prompt_cache_hit_tokens",
    "usage.input_tokens_details.cached_tokens",
    "response.usage.input_tokens_details.cached_tokens",
  ],
  writtenDetail: [
    "usage.prompt_tokens_details.cache_write_tokens",
    "usage.input_tokens_details.cache_write_tokens",
    "response.usage.input_tokens_details.cache_write_tokens",
  ],
  output: [
    "usage.completion_tokens",
    "x_groq.usage.completion_tokens",
    "usage.output_tokens",
    "response.usage.output_tokens",
  ],
  reasoning: [
    "usage.completion_tokens_details.reasoning_tokens",
    "usage.output_tokens_details.reasoning_tokens",
    "response.usage.output_tokens_details.reasoning_tokens",
  ],
  total: ["usage.total_tokens", "x_groq.usage.total_tokens"],
  outputText: [
    ...["content", "reasoning_content", "reasoning", "refusal"].flatMap(inChoices),
    ...inChoices("tool_calls.*.function.arguments"),
    "choices.*.text",
    "delta",
    "output.*.content.*.text",
    "output.*.arguments",
  ],
};

function inChoices(path: string): readonly string[] {
  return [`choices.*.delta.${path}`, `choices.*.message.${path}`];
}

/**
 * Messages of Anthropic. `message_start` has the input and the first output tokens,
 * `message_delta` has cumulative counts. `input_tokens` does not include those of the cache.
 */
const anthropic: FormTable = {
  model: ["model", "message.model"],
  input: ["usage.input_tokens", "message.usage.input_tokens"],
  cached: ["usage.cache_read_input_tokens", "message.usage.cache_read_input_tokens"],
  written: ["usage.cache_creation_input_tokens", "message.usage.cache_creation_input_tokens"],
  output: ["usage.output_tokens", "message.usage.output_tokens"],
  reasoning: ["usage.output_tokens_details.thinking_tokens"],
  outputText: [
    "delta.text",
    "delta.thinking",
    "delta.partial_json",
    "content.*.text",
    "content.*.thinking",
  ],
};

/**
 * `generateContent` and `streamGenerateContent` of Gemini, as events or as a list of documents.
 * `promptTokenCount` includes the cached part. Thoughts and prompts of tools are separate.
 */
const gemini: FormTable = {
  model: ["modelVersion"],
  allInput: ["usageMetadata.promptTokenCount"],
  toolInput: ["usageMetadata.toolUsePromptTokenCount"],
  cachedDetail: ["usageMetadata.cachedContentTokenCount"],
  output: ["usageMetadata.candidatesTokenCount"],
  thoughts: ["usageMetadata.thoughtsTokenCount"],
  outputText: ["candidates.*.content.parts.*.text"],
};

/**
 * Bedrock: Converse and ConverseStream, Amazon's and Meta's models through InvokeModel, and the
 * metrics that end each stream of InvokeModelWithResponseStream. `inputTokens` does not include
 * those of the cache. Other models through InvokeModel have the formats of their providers.
 */
const bedrock: FormTable = {
  input: [
    "usage.inputTokens",
    "metadata.usage.inputTokens",
    "amazon-bedrock-invocationMetrics.inputTokenCount",
    "inputTextTokenCount",
    "prompt_token_count",
  ],
  cached: [
    "usage.cacheReadInputTokens",
    "usage.cacheReadInputTokenCount",
    "metadata.usage.cacheReadInputTokens",
    "metadata.usage.cacheReadInputTokenCount",
    "amazon-bedrock-invocationMetrics.cacheReadInputTokenCount",
  ],
  written: [
    "usage.cacheWriteInputTokens",
    "usage.cacheWriteInputTokenCount",
    "metadata.usage.cacheWriteInputTokens",
    "metadata.usage.cacheWriteInputTokenCount",
    "amazon-bedrock-invocationMetrics.cacheWriteInputTokenCount",
  ],
  output: [
    "usage.outputTokens",
    "metadata.usage.outputTokens",
    "amazon-bedrock-invocationMetrics.outputTokenCount",
    "results.*.tokenCount",
    "totalOutputTextTokenCount",
    "generation_token_count",
  ],
  outputText: [
    "delta.text",
    "delta.toolUse.input",
    "delta.reasoningContent.text",
    "contentBlockDelta.delta.text",
    "contentBlockDelta.delta.toolUse.input",
    "output.message.content.*.text",
    "outputText",
    "results.*.outputText",
    "generation",
    "outputs.*.text",
  ],
};

function tablesOf(format: Exclude<UsageFormat, "json">): readonly FormTable[] {
  switch (format) {
    case "openai":
      return [openai];
    case "anthropic":
      return [anthropic];
    case "gemini":
      return [gemini];
    case "bedrock":
      return [openai, anthropic, bedrock];
    case "auto":
      return [openai, anthropic, gemini, bedrock];
  }
}

function pathsOf(table: FormTable): readonly WantedPath<UsageSlot>[] {
  return keysOf(table).flatMap((slot) =>
    (table[slot] ?? []).map((path) => pathOf(slot, path.split("."))),
  );
}

function pathOf(slot: UsageSlot, steps: readonly string[]): WantedPath<UsageSlot> {
  return { steps, leaf: { kind: slot === "outputText" ? "pieces" : "scalar", slot } };
}
