import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatEntries, readEntries } from "../../core/limits/descriptor-text.js";
import { writeCommand } from "../data/cli-command.js";
import { formatCount } from "../data/format.js";
import { CopyButton } from "../parts/copy-button.jsx";
import { DecisionTable } from "../parts/decisions.jsx";
import { Badge } from "../parts/status.jsx";
import { paramOf, setParams } from "../state/location.js";
import { useRules } from "../state/rules.js";
import { type Tail, type TailQuestion, useTail } from "../state/tail.js";

const samples = ["0.01", "0.1", "1"] as const;

const defaultSample = "0.1";

/** How the view is set, by its URL. */
function questionOf() {
  const keyText = paramOf("key");
  const sample = paramOf("sample") || defaultSample;
  return {
    domain: paramOf("domain"),
    ruleLabel: paramOf("rule"),
    deniedOnly: paramOf("denied") === "1",
    having: keyText === "" ? [] : readEntries(keyText),
    sampleRatio: Math.min(1, Math.max(0.0001, Number(sample) || 0.1)),
  };
}

/** Decisions as they are made. What is under the pointer stays where it is. */
export function LiveTail() {
  const question = questionOf();
  const having = question.having ?? [];
  const tail = useTail({ ...question, having });
  const isHeld = useSignal(false);
  const isPaused = useSignal(false);
  const shown = useSignal<Tail["decisions"]>([]);
  // An empty table under a pointer that rests is not read.
  const isStill = isPaused.value || (isHeld.value && shown.value.length > 0);
  useEffect(() => {
    if (!isStill) shown.value = tail.value.decisions;
  }, [isStill, tail.value]);
  return (
    <>
      <div class="view-head">
        <h1>Live tail</h1>
        <div class="tools">
          <button
            type="button"
            aria-pressed={isPaused.value}
            onClick={() => {
              isPaused.value = !isPaused.value;
            }}
          >
            {isPaused.value ? "Resume" : "Pause"}
          </button>
          <CopyButton text={tailCommand({ ...question, having })} label="Copy as CLI command" />
        </div>
      </div>
      <section class="panel">
        <TailForm isKeyWrong={question.having === undefined} />
        <TailState tail={tail.value} isStill={isStill} newest={shown.value[0]?.id ?? 0} />
        {/* biome-ignore lint/a11y/noStaticElementInteractions: a pointer only holds it */}
        <div
          onMouseEnter={() => {
            isHeld.value = true;
          }}
          onMouseLeave={() => {
            isHeld.value = false;
          }}
        >
          <DecisionTable rows={shown.value} />
        </div>
      </section>
    </>
  );
}

function tailCommand(question: TailQuestion): string {
  const { domain, ruleLabel, deniedOnly, having, sampleRatio } = question;
  return writeCommand([
    ...["headgate", "tail", ...(domain === "" ? [] : [domain])],
    ...(ruleLabel === "" ? [] : ["--rule", ruleLabel]),
    ...(deniedOnly ? ["--denied"] : []),
    ...(having.length === 0 ? [] : ["--having", formatEntries(having)]),
    ...["--sample", String(sampleRatio)],
  ]);
}

/** Whether the stream is open, and what is not shown of it. */
function TailState({
  tail: { decisions, dropped, isOpen, error },
  isStill,
  newest,
}: {
  readonly tail: Tail;
  readonly isStill: boolean;
  readonly newest: number;
}) {
  const unseen = decisions.filter(({ id }) => id > newest).length;
  const words = [
    ...(isStill && unseen > 0 ? [`${formatCount(unseen)} more since.`] : []),
    ...(dropped > 0 ? [`${formatCount(dropped)} left out, since they came too fast.`] : []),
  ];
  return (
    <p class="tail-state" role="status">
      {error !== undefined ? (
        <Badge tone="bad">{error}</Badge>
      ) : isStill ? (
        <Badge tone="notice">paused</Badge>
      ) : (
        <Badge tone={isOpen ? "good" : "plain"}>{isOpen ? "live" : "opening"}</Badge>
      )}
      <span class="muted">{words.join(" ")}</span>
    </p>
  );
}

function TailForm({ isKeyWrong }: { readonly isKeyWrong: boolean }) {
  return (
    <div class="fields">
      <RuleChoice />
      <label class="field">
        <span>Key has</span>
        <input
          placeholder="user=ann"
          aria-invalid={isKeyWrong}
          value={paramOf("key")}
          onInput={(event) => setParams({ key: event.currentTarget.value })}
        />
        {isKeyWrong ? <Badge tone="bad">write it as key=value</Badge> : undefined}
      </label>
      <label class="field">
        <span>Verdict</span>
        <select
          value={paramOf("denied")}
          onInput={(event) => setParams({ denied: event.currentTarget.value })}
        >
          <option value="">all</option>
          <option value="1">denied</option>
        </select>
      </label>
      <label class="field">
        <span>Sample</span>
        <select
          value={paramOf("sample") || defaultSample}
          onInput={(event) => setParams({ sample: event.currentTarget.value })}
        >
          {samples.map((ratio) => (
            <option key={ratio} value={ratio}>
              {Number(ratio) * 100} %
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function RuleChoice() {
  const rules = useRules();
  const all = rules.value.data?.rules ?? [];
  const domain = paramOf("domain");
  const domains = [...new Set(all.map(({ rule }) => rule.domain))];
  const labels = all.filter(({ rule }) => rule.domain === domain).map(({ rule }) => rule.label);
  return (
    <>
      <label class="field">
        <span>Domain</span>
        <select
          value={domain}
          onInput={(event) => setParams({ domain: event.currentTarget.value, rule: "" })}
        >
          <option value="">all</option>
          {domains.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>Rule</span>
        <input
          list="tail-rules"
          placeholder="all"
          value={paramOf("rule")}
          onInput={(event) => setParams({ rule: event.currentTarget.value })}
        />
        <datalist id="tail-rules">
          {labels.slice(0, 500).map((label) => (
            <option key={label} value={label} />
          ))}
        </datalist>
      </label>
    </>
  );
}
