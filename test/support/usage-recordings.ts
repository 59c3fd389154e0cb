import type { Usage } from "../../src/core/budgets/usage.js";
import type { UsageFormat } from "../../src/core/usage/usage-forms.js";
import { amazonChunk, amazonEvent, encodeAmazonFrames } from "./amazon-frames.js";

/** A response in the form of a provider, written here, and what it says. */
export interface UsageRecording {
  readonly name: string;
  /** Its own form; `auto` reads the same. */
  readonly format: Exclude<UsageFormat, "auto" | "json">;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Without `responseBytes`. */
  readonly usage: Usage;
  readonly isEstimated?: true;
  readonly model?: string;
}

const json = { "content-type": "application/json" };
const events = { "content-type": "text/event-stream; charset=utf-8" };
const frames = { "content-type": "application/vnd.amazon.eventstream" };

const document = (value: unknown): Buffer => Buffer.from(JSON.stringify(value, undefined, 1));

const stream = (documents: readonly object[], end = "data: [DONE]\n\n"): Buffer =>
  Buffer.from(`${documents.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")}${end}`);

const namedStream = (documents: readonly { readonly type: string }[]): Buffer =>
  Buffer.from(
    documents.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join(""),
  );

const chatChunk = (delta: object, usage?: object | null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  model: "gpt-4o-2024-08-06",
  choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
  ...(usage !== undefined && { usage }),
});

const chatUsage = {
  prompt_tokens: 1_200,
  completion_tokens: 57,
  total_tokens: 1_257,
  prompt_tokens_details: { cached_tokens: 1_024, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 40, accepted_prediction_tokens: 0 },
};

const lastChatChunk = (usage: object) => ({ ...chatChunk({}), choices: [], usage });

const chatRead: Usage = {
  inputTokens: 176,
  cachedTokens: 1_024,
  outputTokens: 57,
  reasoningTokens: 40,
};

const openai: readonly UsageRecording[] = [
  {
    name: "OpenAI Chat Completions",
    format: "openai",
    headers: json,
    body: document({
      id: "chatcmpl-1",
      model: "gpt-4o-2024-08-06",
      choices: [{ message: { role: "assistant", content: 'says "usage": {"prompt_tokens": 9}' } }],
      usage: chatUsage,
    }),
    usage: chatRead,
    model: "gpt-4o-2024-08-06",
  },
  {
    name: "OpenAI Chat Completions, streamed, with include_usage",
    format: "openai",
    headers: events,
    body: stream([
      chatChunk({ role: "assistant", content: "" }, null),
      chatChunk({ content: 'Grüße \\ "' }, null),
      chatChunk({ content: " 🌍\n" }, null),
      lastChatChunk(chatUsage),
    ]),
    usage: chatRead,
    model: "gpt-4o-2024-08-06",
  },
  {
    name: "OpenAI Chat Completions, streamed, without usage",
    format: "openai",
    headers: events,
    body: stream([
      chatChunk({ role: "assistant", content: "" }),
      chatChunk({ content: "abcdefghijklmnop" }),
      chatChunk({ content: "q" }),
      chatChunk({ content: "r" }),
    ]),
    // 18 bytes are five tokens, more than three texts.
    usage: { outputTokens: 5 },
    isEstimated: true,
    model: "gpt-4o-2024-08-06",
  },
  {
    name: "vLLM with continuous_usage_stats, cut off",
    format: "openai",
    headers: events,
    body: stream(
      [
        chatChunk({ content: "a" }, { prompt_tokens: 7, total_tokens: 8, completion_tokens: 1 }),
        chatChunk({ content: "b" }, { prompt_tokens: 7, total_tokens: 9, completion_tokens: 2 }),
      ],
      'data: {"choices":[{"delta":{"cont',
    ),
    usage: { inputTokens: 7, outputTokens: 2 },
    model: "gpt-4o-2024-08-06",
  },
  {
    name: "xAI, whose completion_tokens leave reasoning out",
    format: "openai",
    headers: json,
    body: document({
      model: "grok-4",
      usage: {
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      },
    }),
    usage: { inputTokens: 32, outputTokens: 103, reasoningTokens: 94 },
    model: "grok-4",
  },
  {
    name: "OpenRouter, with tokens written to a cache",
    format: "openai",
    headers: json,
    body: document({
      usage: {
        prompt_tokens: 2_000,
        completion_tokens: 100,
        prompt_tokens_details: { cached_tokens: 1_500, cache_write_tokens: 350 },
      },
    }),
    usage: { inputTokens: 150, cachedTokens: 1_500, cacheWriteTokens: 350, outputTokens: 100 },
  },
  {
    name: "OpenAI Responses",
    format: "openai",
    headers: json,
    body: document({
      object: "response",
      model: "o4-mini",
      output: [{ type: "message", content: [{ type: "output_text", text: "Hello" }] }],
      usage: {
        input_tokens: 75,
        input_tokens_details: { cached_tokens: 25 },
        output_tokens: 1_186,
        output_tokens_details: { reasoning_tokens: 1_024 },
        total_tokens: 1_261,
      },
    }),
    usage: { inputTokens: 50, cachedTokens: 25, outputTokens: 1_186, reasoningTokens: 1_024 },
    model: "o4-mini",
  },
  {
    name: "OpenAI Responses, streamed",
    format: "openai",
    headers: events,
    body: namedStream([
      { type: "response.created", response: { model: "gpt-5", usage: null } } as never,
      { type: "response.output_text.delta", delta: "Hel" } as never,
      { type: "response.output_text.delta", delta: "lo" } as never,
      { type: "response.output_text.done", text: "Hello" } as never,
      {
        type: "response.completed",
        response: {
          model: "gpt-5",
          output: [{ content: [{ type: "output_text", text: "Hello" }] }],
          usage: {
            input_tokens: 11,
            input_tokens_details: { cached_tokens: 0 },
            output_tokens: 9,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 20,
          },
        },
      } as never,
    ]),
    usage: { inputTokens: 11, cachedTokens: 0, outputTokens: 9, reasoningTokens: 0 },
    model: "gpt-5",
  },
  {
    name: "OpenAI Embeddings",
    format: "openai",
    headers: json,
    body: document({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [-0.0069, 1.5e-3, 0, 12] }],
      model: "text-embedding-3-small",
      usage: { prompt_tokens: 5, total_tokens: 5 },
    }),
    usage: { inputTokens: 5 },
    model: "text-embedding-3-small",
  },
];

const messageStart = {
  type: "message_start",
  message: {
    id: "msg_1",
    model: "claude-sonnet-4-5",
    content: [],
    usage: {
      input_tokens: 12,
      cache_creation_input_tokens: 400,
      cache_read_input_tokens: 3_000,
      output_tokens: 1,
    },
  },
};

const blockDelta = (delta: object) => ({ type: "content_block_delta", index: 0, delta });

const messageEvents = [
  messageStart,
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "ping" },
  blockDelta({ type: "thinking_delta", thinking: "Let me see" }),
  blockDelta({ type: "text_delta", text: "Hello there" }),
  blockDelta({ type: "input_json_delta", partial_json: '{"a":' }),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 89 } },
  { type: "message_stop" },
];

const messageRead: Usage = {
  inputTokens: 12,
  cachedTokens: 3_000,
  cacheWriteTokens: 400,
  outputTokens: 89,
};

const anthropic: readonly UsageRecording[] = [
  {
    name: "Anthropic Messages",
    format: "anthropic",
    headers: json,
    body: document({
      type: "message",
      model: "claude-sonnet-4-5",
      content: [{ type: "text", text: "Hello there" }],
      usage: { ...messageStart.message.usage, output_tokens: 89 },
    }),
    usage: messageRead,
    model: "claude-sonnet-4-5",
  },
  {
    name: "Anthropic Messages, streamed",
    format: "anthropic",
    headers: events,
    body: namedStream(messageEvents),
    usage: messageRead,
    model: "claude-sonnet-4-5",
  },
  {
    name: "Anthropic Messages, cut off before message_delta",
    format: "anthropic",
    headers: events,
    body: namedStream(messageEvents.slice(0, 6)),
    // One token of message_start, and seven for 28 bytes since, the escapes of JSON among them.
    usage: { ...messageRead, outputTokens: 8 },
    isEstimated: true,
    model: "claude-sonnet-4-5",
  },
];

const candidate = (text: string) => ({ content: { parts: [{ text }], role: "model" }, index: 0 });

const geminiChunks = [
  {
    candidates: [candidate("Hello")],
    usageMetadata: { promptTokenCount: 2_152, totalTokenCount: 2_152 },
    modelVersion: "gemini-2.5-flash",
  },
  {
    candidates: [candidate(" there")],
    usageMetadata: {
      promptTokenCount: 2_152,
      cachedContentTokenCount: 2_027,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 30,
      toolUsePromptTokenCount: 8,
      totalTokenCount: 2_194,
    },
    modelVersion: "gemini-2.5-flash",
  },
];

const geminiRead: Usage = {
  inputTokens: 133,
  cachedTokens: 2_027,
  outputTokens: 34,
  reasoningTokens: 30,
};

const gemini: readonly UsageRecording[] = [
  {
    name: "Gemini generateContent",
    format: "gemini",
    headers: json,
    body: document(geminiChunks[1]),
    usage: geminiRead,
    model: "gemini-2.5-flash",
  },
  {
    name: "Gemini streamGenerateContent with alt=sse",
    format: "gemini",
    headers: events,
    body: Buffer.from(geminiChunks.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join("")),
    usage: geminiRead,
    model: "gemini-2.5-flash",
  },
  {
    name: "Gemini streamGenerateContent as a list",
    format: "gemini",
    headers: json,
    body: Buffer.from(`[${geminiChunks.map((one) => JSON.stringify(one)).join("\n,\r\n")}]`),
    usage: geminiRead,
    model: "gemini-2.5-flash",
  },
];

const converseUsage = {
  inputTokens: 30,
  outputTokens: 628,
  totalTokens: 758,
  cacheReadInputTokens: 80,
  cacheWriteInputTokens: 20,
};

const converseRead: Usage = {
  inputTokens: 30,
  cachedTokens: 80,
  cacheWriteTokens: 20,
  outputTokens: 628,
};

const metrics = {
  inputTokenCount: 12,
  outputTokenCount: 89,
  invocationLatency: 1_200,
  firstByteLatency: 300,
  cacheReadInputTokenCount: 3_000,
  cacheWriteInputTokenCount: 400,
};

const bedrock: readonly UsageRecording[] = [
  {
    name: "Bedrock Converse",
    format: "bedrock",
    headers: json,
    body: document({
      metrics: { latencyMs: 1_275 },
      output: { message: { content: [{ text: "Hello" }], role: "assistant" } },
      stopReason: "end_turn",
      usage: converseUsage,
    }),
    usage: converseRead,
  },
  {
    name: "Bedrock ConverseStream",
    format: "bedrock",
    headers: frames,
    body: encodeAmazonFrames([
      amazonEvent("messageStart", { p: "abc", role: "assistant" }),
      amazonEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hello" }, p: "a" }),
      amazonEvent("messageStop", { p: "ab", stopReason: "end_turn" }),
      amazonEvent("metadata", { metrics: { latencyMs: 9 }, p: "abcd", usage: converseUsage }),
    ]),
    usage: converseRead,
  },
  {
    name: "Bedrock ConverseStream, cut off",
    format: "bedrock",
    headers: frames,
    body: encodeAmazonFrames([
      amazonEvent("messageStart", { p: "abc", role: "assistant" }),
      amazonEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hello" }, p: "a" }),
    ]),
    usage: { outputTokens: 2 },
    isEstimated: true,
  },
  {
    name: "Bedrock InvokeModelWithResponseStream of a Claude",
    format: "bedrock",
    headers: frames,
    body: encodeAmazonFrames(
      [
        ...messageEvents.slice(0, -1),
        { type: "message_stop", "amazon-bedrock-invocationMetrics": metrics },
      ].map(amazonChunk),
    ),
    usage: messageRead,
    model: "claude-sonnet-4-5",
  },
  {
    name: "Bedrock InvokeModelWithResponseStream of a Nova",
    format: "bedrock",
    headers: frames,
    body: encodeAmazonFrames(
      [
        { contentBlockDelta: { delta: { text: "Hello" }, contentBlockIndex: 0 } },
        {
          metadata: {
            usage: { inputTokens: 30, outputTokens: 628, cacheReadInputTokenCount: 80 },
            metrics: {},
          },
          "amazon-bedrock-invocationMetrics": { inputTokenCount: 30, outputTokenCount: 628 },
        },
      ].map(amazonChunk),
    ),
    usage: { inputTokens: 30, cachedTokens: 80, outputTokens: 628 },
  },
  {
    name: "Bedrock InvokeModel of a Titan",
    format: "bedrock",
    headers: json,
    body: document({ inputTextTokenCount: 5, results: [{ tokenCount: 61, outputText: "Hello" }] }),
    usage: { inputTokens: 5, outputTokens: 61 },
  },
  {
    name: "Bedrock InvokeModel of a Llama",
    format: "bedrock",
    headers: json,
    body: document({ generation: "Hello", prompt_token_count: 25, generation_token_count: 62 }),
    usage: { inputTokens: 25, outputTokens: 62 },
  },
  {
    name: "Bedrock InvokeModel of a Mistral, by its headers",
    format: "bedrock",
    headers: {
      ...json,
      "x-amzn-bedrock-input-token-count": "17",
      "x-amzn-bedrock-output-token-count": "12",
      "x-amzn-bedrock-cache-read-input-token-count": "3",
      "x-amzn-bedrock-cache-write-input-token-count": "4",
    },
    body: document({ outputs: [{ text: "Hello there, this is no more than text" }] }),
    usage: { inputTokens: 17, cachedTokens: 3, cacheWriteTokens: 4, outputTokens: 12 },
  },
];

/** One of each form, streamed or not, complete or cut off. */
export const usageRecordings: readonly UsageRecording[] = [
  ...openai,
  ...anthropic,
  ...gemini,
  ...bedrock,
];
