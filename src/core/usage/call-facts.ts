import { keysOf } from "../base/key-of.js";
import { type CallFacts, usageCountMax } from "../budgets/usage.js";
import { createJsonTree, type JsonNode } from "./json-paths.js";
import { JsonReader, type JsonSink } from "./json-reader.js";
import { cutModel, parseCount } from "./usage-fields.js";

type FactSlot = "model" | "outputMax" | "choices";

/** By slot, the paths of all providers. */
const paths: Readonly<Record<FactSlot, readonly string[]>> = {
  model: ["model"],
  outputMax: [
    // OpenAI and what speaks as it does, Anthropic, Mistral, Cohere.
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    // Gemini, which takes both spellings.
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
 * What the body of a request to OpenAI, Anthropic, Gemini or Bedrock says. Of a body that is cut
 * off, or is no JSON, it says what was found. Where several maxima stand in a body, or one several
 * times, the largest counts: servers differ in which of them they take. The maximum is of all
 * choices together.
 *
 * @param bytes the body, or its beginning; not compressed
 * @param requestBytes size of the whole body, where it is known
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

/** The bytes of a byte order mark, which some servers take before JSON. */
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

  /** Servers either refuse what follows the first document, or do not look at it. */
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
