import { type Signal, useSignal } from "@preact/signals";
import type { PolicyVersion } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { LogFormat } from "../../simulate/log-reader.js";
import { formatCount } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { DropPlace } from "../parts/drop-place.jsx";
import { LogFormatField } from "../parts/log-format-field.jsx";
import { MarkupView } from "../parts/markup-view.jsx";
import { ToneIcon } from "../parts/status.jsx";
import { TaskProgress } from "../parts/task-progress.jsx";
import { randomWords, saveFile } from "../state/browser.js";
import { draft, editWith, filesOf, isTestFile } from "../state/draft.js";
import { chosenLog, recommendation } from "../state/recommendation.js";
import type { RecommendationOutcome } from "../worker/recommendation-job.js";

interface PolicyRecommendProps {
  readonly active: PolicyVersion | undefined;
}

/** What callers did by an access log, and limits that fit them. */
export function PolicyRecommend({ active }: PolicyRecommendProps) {
  const format = useSignal<LogFormat>("auto");
  const per = useSignal("");
  const period = useSignal("1m");
  const refusedPercent = useSignal("1");
  const isFixed = useSignal(false);
  const start = (log: File): void => {
    chosenLog.value = log;
    const [a = 1, b = 2, c = 3, d = 4] = randomWords(4);
    const files = draft.peek()?.files ?? filesOf(active);
    const job = {
      log,
      format: format.value,
      policies: files.filter((one) => !isTestFile(one)),
      per: per.value.trim(),
      period: period.value.trim(),
      refusedCallerRatioMax: Math.min(100, Math.max(0, Number(refusedPercent.value) || 0)) / 100,
      isFixed: isFixed.value,
      secret: { a, b, c, d },
    };
    void recommendation.start({ kind: "recommend", job });
  };
  const log = chosenLog.value;
  return (
    <>
      <section class="panel">
        <p>
          The log is read in this browser, and nothing of it is sent. For each limit of{" "}
          {draft.value === undefined ? "the active policy" : "your draft"} that its requests meet,
          you see what callers did, and the limit that fits them. Of services it tells what the
          durations of requests say.
        </p>
        <div class="fields">
          <LogFormatField value={format.value} onChange={(value) => (format.value = value)} />
          <TextField label="Refused callers, at most (%)" value={refusedPercent} />
          <TextField label="New limit for" value={per} placeholder="user=@x-user" />
          <TextField label="Its period" value={period} />
        </div>
        <label class="choices">
          <input
            type="checkbox"
            checked={isFixed.value}
            onChange={(event) => {
              isFixed.value = event.currentTarget.checked;
            }}
          />
          Also write optional numbers of services: fixed limits and queues (--fixed)
        </label>
        <DropPlace
          text="Drop an access log here, plain or gzip, of a day or more, or"
          label="Access log"
          onFile={start}
        />
        <div class="choices">
          {log === undefined ? undefined : <span class="mono">{showText(log.name)}</span>}
          {log === undefined || recommendation.state.value.kind === "running" ? undefined : (
            <button type="button" onClick={() => start(log)}>
              Read it again
            </button>
          )}
          <TaskProgress task={recommendation} label="Reading the log" />
        </div>
      </section>
      <Outcome active={active} />
    </>
  );
}

function TextField({
  label,
  value,
  placeholder = "",
}: {
  readonly label: string;
  readonly value: Signal<string>;
  readonly placeholder?: string;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        value={value.value}
        placeholder={placeholder}
        spellcheck={false}
        maxLength={1_000}
        onInput={(event) => {
          value.value = event.currentTarget.value;
        }}
      />
    </label>
  );
}

function Outcome({ active }: PolicyRecommendProps) {
  const { value: state } = recommendation.state;
  if (state.kind === "failed") return <Refusal message={state.message} />;
  if (state.kind !== "finished") return undefined;
  if (state.result.kind === "refused") return <Refusal message={state.result.message} />;
  return <Recommended result={state.result} active={active} />;
}

function Refusal({ message }: { readonly message: string }) {
  return (
    <p class="notice bad" role="alert">
      <ToneIcon tone="bad" /> {showText(message)}
    </p>
  );
}

function Recommended({
  result,
  active,
}: PolicyRecommendProps & {
  readonly result: Extract<RecommendationOutcome, { kind: "recommended" }>;
}) {
  const { markup, html, files, lineCount, unreadableCount } = result;
  return (
    <section class="panel">
      <header>
        <h2>Recommended limits</h2>
        <div class="tools">
          <button
            type="button"
            onClick={() => saveFile("headgate-recommendation.html", html, "text/html")}
          >
            Report
          </button>
        </div>
      </header>
      <p class="muted" role="status">
        {formatCount(lineCount)} lines were read, and {formatCount(unreadableCount)} could not be
        read. Callers are shown as hashes.
      </p>
      {files === undefined ? undefined : (
        <p class="choices">
          <button type="button" class="primary" onClick={() => editWith(files, active?.version)}>
            Edit the policy with these numbers
          </button>
        </p>
      )}
      <MarkupView markup={markup} />
    </section>
  );
}
