import { keysOf } from "../base/key-of.js";
import { type CallFacts, usageCountMax } from "../budgets/usage.js";
import { createJsonTree, type JsonNode } from "./json-paths.js";
import { JsonReader, type JsonSink } from "./json-reader.js";
import { cutModel, parseCount } from "./usage-fields.js";

type FactSlot = "model" | "outputMax" | "choices";

/** Paths of all providers, by slot. */
const paths: Readonly<Record<FactSlot, readonly string[]>> = {
  model: ["model"],
  outputMax: [
    // OpenAI and compatible servers, Anthropic, Mistral, Cohere.
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    // Gemini, which accepts both spellings.
    "generationConfig.maxOutputTokens",
    "generation_config.max_output_tokens",
    // Bedrock: Converse and Nova, Titan, Llama.
    "inferenceConfig.maxTokens",
    "inferenceConfig.max_new_tokens",
    "textGenerationConfig.maxTokenCount",
    "max_gen_len",
  ],
  choices: ["n", "best_of", "generationConfig.candidateCount", "generation_config.candidate_count"],
};

/**
 * Reads the facts of a call from the body of a request to OpenAI, Anthropic, Gemini or Bedrock. If
 * the body is cut off or is not JSON, it returns what was found. If a body has several maxima, or
 * one several times, the largest counts: servers differ in which of them they use. The maximum is
 * for all choices together.
 *
 * @param bytes the body, or its beginning; not compressed
 * @param requestBytes size of the whole body, if it is known
 */
export function readCallFacts(
  bytes: Uint8Array,
  requestBytes: number | undefined = bytes.length,
): CallFacts {
  const sink = new FactSink();
  new JsonReader(factTree, sink).push(bytes, markLength(bytes), bytes.length);
  const { model, outputMax, choiceCount } = sink;
  return {
    model,
    requestBytes,
    ...(outputMax !== undefined && {
      outputTokensMax: Math.min(usageCountMax, outputMax * choiceCount),
    }),
  };
}

/** Returns the bytes of a byte order mark, which some servers accept before JSON. */
function markLength(bytes: Uint8Array): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}

class FactSink implements JsonSink<FactSlot> {
  model = "";
  outputMax: number | undefined;
  choiceCount = 1;
  #isOver = false;

  scalar(slot: FactSlot, text: string, isText: boolean): void {
    if (this.#isOver) return;
    switch (slot) {
      case "model":
        if (isText) this.model = cutModel(text);
        break;
      case "outputMax": {
        const count = parseCount(text);
        if (count !== undefined) this.outputMax = Math.max(count, this.outputMax ?? 0);
        break;
      }
      case "choices":
        this.choiceCount = Math.max(this.choiceCount, parseCount(text) ?? 1);
    }
  }

  piece(): void {}

  pieceEnd(): void {}

  /** Servers either refuse or ignore what follows the first document. */
  documentEnd(): void {
    this.#isOver = true;
  }
}

const factTree: JsonNode<FactSlot> = createJsonTree(
  keysOf(paths).flatMap((slot) =>
    paths[slot].map(
      (path) => ({ steps: path.split("."), leaf: { kind: "scalar", slot } }) as const,
    ),
  ),
);
