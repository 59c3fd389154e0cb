import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { errorText } from "../state/api.js";
import { useElement } from "../state/element.js";
import { CopyButton } from "./copy-button.jsx";
import { ToneIcon } from "./status.jsx";

/** Something that will be otherwise. */
export interface PlannedChange {
  readonly what: string;
  readonly before: string;
  readonly after: string;
}

/** An action that waits for a person to say yes. */
export interface ActionProps {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** What will change; undefined while the form is not complete. */
  readonly changes: readonly PlannedChange[] | undefined;
  /** The same action as a command, for a reason. */
  readonly command?: (reason: string) => string;
  /** Does it, and tells what came of it. */
  readonly run: (reason: string) => Promise<string>;
  readonly onClose: () => void;
  /** The form, if there is something to choose. */
  readonly children?: ComponentChildren;
}

/** Asks before anything is changed: what will change, and why. Then it tells what came of it. */
export function ActionDialog(props: ActionProps) {
  const { title, onClose } = props;
  const dialog = useElement<HTMLDialogElement>();
  const result = useSignal<string | undefined>(undefined);
  useEffect(() => dialog.current?.showModal(), []);
  const close = (): void => dialog.current?.close();
  return (
    <dialog ref={dialog} class="action" aria-label={title} onClose={onClose}>
      <h2>{title}</h2>
      {result.value === undefined ? (
        <Question
          {...props}
          onCancel={close}
          onDone={(text) => {
            result.value = text;
          }}
        />
      ) : (
        <>
          <p class="notice good" role="status">
            <ToneIcon tone="good" /> {result.value}
          </p>
          <footer>
            <a href="#/audit">See the audit log</a>
            <button type="button" class="primary" onClick={close}>
              Done
            </button>
          </footer>
        </>
      )}
    </dialog>
  );
}

interface QuestionProps extends ActionProps {
  readonly onCancel: () => void;
  readonly onDone: (result: string) => void;
}

/** The form. While a session has to be renewed it stays as it is. */
function Question(props: QuestionProps) {
  const { verb, isDangerous = false, changes, command, run, children, onCancel, onDone } = props;
  const reason = useSignal("");
  const isBusy = useSignal(false);
  const failure = useSignal<string | undefined>(undefined);
  const isReady = changes !== undefined && reason.value.trim() !== "" && !isBusy.value;
  const submit = async (): Promise<void> => {
    isBusy.value = true;
    failure.value = undefined;
    try {
      onDone(await run(reason.value));
    } catch (error) {
      failure.value = errorText(error);
    }
    isBusy.value = false;
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void submit();
      }}
    >
      {children}
      <label class="field">
        <span>Reason, for the audit log</span>
        <input
          required
          maxLength={500}
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value;
          }}
        />
      </label>
      <Changes changes={changes} />
      {command === undefined ? undefined : <Command text={command(reason.value)} />}
      {failure.value === undefined ? undefined : (
        <p class="notice bad" role="alert">
          <ToneIcon tone="bad" /> {failure.value}
        </p>
      )}
      <footer>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={!isReady}>
          {isBusy.value ? "Working" : verb}
        </button>
      </footer>
    </form>
  );
}

function Changes({ changes }: { readonly changes: readonly PlannedChange[] | undefined }) {
  return (
    <section class="changes" aria-live="polite">
      <h3>What will change</h3>
      {changes === undefined ? (
        <p class="muted">Complete the form to see it.</p>
      ) : (
        <dl>
          {changes.map(({ what, before, after }) => (
            <div key={what}>
              <dt>{what}</dt>
              <dd>
                <span class="before">{before}</span> <span class="unseen">becomes</span>
                <span aria-hidden="true">→</span> <b>{after}</b>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} label="Copy as CLI command" />
    </div>
  );
}
