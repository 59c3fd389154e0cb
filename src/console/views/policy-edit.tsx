import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type {
  PolicyVersion,
  Problem,
  TestPolicyResponse,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatCount, formatMany } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { ActionDialog } from "../parts/action-dialog.jsx";
import { CodeEditor } from "../parts/code-editor.jsx";
import { ProblemList } from "../parts/problem-list.jsx";
import { Badge, ToneIcon } from "../parts/status.jsx";
import { TextDiff } from "../parts/text-diff.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api, errorText } from "../state/api.js";
import { later } from "../state/browser.js";
import {
  type DraftFile,
  draft,
  filesOf,
  isTestFile,
  judgement,
  shortVersion,
} from "../state/draft.js";
import { paramOf, setParams } from "../state/location.js";
import { mayChange } from "../state/session.js";

interface PolicyEditProps {
  readonly active: PolicyVersion | undefined;
  readonly shadow: PolicyVersion | undefined;
}

const nothingFound: readonly Problem[] = [];

/** The text of the policy, what is wrong with it, and what it would change. */
export function PolicyEdit({ active, shadow }: PolicyEditProps) {
  const files = draft.value?.files ?? filesOf(active);
  const wanted = paramOf("file");
  const shown = files.find(({ file }) => file === wanted) ?? files[0];
  const failure = useJudgement(files);
  const problems = judgement.value?.problems ?? nothingFound;
  const edit = (changed: readonly DraftFile[]): void => {
    judgement.value = undefined;
    draft.value = { base: draft.value?.base ?? active?.version ?? "", files: changed };
  };
  const ownProblems = problems.filter(({ file }) => isOfFile(file, shown, files));
  return (
    <div class="policy-edit">
      <section class="panel">
        <header>
          <FileTabs files={files} shown={shown} onAdd={(file) => edit([...files, file])} />
          {draft.value === undefined ? undefined : (
            <button
              type="button"
              onClick={() => {
                draft.value = undefined;
                judgement.value = undefined;
              }}
            >
              Discard the draft
            </button>
          )}
        </header>
        {shown === undefined ? (
          <p class="empty">There is no policy yet. Add a file to write one.</p>
        ) : (
          <CodeEditor
            name={shown.file}
            label={`Policy file ${shown.file}`}
            text={shown.text}
            readText={() => {
              const now = draft.peek()?.files ?? filesOf(active);
              return now.find(({ file }) => file === shown.file)?.text ?? "";
            }}
            isReadOnly={false}
            problems={ownProblems}
            schema="policy-schema"
            onChange={(text) => {
              const now = draft.peek()?.files ?? files;
              edit(now.map((one) => (one.file === shown.file ? { file: one.file, text } : one)));
            }}
          />
        )}
        <p class="muted">
          Press Ctrl-Space to complete, point at a field for its documentation, and press Escape,
          then Tab to leave the editor.
        </p>
      </section>
      <div>
        <Judgement failure={failure} problems={problems} />
        <Changes active={active} files={files} />
        <Tests files={files} />
        <Release active={active} shadow={shadow} files={files} />
      </div>
    </div>
  );
}

function isOfFile(
  file: string,
  shown: DraftFile | undefined,
  files: readonly DraftFile[],
): boolean {
  return file === shown?.file || files.length === 1;
}

/** Asks what the server says of the draft, a moment after the last keystroke. */
function useJudgement(files: readonly DraftFile[]): string | undefined {
  const failure = useSignal<string | undefined>(undefined);
  const isDraft = draft.value !== undefined;
  useEffect(() => {
    if (!isDraft) return undefined;
    const end = new AbortController();
    const cancel = later(400, async () => {
      try {
        const own = policyFiles(files);
        judgement.value = await api.policies.validatePolicy({ files: own }, { signal: end.signal });
        failure.value = undefined;
      } catch (error) {
        if (!end.signal.aborted) failure.value = errorText(error);
      }
    });
    return () => {
      cancel();
      end.abort();
    };
  }, [draft.value]);
  return failure.value;
}

function policyFiles(files: readonly DraftFile[]): { file: string; text: string }[] {
  return files.filter((one) => !isTestFile(one)).map(({ file, text }) => ({ file, text }));
}

function FileTabs({
  files,
  shown,
  onAdd,
}: {
  readonly files: readonly DraftFile[];
  readonly shown: DraftFile | undefined;
  readonly onAdd: (file: DraftFile) => void;
}) {
  return (
    <div class="tools">
      {files.map(({ file }) => (
        <button
          key={file}
          type="button"
          aria-pressed={file === shown?.file}
          onClick={() => setParams({ file })}
        >
          {showText(file.replace(/.*\//, ""))}
        </button>
      ))}
      <label class="button">
        Add a file
        <input
          class="unseen"
          type="file"
          accept=".yaml,.yml,.html"
          aria-label="Add a file to the draft"
          onChange={async (event) => {
            const file = event.currentTarget.files?.[0];
            if (!file) return;
            onAdd({ file: file.name, text: await file.text() });
            setParams({ file: file.name });
          }}
        />
      </label>
    </div>
  );
}

function Judgement({
  failure,
  problems,
}: {
  readonly failure: string | undefined;
  readonly problems: readonly Problem[];
}) {
  const isAsked = draft.value !== undefined && judgement.value === undefined;
  return (
    <section class="panel" aria-live="polite">
      <header>
        <h2>Validation</h2>
        {failure !== undefined ? (
          <Badge tone="bad">not checked</Badge>
        ) : draft.value === undefined ? (
          <Badge tone="plain">as active</Badge>
        ) : isAsked ? (
          <Badge tone="plain">checking</Badge>
        ) : problems.length === 0 ? (
          <Badge tone="good">valid</Badge>
        ) : (
          <Badge tone="bad">{formatMany(problems.length, "problem")}</Badge>
        )}
      </header>
      {failure === undefined ? undefined : <p class="notice bad">{failure}</p>}
      <ProblemList problems={problems} />
    </section>
  );
}

function Changes({
  active,
  files,
}: {
  readonly active: PolicyVersion | undefined;
  readonly files: readonly DraftFile[];
}) {
  if (draft.value === undefined) {
    return (
      <section class="panel">
        <h2>Changes</h2>
        <p class="empty">Edit the text to see what it would change.</p>
      </section>
    );
  }
  return (
    <TitledPanel title="What your draft changes">
      <ChangeSentences />
      <FileDiffs before={filesOf(active)} after={policyFiles(files)} />
    </TitledPanel>
  );
}

function ChangeSentences() {
  const changes = judgement.value?.changes ?? [];
  if (judgement.value === undefined) return <p class="muted">Comparing …</p>;
  if (changes.length === 0) return <p class="muted">It means the same as the active policy.</p>;
  return (
    <ul class="sentences">
      {changes.map((change) => (
        <li key={change}>{showText(change)}</li>
      ))}
    </ul>
  );
}

/** Texts of two policies compared, file by file. */
export function FileDiffs({
  before,
  after,
}: {
  readonly before: readonly DraftFile[];
  readonly after: readonly DraftFile[];
}) {
  const names = [...new Set([...before, ...after].map(({ file }) => file))];
  const textOf = (files: readonly DraftFile[], name: string): string =>
    files.find(({ file }) => file === name)?.text ?? "";
  const changed = names.filter((name) => textOf(before, name) !== textOf(after, name));
  if (changed.length === 0) return <p class="empty">The texts are the same.</p>;
  return changed.map((name) => (
    <div key={name}>
      <h3>{showText(name)}</h3>
      <TextDiff before={textOf(before, name)} after={textOf(after, name)} />
    </div>
  ));
}

function Tests({ files }: { readonly files: readonly DraftFile[] }) {
  const result = useSignal<TestPolicyResponse | undefined>(undefined);
  const failure = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const hasTests = files.some(isTestFile);
  const run = async (): Promise<void> => {
    isBusy.value = true;
    try {
      const tests = files.filter(isTestFile).map(({ file, text }) => ({ file, text }));
      result.value = await api.policies.testPolicy({ files: policyFiles(files), tests });
      failure.value = undefined;
    } catch (error) {
      failure.value = errorText(error);
    }
    isBusy.value = false;
  };
  return (
    <section class="panel">
      <header>
        <h2>Tests</h2>
        <button type="button" disabled={isBusy.value || !hasTests} onClick={() => void run()}>
          {isBusy.value ? "Running" : "Run tests"}
        </button>
      </header>
      {hasTests ? undefined : (
        <p class="muted">Add a file of tests (policy.tests.yaml) to run them on your draft.</p>
      )}
      {failure.value === undefined ? undefined : (
        <p class="notice bad" role="alert">
          {failure.value}
        </p>
      )}
      {result.value === undefined ? undefined : <TestResults result={result.value} />}
    </section>
  );
}

function TestResults({ result }: { readonly result: TestPolicyResponse }) {
  const { tests, problems, untestedRules } = result;
  const failed = tests.filter(({ failures }) => failures.length > 0).length;
  return (
    <div role="status">
      <p>
        {failed === 0 && problems.length === 0 ? (
          <Badge tone="good">{formatMany(tests.length, "test")} passed</Badge>
        ) : (
          <Badge tone="bad">
            {problems.length > 0
              ? formatMany(problems.length, "problem")
              : `${formatCount(failed)} of ${formatMany(tests.length, "test")} failed`}
          </Badge>
        )}
      </p>
      <ul class="findings">
        {problems.map(({ id, line, message }) => (
          <li key={`${id}${line}`} class="bad">
            <ToneIcon tone="bad" />
            <span>
              <b>
                {id}, line {line}
              </b>{" "}
              {showText(message)}
            </span>
          </li>
        ))}
        {tests.map(({ name, line, callCount, failures }) => (
          <li key={`${name}${line}`} class={failures.length === 0 ? "good" : "bad"}>
            <ToneIcon tone={failures.length === 0 ? "good" : "bad"} />
            <div>
              {showText(name)} <span class="muted">({formatMany(Number(callCount), "call")})</span>
              {failures.map(({ line: at, message, expected, got }) => (
                <p key={`${at}${message}`}>
                  Line {at}: {showText(message)}
                  {expected === "" ? "" : ` Expected ${showText(expected)}, got ${showText(got)}.`}
                </p>
              ))}
            </div>
          </li>
        ))}
      </ul>
      {untestedRules.length === 0 ? undefined : (
        <p class="muted">
          Rules that no test meets:{" "}
          {untestedRules.map(({ domain, label }) => showText(`${domain}/${label}`)).join(", ")}
        </p>
      )}
    </div>
  );
}

function Release({
  active,
  shadow,
  files,
}: PolicyEditProps & { readonly files: readonly DraftFile[] }) {
  const open = useSignal<"none" | "shadow" | "apply">("none");
  const isReady = judgement.value !== undefined && judgement.value.problems.length === 0;
  if (!mayChange()) return undefined;
  const own = policyFiles(files);
  return (
    <TitledPanel title="Release">
      <p class="muted">
        Start as the shadow policy first. It decides the same calls without effect, and shows which
        ones it would decide differently.
      </p>
      {active !== undefined && active.source !== "admin" ? (
        <p class="notice">
          <ToneIcon tone="notice" /> The active policy comes from elsewhere. It can be replaced from
          here where policies are kept in the store (HEADGATE_POLICY_SOURCE=store); else change it
          there, and try it as a shadow from here.
        </p>
      ) : undefined}
      <div class="tools">
        <button
          type="button"
          class="primary"
          disabled={!isReady}
          onClick={() => (open.value = "shadow")}
        >
          Shadow …
        </button>
        <button type="button" disabled={!isReady} onClick={() => (open.value = "apply")}>
          Apply …
        </button>
      </div>
      {open.value === "none" ? undefined : (
        <ReleaseAction
          isShadow={open.value === "shadow"}
          active={active}
          shadow={shadow}
          files={own}
          onClose={() => {
            open.value = "none";
          }}
        />
      )}
    </TitledPanel>
  );
}

interface ReleaseActionProps extends PolicyEditProps {
  readonly isShadow: boolean;
  readonly files: { file: string; text: string }[];
  readonly onClose: () => void;
}

/** Nothing is released without its differences being shown. */
function ReleaseAction({ isShadow, active, shadow, files, onClose }: ReleaseActionProps) {
  const names = files.map(({ file }) => file.replace(/.*\//, ""));
  const change = isShadow
    ? {
        what: "Shadow policy",
        before: shortVersion(shadow?.version ?? ""),
        after: "your draft, without effect on any answer",
      }
    : {
        what: "Active policy",
        before: shortVersion(active?.version ?? ""),
        after: "your draft, on all replicas within a second",
      };
  const run = async (reason: string): Promise<string> => {
    const answer = await api.policies.applyPolicy({
      files,
      reason,
      shadow: isShadow,
      expectedVersion: active?.version ?? "",
    });
    if (answer.policy === undefined) {
      throw new Error(answer.problems.map(({ message }) => message).join(" "));
    }
    if (!isShadow) draft.value = undefined;
    const version = shortVersion(answer.policy.version);
    return isShadow
      ? `Shadow policy: ${version}. The part "Shadow" of this view shows what it does.`
      : `Active: policy ${version}.`;
  };
  return (
    <ActionDialog
      title={isShadow ? "Run your draft as the shadow policy" : "Apply your draft"}
      verb={isShadow ? "Start the shadow" : "Apply"}
      isDangerous={!isShadow}
      changes={[change]}
      command={(reason) => {
        const flags = [...(isShadow ? ["--shadow"] : []), ...reasonFlags(reason)];
        return writeCommand(["headgate", "apply", ...names, ...flags]);
      }}
      run={run}
      onClose={onClose}
    >
      <h3>What it changes</h3>
      <ChangeSentences />
      <FileDiffs before={filesOf(active)} after={files} />
    </ActionDialog>
  );
}
