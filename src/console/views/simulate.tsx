import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { PolicyVersion } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatMany } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { CodeEditor } from "../parts/code-editor.jsx";
import { MarkupView } from "../parts/markup-view.jsx";
import { ProblemList } from "../parts/problem-list.jsx";
import { Badge, ToneIcon } from "../parts/status.jsx";
import { TaskProgress } from "../parts/task-progress.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { later, saveFile } from "../state/browser.js";
import { draft, editWith, filesOf, isTestFile } from "../state/draft.js";
import { useElement } from "../state/element.js";
import { paramOf, setParams } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { loadPackaged, packaged, simulation, written } from "../state/simulation.js";
import { simulator } from "../state/simulator.js";
import type { CheckedJob, SimulationJob, SimulationReport } from "../worker/simulation-job.js";

const ending = ".scenario.yaml";

/** A scenario, the policy that it runs with, and what came of it: all in this browser. */
export function Simulate() {
  const polled = usePoll((signal) => api.policies.getPolicy({}, { signal }), { everyMs: 10_000 });
  const { data, error } = polled.value;
  useEffect(() => void loadPackaged(), []);
  const isKnown = data !== undefined || error !== undefined;
  return (
    <>
      <div class="view-head">
        <h1>Simulate</h1>
      </div>
      <p class="muted">
        Simulations run in this browser, with the code that decides in Headgate. Nothing is sent to
        the fleet, and nothing in it changes.
      </p>
      {error === undefined || data !== undefined ? undefined : (
        <p class="notice warn" role="status">
          <ToneIcon tone="warn" /> The active policy is not known: {error}
        </p>
      )}
      {isKnown && packaged.value !== undefined ? (
        <Runner active={data?.policy} files={packaged.value} />
      ) : (
        <p class="empty" role="status">
          Loading …
        </p>
      )}
    </>
  );
}

interface RunnerProps {
  readonly active: PolicyVersion | undefined;
  /** The scenarios of the package, and their policies. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
}

function Runner({ active, files }: RunnerProps) {
  const name = paramOf("scenario");
  const text = useScenarioText(name, { active, files });
  const [choice, setting, values] = [paramOf("policy"), paramOf("vary"), paramOf("values")];
  const job = useMemo((): SimulationJob => {
    const isOwnPolicy = choice === "own";
    const chosen = choice === "draft" ? draft.peek()?.files : undefined;
    return {
      scenario: { file: name === "" ? "scenario.yaml" : name + ending, text: text ?? "" },
      policies: isOwnPolicy ? files : (chosen ?? filesOf(active)).filter((one) => !isTestFile(one)),
      isOwnPolicy,
      variation: setting === "" ? "" : `${setting}=${values}`,
    };
  }, [text, name, choice, setting, values, active?.version, draft.value, files]);
  const checked = useCheck(job, text !== undefined);
  return (
    <>
      <div class="policy-edit">
        <section class="panel">
          <ScenarioHead name={name} files={files} />
          {text === undefined ? (
            <p class="empty">Loading …</p>
          ) : (
            <CodeEditor
              name={name}
              label={`Scenario ${job.scenario.file}`}
              text={text}
              readText={() => written.peek().get(name) ?? text}
              isReadOnly={false}
              problems={(checked?.problems ?? []).filter(({ file }) => file === job.scenario.file)}
              schema="scenario-schema"
              onChange={(changed) => {
                written.value = new Map(written.peek()).set(name, changed);
              }}
            />
          )}
        </section>
        <div>
          <RunPanel job={job} checked={checked} />
          <Checked checked={checked} />
        </div>
      </div>
      <Outcome active={active} />
    </>
  );
}

/** What the reader wrote, or the scenario of the package, or one that fits the active policy. */
function useScenarioText(name: string, { active, files }: RunnerProps): string | undefined {
  const begun = useSignal<string | undefined>(undefined);
  const known = written.value.get(name) ?? files.find(({ file }) => file === name + ending)?.text;
  const isMissing = known === undefined && name === "";
  useEffect(() => {
    if (!isMissing) return undefined;
    const end = new AbortController();
    simulator.ask({ kind: "begin", policies: filesOf(active) }, end.signal).then(
      (answer) => {
        if (answer.kind === "begun") begun.value = answer.text;
      },
      () => {
        begun.value ??= end.signal.aborted ? undefined : "";
      },
    );
    return () => end.abort();
  }, [isMissing, active?.version]);
  return known ?? (name === "" ? begun.value : "");
}

/** What stands in the way, a moment after the last keystroke. */
function useCheck(job: SimulationJob, isOn: boolean): CheckedJob | undefined {
  const last = useSignal<{ readonly job: SimulationJob; readonly checked: CheckedJob } | undefined>(
    undefined,
  );
  useEffect(() => {
    if (!isOn) return undefined;
    const end = new AbortController();
    const cancel = later(300, async () => {
      const answer = await simulator.ask({ kind: "check", job }, end.signal).catch(() => undefined);
      if (answer?.kind === "checked" && !end.signal.aborted) {
        last.value = { job, checked: answer.checked };
      }
    });
    return () => {
      cancel();
      end.abort();
    };
  }, [job, isOn]);
  return last.value?.job === job ? last.value.checked : undefined;
}

function ScenarioHead({
  name,
  files,
}: {
  readonly name: string;
  readonly files: RunnerProps["files"];
}) {
  const names = files.flatMap(({ file }) =>
    file.endsWith(ending) ? [file.slice(0, -ending.length)] : [],
  );
  return (
    <header>
      <label class="tools">
        <span>Scenario</span>
        <select
          value={name}
          onInput={(event) => {
            const scenario = event.currentTarget.value;
            setParams({ scenario, policy: scenario === "" ? "" : "own" });
          }}
        >
          <option value="">my own</option>
          {names.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {written.value.has(name) ? (
        <button
          type="button"
          onClick={() => {
            const others = [...written.peek()].filter(([one]) => one !== name);
            written.value = new Map(others);
          }}
        >
          Discard my changes
        </button>
      ) : undefined}
    </header>
  );
}

function RunPanel({
  job,
  checked,
}: {
  readonly job: SimulationJob;
  readonly checked: CheckedJob | undefined;
}) {
  const isRunning = simulation.state.value.kind === "running";
  const isReady = checked?.problems.length === 0 && checked.refusal === undefined;
  return (
    <TitledPanel title="Run">
      <label class="field">
        <span>Policy</span>
        <select
          value={paramOf("policy")}
          onInput={(event) => setParams({ policy: event.currentTarget.value })}
        >
          <option value="">the active policy of this fleet</option>
          {draft.value === undefined ? undefined : <option value="draft">my draft</option>}
          <option value="own">the one that the scenario names</option>
        </select>
      </label>
      <div class="fields">
        <ParamField name="vary" label="Compare a setting" placeholder="admission.maxInFlight" />
        <ParamField name="values" label="Values" placeholder="10,20,40 or 10..200" />
      </div>
      <div class="choices">
        {isRunning ? undefined : (
          <button
            type="button"
            class="primary"
            disabled={!isReady}
            onClick={() => void simulation.start({ kind: "run", job })}
          >
            Run
          </button>
        )}
        <TaskProgress task={simulation} label="Simulating" />
        <span role="status">
          <Verdict />
        </span>
      </div>
    </TitledPanel>
  );
}

function Verdict() {
  const { value: state } = simulation.state;
  if (state.kind !== "finished") return undefined;
  const { isMet } = state.result;
  if (isMet === undefined) return <Badge tone="plain">finished</Badge>;
  return (
    <Badge tone={isMet ? "good" : "bad"}>{isMet ? "objectives met" : "objectives missed"}</Badge>
  );
}

function ParamField({
  name,
  label,
  placeholder,
}: {
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        value={paramOf(name)}
        placeholder={placeholder}
        spellcheck={false}
        maxLength={1_000}
        onInput={(event) => setParams({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

function Checked({ checked }: { readonly checked: CheckedJob | undefined }) {
  const { problems = [], refusal, notes = [] } = checked ?? {};
  return (
    <section class="panel" aria-live="polite">
      <header>
        <h2>Validation</h2>
        {checked === undefined ? (
          <Badge tone="plain">checking</Badge>
        ) : problems.length > 0 ? (
          <Badge tone="bad">{formatMany(problems.length, "problem")}</Badge>
        ) : refusal === undefined ? (
          <Badge tone="good">valid</Badge>
        ) : (
          <Badge tone="bad">cannot run</Badge>
        )}
      </header>
      {refusal === undefined ? undefined : (
        <p class="notice bad">
          <ToneIcon tone="bad" /> {showText(refusal)}
        </p>
      )}
      {notes.map((note) => (
        <p key={note} class="notice warn">
          <ToneIcon tone="warn" /> {showText(note)}
        </p>
      ))}
      <ProblemList problems={problems} />
    </section>
  );
}

function Outcome({ active }: { readonly active: PolicyVersion | undefined }) {
  const { value: state } = simulation.state;
  const panel = useElement<HTMLElement>();
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), [state.kind]);
  if (state.kind === "failed") {
    return (
      <p class="notice bad" role="alert">
        <ToneIcon tone="bad" /> {showText(state.message)}
      </p>
    );
  }
  if (state.kind !== "finished") return undefined;
  const { title, markup, html, csv, drafts } = state.result;
  const name = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return (
    <section class="panel" ref={panel}>
      <header>
        <h2>Result of {showText(title)}</h2>
        <div class="tools">
          <button type="button" onClick={() => saveFile(`headgate-${name}.csv`, csv)}>
            CSV
          </button>
          <button
            type="button"
            onClick={() => saveFile(`headgate-${name}.html`, html, "text/html")}
          >
            Report
          </button>
        </div>
      </header>
      <Drafts drafts={drafts} active={active} />
      <MarkupView markup={markup} />
    </section>
  );
}

/** The way from a comparison to the policy: as a draft, which is released as any other. */
function Drafts({
  drafts,
  active,
}: {
  readonly drafts: SimulationReport["drafts"];
  readonly active: PolicyVersion | undefined;
}) {
  if (drafts.length === 0) return undefined;
  return (
    <p class="tools">
      {drafts.map(({ label, files }) => (
        <button
          key={label}
          type="button"
          onClick={() => {
            editWith(files, active?.version);
          }}
        >
          Edit the policy with {showText(label)}
        </button>
      ))}
    </p>
  );
}
