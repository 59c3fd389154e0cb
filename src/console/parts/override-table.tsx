import { useSignal } from "@preact/signals";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { Override } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatEffect, formatTime, millisOf } from "../data/format.js";
import { keyRoute } from "../data/route.js";
import { clipText, showText } from "../data/shown-text.js";
import { api } from "../state/api.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";
import { DataTable, type TableColumn, textColumn } from "./data-table.jsx";
import { RemoveOverrideAction } from "./key-actions.jsx";
import { KeyName } from "./key-name.jsx";
import { Badge, PolledAnswer } from "./status.jsx";

const overridesMax = 10_000;

async function listAll(
  question: { readonly domain: string; readonly ruleLabel: string },
  signal: AbortSignal,
): Promise<readonly Override[]> {
  const all: Override[] = [];
  let pageToken = "";
  do {
    const page = await api.limits.listOverrides(
      { ...question, pageSize: 1_000, pageToken },
      { signal },
    );
    all.push(...page.overrides);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && all.length < overridesMax);
  return all;
}

const columns: readonly TableColumn<Override>[] = [
  textColumn("Key", ({ domain, entries }) => `${domain} ${formatEntries(entries)}`, {
    render: ({ domain, entries, isPrefix }) => (
      <>
        <span class="muted">{showText(domain)} </span>
        <KeyName entries={entries} />
        {isPrefix ? <span class="muted"> and all below</span> : ""}
      </>
    ),
  }),
  textColumn("Effect", (one) => formatEffect(one), {
    render: (one) =>
      one.effect.case === "isFrozen" ? <Badge tone="bad">frozen</Badge> : formatEffect(one),
  }),
  textColumn("Until", untilText, { render: (one) => <span class="whole">{untilText(one)}</span> }),
  textColumn("By", ({ author }) => showText(author), { isWideOnly: true }),
  textColumn("Reason", ({ reason }) => showText(clipText(reason, 200)), { isWideOnly: true }),
];

function untilText({ expiresAt }: Override): string {
  return formatTime(millisOf(expiresAt)) || "removed";
}

/** Overrides, of one rule or of all. */
export function OverrideList({
  domain = "",
  ruleLabel = "",
}: {
  readonly domain?: string;
  readonly ruleLabel?: string;
}) {
  const removed = useSignal<Override | undefined>(undefined);
  const polled = usePoll((signal) => listAll({ domain, ruleLabel }, signal), {
    everyMs: (all) => (all.length > 500 ? 10_000 : 2_000),
    about: `${domain}/${ruleLabel}`,
  });
  const remove = textColumn<Override>("", () => "", {
    render: (one) =>
      mayChange(one.domain) ? (
        <button type="button" onClick={() => (removed.value = one)}>
          Remove …
        </button>
      ) : undefined,
  });
  return (
    <>
      <PolledAnswer polled={polled.value}>
        {(all) => (
          <DataTable
            label="Overrides"
            name="o."
            columns={[...columns, remove]}
            rows={all}
            rowId={(one) => `${one.domain} ${one.id}`}
            href={(one) => keyRoute(one.domain, one.entries)}
            isPlain={ruleLabel !== ""}
            empty="No overrides: the limits of the policy apply. Set one on the page of a key."
          />
        )}
      </PolledAnswer>
      {removed.value === undefined ? undefined : (
        <RemoveOverrideAction
          override={removed.value}
          onClose={() => {
            removed.value = undefined;
          }}
        />
      )}
    </>
  );
}
