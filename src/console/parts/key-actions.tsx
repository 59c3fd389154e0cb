import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import {
  AmountSchema,
  type KeyState,
  type Override,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { keyCommand, reasonFlags } from "../data/cli-command.js";
import { formatCount, formatEffect, formatLimit, formatMany, formatTime } from "../data/format.js";
import { clipText, showText } from "../data/shown-text.js";
import { readSpan } from "../data/span.js";
import { api } from "../state/api.js";
import { nowMs } from "../state/browser.js";
import { ActionDialog, type PlannedChange } from "./action-dialog.jsx";

/** The key that an action is about, as it is now. */
export interface ActionKey {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly states: readonly KeyState[];
}

interface KeyActionProps {
  readonly target: ActionKey;
  readonly onClose: () => void;
}

/** What names the key in a dialog's title. */
function titleOf({ domain, entries }: ActionKey): string {
  return showText(clipText(`${domain} ${formatEntries(entries)}`, 80));
}

function entriesOf(entries: readonly DescriptorEntry[]): { key: string; value: string }[] {
  return entries.map(({ key, value }) => ({ key, value }));
}

/** The override that is there for exactly this target; what is set replaces it. */
async function findOverride(
  { domain, entries }: ActionKey,
  { limitName, isPrefix }: { readonly limitName: string; readonly isPrefix: boolean },
): Promise<Override | undefined> {
  const beginsWith = entriesOf(entries);
  let pageToken = "";
  do {
    const page = await api.limits.listOverrides({ domain, beginsWith, pageToken, pageSize: 1_000 });
    const found = page.overrides.find(
      (one) =>
        one.entries.length === entries.length &&
        one.isPrefix === isPrefix &&
        one.limitName === limitName,
    );
    if (found !== undefined) return found;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return undefined;
}

/** Sets an override, in the place of the one that is there; tells which it is. */
async function setOverride(
  target: ActionKey,
  wanted: {
    readonly limitName: string;
    readonly isPrefix: boolean;
    readonly reason: string;
    readonly effect: Override["effect"];
    readonly expiresMs: number | undefined;
  },
): Promise<string> {
  const { expiresMs, effect, ...others } = wanted;
  const before = await findOverride(target, wanted);
  const { override } = await api.limits.setOverride({
    override: {
      ...others,
      id: before?.id ?? "",
      domain: target.domain,
      entries: entriesOf(target.entries),
      effect,
      ...(expiresMs === undefined ? {} : { expiresAt: timestampFromMs(expiresMs) }),
    },
    expectedVersion: before?.version ?? 0n,
  });
  const { id = "", version = 0n } = override ?? {};
  return `Override ${id} is version ${version}, on all replicas within a second.`;
}

interface OverrideForm {
  readonly kind: "multiplier" | "amount";
  readonly times: string;
  readonly hits: string;
  readonly burst: string;
  readonly limitName: string;
  readonly isPrefix: boolean;
  readonly until: string;
}

/** Gives the key another limit. */
export function OverrideAction({ target, onClose }: KeyActionProps) {
  const { states } = target;
  const form = useSignal<OverrideForm>({
    kind: "multiplier",
    times: "2",
    hits: String(states[0]?.limit?.hits ?? 10n),
    burst: "",
    limitName: "",
    isPrefix: false,
    until: "3d",
  });
  const set = (part: Partial<OverrideForm>): void => {
    form.value = { ...form.value, ...part };
  };
  const { kind, times, hits, burst, limitName, isPrefix, until } = form.value;
  const effect = readEffect(form.value);
  const spanMs = readSpan(until);
  const isForever = until.trim() === "";
  const isReady = effect !== undefined && (isForever || spanMs !== undefined);
  const flags = [
    ...(kind === "multiplier" ? ["--times", `${times}x`] : ["--hits", hits]),
    ...(kind === "amount" && burst !== "" ? ["--burst", burst] : []),
    ...(isForever ? [] : ["--for", until.trim()]),
  ];
  return (
    <ActionDialog
      title={`Override ${titleOf(target)}`}
      verb="Set override"
      changes={isReady ? overrideChanges(target, form.value, spanMs) : undefined}
      command={(reason) =>
        keyCommand(["keys", "override"], { ...target, limitName, isPrefix }, [
          ...flags,
          ...reasonFlags(reason),
        ])
      }
      run={(reason) =>
        setOverride(target, {
          limitName,
          isPrefix,
          reason,
          effect: effect ?? { case: undefined },
          expiresMs: spanMs === undefined ? undefined : nowMs() + spanMs,
        })
      }
      onClose={onClose}
    >
      <OverrideFields states={states} form={form.value} set={set} />
    </ActionDialog>
  );
}

function OverrideFields({
  states,
  form: { kind, times, hits, burst, limitName, isPrefix, until },
  set,
}: {
  readonly states: readonly KeyState[];
  readonly form: OverrideForm;
  readonly set: (part: Partial<OverrideForm>) => void;
}) {
  return (
    <>
      <fieldset class="choices">
        <legend>Effect</legend>
        <label>
          <input
            type="radio"
            checked={kind === "multiplier"}
            onInput={() => set({ kind: "multiplier" })}
          />{" "}
          times as much
        </label>
        <label>
          <input type="radio" checked={kind === "amount"} onInput={() => set({ kind: "amount" })} />
          <span> another amount</span>
        </label>
      </fieldset>
      <div class="fields">
        {kind === "multiplier" ? (
          <Field label="Times" value={times} onValue={(value) => set({ times: value })} />
        ) : (
          <>
            <Field label="Hits a period" value={hits} onValue={(value) => set({ hits: value })} />
            <Field
              label="Burst (empty: as hits)"
              value={burst}
              onValue={(value) => set({ burst: value })}
            />
          </>
        )}
        <Field
          label="Duration (3d, 12h30m; empty: until removed)"
          value={until}
          onValue={(value) => set({ until: value })}
        />
      </div>
      <LimitChoice
        states={states}
        value={limitName}
        onValue={(value) => set({ limitName: value })}
      />
      <label class="choices">
        <span>
          <input
            type="checkbox"
            checked={isPrefix}
            onInput={(event) => set({ isPrefix: event.currentTarget.checked })}
          />{" "}
          all keys that begin with these entries
        </span>
      </label>
    </>
  );
}

function readEffect({ kind, times, hits, burst }: OverrideForm) {
  if (kind === "multiplier") {
    const by = Number(times);
    if (times.trim() === "" || !Number.isFinite(by) || by < 0) return undefined;
    return { case: "multiplier", value: by } as const;
  }
  if (!/^\d{1,15}$/.test(hits) || !/^\d{0,15}$/.test(burst)) return undefined;
  const value = create(AmountSchema, { hits: BigInt(hits), burst: BigInt(burst || "0") });
  return { case: "amount", value } as const;
}

function overrideChanges(
  { states }: ActionKey,
  form: OverrideForm,
  spanMs: number | undefined,
): readonly PlannedChange[] {
  const { kind, times, hits, burst, limitName, isPrefix } = form;
  const touched = states.filter(({ limit }) => limitName === "" || limit?.name === limitName);
  const after =
    kind === "multiplier"
      ? `times ${times} of what the policy says`
      : `${formatCount(BigInt(hits))} hits, burst ${formatCount(BigInt(burst || hits))}`;
  const end =
    spanMs === undefined ? "until it is removed" : `until ${formatTime(nowMs() + spanMs)}`;
  return [
    ...touched.map(({ ruleLabel, limit, override }) => ({
      what: limit?.name || ruleLabel,
      before:
        (limit === undefined ? "?" : formatLimit(limit)) +
        (override === undefined ? "" : ` (override: ${formatEffect(override)})`),
      after: `${after}, ${end}`,
    })),
    ...(isPrefix
      ? [{ what: "Keys below", before: "the policy's limits", after: `the same, ${end}` }]
      : []),
  ];
}

/** Empties the key's buckets. */
export function ResetAction({ target, onClose }: KeyActionProps) {
  const { domain, entries, states } = target;
  const limitName = useSignal("");
  const touched = states.filter(({ limit }) => {
    return limitName.value === "" || limit?.name === limitName.value;
  });
  return (
    <ActionDialog
      title={`Reset ${titleOf(target)}`}
      verb="Reset"
      changes={touched.map(({ limit, ruleLabel, usedHits, burst }) => ({
        what: limit?.name || ruleLabel,
        before: `${formatCount(Math.round(usedHits))} of ${formatCount(burst)} used`,
        after: "0 used",
      }))}
      command={(reason) =>
        keyCommand(
          ["keys", "reset"],
          { domain, entries, limitName: limitName.value },
          reasonFlags(reason),
        )
      }
      run={async (reason) => {
        const key = { domain, entries: entriesOf(entries), limitName: limitName.value };
        const { resetCount, carriedLimitsLeft } = await api.limits.resetKey({ key, reason });
        const left = carriedLimitsLeft
          ? " Requests also carry limits of their own, whose buckets are left as they are."
          : "";
        return `Emptied ${formatMany(resetCount, "bucket")}.${left}`;
      }}
      onClose={onClose}
    >
      <LimitChoice
        states={states}
        value={limitName.value}
        onValue={(value) => {
          limitName.value = value;
        }}
      />
    </ActionDialog>
  );
}

/** Lets nothing of the key pass. */
export function FreezeAction({ target, onClose }: KeyActionProps) {
  const { domain, entries, states } = target;
  const until = useSignal("1h");
  const spanMs = readSpan(until.value);
  const isForever = until.value.trim() === "";
  const end = isForever ? "until it is removed" : `until ${formatTime(nowMs() + (spanMs ?? 0))}`;
  const flags = isForever ? [] : ["--for", until.value.trim()];
  return (
    <ActionDialog
      title={`Freeze ${titleOf(target)}`}
      verb="Freeze"
      isDangerous={true}
      changes={
        isForever || spanMs !== undefined
          ? states.map(({ limit, ruleLabel }) => ({
              what: limit?.name || ruleLabel,
              before: limit === undefined ? "?" : formatLimit(limit),
              after: `nothing passes, ${end}`,
            }))
          : undefined
      }
      command={(reason) =>
        keyCommand(["keys", "freeze"], { domain, entries }, [...flags, ...reasonFlags(reason)])
      }
      run={(reason) =>
        setOverride(target, {
          limitName: "",
          isPrefix: false,
          reason,
          effect: { case: "isFrozen", value: true },
          expiresMs: spanMs === undefined ? undefined : nowMs() + spanMs,
        })
      }
      onClose={onClose}
    >
      <Field
        label="Duration (1h, 3d; empty: until removed)"
        value={until.value}
        onValue={(value) => {
          until.value = value;
        }}
      />
    </ActionDialog>
  );
}

/** Takes an override away: the policy's limit holds again. */
export function RemoveOverrideAction({
  override,
  onClose,
}: {
  readonly override: Override;
  readonly onClose: () => void;
}) {
  const { id, domain, entries, limitName, isPrefix, version } = override;
  const isFrozen = override.effect.case === "isFrozen";
  const names = isFrozen ? ["keys", "unfreeze"] : ["keys", "override"];
  return (
    <ActionDialog
      title={`Remove override ${id}`}
      verb="Remove"
      changes={[
        {
          what: showText(clipText(`${domain} ${formatEntries(entries)}`, 200)),
          before: formatEffect(override),
          after: "the policy's limit",
        },
      ]}
      command={(reason) =>
        keyCommand(names, { domain, entries, limitName, isPrefix }, [
          ...(isFrozen ? [] : ["--remove"]),
          ...reasonFlags(reason),
        ])
      }
      run={async (reason) => {
        // What a key shows of its override has no version: it is looked up.
        const target = { domain, entries, states: [] };
        const known = version > 0n ? override : await findOverride(target, { limitName, isPrefix });
        await api.limits.deleteOverride({
          id,
          domain,
          reason,
          expectedVersion: known?.version ?? 0n,
        });
        return "Removed. It applies on all replicas within a second.";
      }}
      onClose={onClose}
    />
  );
}

function LimitChoice({
  states,
  value,
  onValue,
}: {
  readonly states: readonly KeyState[];
  readonly value: string;
  readonly onValue: (value: string) => void;
}) {
  const names = states.flatMap(({ limit }) => limit?.name || []);
  if (names.length < 2) return undefined;
  return (
    <label class="field">
      <span>Limit</span>
      <select value={value} onInput={(event) => onValue(event.currentTarget.value)}>
        <option value="">all limits of the rule</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {showText(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Field({
  label,
  value,
  onValue,
}: {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input value={value} onInput={(event) => onValue(event.currentTarget.value)} />
    </label>
  );
}
