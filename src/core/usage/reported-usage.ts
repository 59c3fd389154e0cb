import { type Usage, usageCountMax, usageCounts } from "../budgets/usage.js";
import type { ByteRange, JsonSink } from "./json-reader.js";
import { cutModel, type MutableUsage, parseCount } from "./usage-fields.js";
import type { UsageSlot } from "./usage-forms.js";

/** Assumed bytes of text per token, if tokens are not reported. */
const bytesPerToken = 4;

/** Collects the counts that the documents of one response report. */
export class ReportedUsage implements JsonSink<UsageSlot> {
  readonly #counts = new Map<UsageSlot, number>();
  #model = "";
  /** Number and bytes of the model's texts since output tokens were last reported. */
  #textCount = 0;
  #textBytes = 0;
  #isInText = false;
  #hasOutput = false;

  /** The first model that the response names; empty if it names none. */
  get model(): string {
    return this.#model;
  }

  /** Whether there is text that no report of output tokens covers. */
  get isEstimated(): boolean {
    return this.#textCount > 0;
  }

  /** Records a count. Zero replaces no other: servers send it if a count is not known yet. */
  add(slot: UsageSlot, count: number | undefined): void {
    if (count === undefined || (count === 0 && this.#counts.has(slot))) return;
    this.#counts.set(slot, count);
    if (count > 0 && (slot === "output" || slot === "outputTokens")) this.#hasOutput = true;
  }

  scalar(slot: UsageSlot, text: string, isText: boolean): void {
    if (slot !== "model") this.add(slot, parseCount(text));
    else if (isText && this.#model === "") this.#model = cutModel(text);
  }

  piece(_: UsageSlot, __: Uint8Array, { from, to }: ByteRange): void {
    if (!this.#isInText) this.#textCount += 1;
    this.#isInText = true;
    this.#textBytes += to - from;
  }

  pieceEnd(): void {
    this.#isInText = false;
  }

  /** A report of output tokens covers all text up to the end of its document. */
  documentEnd(): void {
    this.#isInText = false;
    if (!this.#hasOutput) return;
    this.#hasOutput = false;
    this.#textCount = 0;
    this.#textBytes = 0;
  }

  /**
   * Returns what was reported. Its output tokens include an estimate for the text since the last
   * report: one for each text, since servers send about one token at a time, or one for each
   * `bytesPerToken` bytes, if that is more.
   *
   * @returns undefined if nothing was reported, and nothing can be estimated
   */
  usage(): Usage | undefined {
    const usage: MutableUsage = {};
    for (const name of usageCounts) setCount(usage, name, this.#counts.get(name));
    if (usage.inputTokens === undefined) this.#setInput(usage);
    if (usage.outputTokens === undefined) this.#setOutput(usage);
    if (this.isEstimated) {
      const tokens = Math.max(this.#textCount, Math.ceil(this.#textBytes / bytesPerToken));
      setCount(usage, "outputTokens", (usage.outputTokens ?? 0) + tokens);
    }
    return Object.keys(usage).length === 0 ? undefined : usage;
  }

  #setInput(usage: MutableUsage): void {
    const cachedDetail = this.#counts.get("cachedDetail");
    const writtenDetail = this.#counts.get("writtenDetail");
    const cached = greatest(cachedDetail, this.#counts.get("cached"));
    const written = greatest(writtenDetail, this.#counts.get("written"));
    const all = this.#counts.get("allInput");
    const input = this.#counts.get("input");
    const tools = this.#counts.get("toolInput") ?? 0;
    if (all !== undefined) {
      setCount(usage, "inputTokens", Math.max(0, all - (cached ?? 0) - (written ?? 0)) + tools);
    } else if (input !== undefined) {
      const rest = input - (cachedDetail ?? 0) - (writtenDetail ?? 0);
      setCount(usage, "inputTokens", Math.max(0, rest) + tools);
    }
    setCount(usage, "cachedTokens", usage.cachedTokens ?? cached);
    setCount(usage, "cacheWriteTokens", usage.cacheWriteTokens ?? written);
  }

  #setOutput(usage: MutableUsage): void {
    const output = this.#counts.get("output");
    const thoughts = this.#counts.get("thoughts");
    const beside = (this.#counts.get("total") ?? 0) - (this.#counts.get("allInput") ?? 0);
    const hasTotal = this.#counts.has("total") && this.#counts.has("allInput");
    if (output !== undefined || thoughts !== undefined || (hasTotal && beside > 0)) {
      const reported = (output ?? 0) + (thoughts ?? 0);
      setCount(usage, "outputTokens", hasTotal ? Math.max(reported, beside) : reported);
    }
    setCount(usage, "reasoningTokens", usage.reasoningTokens ?? thoughts ?? this.#reasoning(usage));
  }

  /** Returns reasoning tokens: at most the output tokens that include them. */
  #reasoning({ outputTokens }: MutableUsage): number | undefined {
    const reasoning = this.#counts.get("reasoning");
    return reasoning === undefined ? undefined : Math.min(reasoning, outputTokens ?? reasoning);
  }
}

function setCount(usage: MutableUsage, name: keyof Usage, count: number | undefined): void {
  if (count !== undefined) usage[name] = Math.min(usageCountMax, count);
}

function greatest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}
