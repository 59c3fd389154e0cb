import { type Signal, useSignal } from "@preact/signals";
import type { GateThresholds } from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatNumber } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { ActionDialog, type PlannedChange } from "../parts/action-dialog.jsx";
import { Badge, PolledAnswer } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";

/** A gate: its state, and its thresholds, which operators change while it runs. */
export function GatePanel({
  name,
  state,
  none,
}: {
  /** A service, or `room:NAME`. */
  readonly name: string;
  /** Empty: there is no gate. */
  readonly state: string;
  /** What to say then. */
  readonly none: string;
}) {
  const isShown = useSignal(false);
  const polled = usePoll((signal) => api.fleet.getGateThresholds({ service: name }, { signal }), {
    everyMs: 3_000,
    about: name,
    isOn: isShown.value,
  });
  if (state === "") {
    return (
      <section class="panel">
        <h2>Gate</h2>
        <p class="empty">{none}</p>
      </section>
    );
  }
  return (
    <TitledPanel
      title="Gate"
      aside={<Badge tone={state === "open" ? "good" : "bad"}>{state}</Badge>}
    >
      {isShown.value ? undefined : (
        <button
          type="button"
          onClick={() => {
            isShown.value = true;
          }}
        >
          Show thresholds
        </button>
      )}
      <PolledAnswer polled={polled.value} isAsked={isShown.value}>
        {({ thresholds }) => <Thresholds name={name} thresholds={thresholds} />}
      </PolledAnswer>
    </TitledPanel>
  );
}

function Thresholds({
  name,
  thresholds,
}: {
  readonly name: string;
  readonly thresholds: GateThresholds | undefined;
}) {
  const isOpen = useSignal(false);
  if (thresholds === undefined) return <p class="empty">It has no thresholds.</p>;
  return (
    <>
      <p>
        Opens below <b>{formatNumber(thresholds.openBelow)}</b>, closes above{" "}
        <b>{formatNumber(thresholds.closeAbove)}</b>.{" "}
        {thresholds.isOverridden ? (
          <Badge tone="notice">set by an operator</Badge>
        ) : (
          <span class="muted">As the policy says.</span>
        )}
      </p>
      {mayChange() ? (
        <button type="button" onClick={() => (isOpen.value = true)}>
          Change thresholds …
        </button>
      ) : undefined}
      {isOpen.value ? (
        <GateAction
          service={name}
          thresholds={thresholds}
          onClose={() => {
            isOpen.value = false;
          }}
        />
      ) : undefined}
    </>
  );
}

interface GateForm {
  readonly open: string;
  readonly close: string;
  readonly clear: boolean;
}

function gateCommand(service: string, { open, close, clear }: GateForm, reason: string): string {
  return writeCommand([
    ...["headgate", "gate", clear ? "clear" : "set", service],
    ...(clear ? [] : ["--open-below", open, "--close-above", close]),
    ...reasonFlags(reason),
  ]);
}

function change(what: string, before: number, after: number | undefined): PlannedChange {
  const text = after === undefined ? "the policy's" : formatNumber(after);
  return { what, before: formatNumber(before), after: text };
}

function GateAction({
  service,
  thresholds,
  onClose,
}: {
  readonly service: string;
  readonly thresholds: GateThresholds;
  readonly onClose: () => void;
}) {
  const { openBelow, closeAbove, version, isOverridden } = thresholds;
  const form = useSignal<GateForm>({
    open: String(openBelow),
    close: String(closeAbove),
    clear: false,
  });
  const open = Number(form.value.open);
  const close = Number(form.value.close);
  const { clear } = form.value;
  const isValid = clear || (Number.isFinite(open) && Number.isFinite(close) && open < close);
  return (
    <ActionDialog
      title={`Gate of ${showText(service)}`}
      verb="Change thresholds"
      changes={
        isValid
          ? [
              change("Opens below", openBelow, clear ? undefined : open),
              change("Closes above", closeAbove, clear ? undefined : close),
            ]
          : undefined
      }
      command={(reason) => gateCommand(service, form.value, reason)}
      run={async (reason) => {
        await api.fleet.setGateThresholds({
          service,
          reason,
          clear,
          expectedVersion: version,
          ...(clear ? {} : { openBelow: open, closeAbove: close }),
        });
        return "Changed. It applies on all replicas within a second.";
      }}
      onClose={onClose}
    >
      <GateFields form={form} isOverridden={isOverridden} />
    </ActionDialog>
  );
}

function GateFields({
  form,
  isOverridden,
}: {
  readonly form: Signal<GateForm>;
  readonly isOverridden: boolean;
}) {
  const { clear } = form.value;
  const field = (label: string, name: "open" | "close") => (
    <label class="field">
      <span>{label}</span>
      <input
        inputMode="decimal"
        disabled={clear}
        value={form.value[name]}
        onInput={(event) => {
          form.value = { ...form.value, [name]: event.currentTarget.value };
        }}
      />
    </label>
  );
  return (
    <>
      <div class="fields">
        {field("Open below (share of the capacity, such as 0.6)", "open")}
        {field("Close above", "close")}
      </div>
      {isOverridden ? (
        <label class="choices">
          <span>
            <input
              type="checkbox"
              checked={clear}
              onInput={(event) => {
                form.value = { ...form.value, clear: event.currentTarget.checked };
              }}
            />{" "}
            back to the policy's own
          </span>
        </label>
      ) : undefined}
    </>
  );
}
