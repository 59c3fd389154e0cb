import { useSignal } from "@preact/signals";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { Override } from "../../gen/headgate/admin/v1/admin_pb.js";
import { keyCommand } from "../data/cli-command.js";
import { formatRoute, keyOfRoute } from "../data/route.js";
import { clipText, showText } from "../data/shown-text.js";
import { BucketPanel } from "../parts/bucket.jsx";
import { CopyButton } from "../parts/copy-button.jsx";
import { DecisionTable } from "../parts/decisions.jsx";
import { ExplainTree } from "../parts/explain-tree.jsx";
import {
  type ActionKey,
  FreezeAction,
  OverrideAction,
  RemoveOverrideAction,
  ResetAction,
} from "../parts/key-actions.jsx";
import { PolledAnswer, ToneIcon } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { route } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";
import { useTail } from "../state/tail.js";

/** A key: its buckets, why it passes or is refused, and what may be done about it. */
export function KeyPage() {
  const key = keyOfRoute(route.value.path);
  if (key === undefined) return <NoKey />;
  return <KnownKey {...key} />;
}

function NoKey() {
  return (
    <>
      <h1>No key</h1>
      <p class="empty">
        The link names no key. Press <kbd>/</kbd> and enter one: shop plan=free,user=ann
      </p>
    </>
  );
}

type KnownKeyProps = NonNullable<ReturnType<typeof keyOfRoute>>;

function KnownKey({ domain, entries }: KnownKeyProps) {
  const plain = entries.map(({ key, value }) => ({ key, value }));
  const about = JSON.stringify([domain, entries]);
  const buckets = usePoll(
    (signal) => api.limits.getKey({ key: { domain, entries: plain } }, { signal }),
    { everyMs: 1_000, about },
  );
  const states = buckets.value.data?.states ?? [];
  const labels = [...new Set(states.map(({ ruleLabel }) => ruleLabel))];
  const text = formatEntries(entries);
  return (
    <>
      <div class="view-head">
        <div>
          <p class="crumbs">
            <a href="#/limits">Limits</a> / {showText(domain)}
            {labels.map((label) => (
              <span key={label}>
                {" / "}
                <a href={formatRoute(["rule", domain, label])}>{showText(label)}</a>
              </span>
            ))}
          </p>
          <h1 title={clipText(showText(text), 2_000)}>
            <bdi class="mono">{clipText(showText(text), 160)}</bdi>
          </h1>
        </div>
        <Actions target={{ domain, entries, states }} />
      </div>
      <div class="columns">
        <PolledAnswer polled={buckets.value}>
          {(data) =>
            data.states.length === 0 ? (
              <section class="panel">
                <h2>Bucket</h2>
                <p class="empty">No limit meets this key: it passes. The explanation says why.</p>
              </section>
            ) : (
              data.states.map((state) => (
                <BucketPanel key={`${state.ruleLabel}/${state.limit?.name ?? ""}`} state={state} />
              ))
            )
          }
        </PolledAnswer>
        <Why domain={domain} entries={plain} />
        <LastDecisions domain={domain} entries={plain} />
      </div>
    </>
  );
}

interface PartProps {
  readonly domain: string;
  readonly entries: { key: string; value: string }[];
}

function Why({ domain, entries }: PartProps) {
  const explained = usePoll(
    (signal) => {
      const value = { domain, descriptors: [{ entries }] };
      return api.limits.explain({ request: { case: "descriptors", value } }, { signal });
    },
    { everyMs: 2_000, about: JSON.stringify([domain, entries]) },
  );
  return (
    <section class="panel">
      <header>
        <h2>Why?</h2>
        <CopyButton
          text={keyCommand(["explain"], { domain, entries })}
          label="Copy as CLI command"
        />
      </header>
      <PolledAnswer polled={explained.value}>
        {({ current }) =>
          current === undefined ? (
            <p class="empty">Nothing was explained.</p>
          ) : (
            <ExplainTree explanation={current} />
          )
        }
      </PolledAnswer>
    </section>
  );
}

function LastDecisions({ domain, entries }: PartProps) {
  const question = { domain, ruleLabel: "", deniedOnly: false, sampleRatio: 1 };
  const tail = useTail({ ...question, having: entries });
  return (
    <TitledPanel
      title="Last decisions"
      aside={<span class="muted">since this page was opened</span>}
    >
      {tail.value.error === undefined ? undefined : (
        <p class="notice warn">
          <ToneIcon tone="warn" /> {tail.value.error}
        </p>
      )}
      <DecisionTable rows={tail.value.decisions.slice(0, 20)} isOfOneKey={true} />
    </TitledPanel>
  );
}

/** What an operator may do; a reader sees the commands' names nowhere. */
function Actions({ target }: { readonly target: ActionKey }) {
  const open = useSignal<"none" | "override" | "reset" | "freeze">("none");
  // As it was when it was to be removed: the key's page soon knows it no more.
  const removed = useSignal<Override | undefined>(undefined);
  const close = (): void => {
    open.value = "none";
  };
  const override = target.states.find((state) => state.override !== undefined)?.override;
  if (!mayChange(target.domain)) return undefined;
  const isFrozen = override?.effect.case === "isFrozen";
  const hasLimits = target.states.length > 0;
  return (
    <div class="tools">
      <button type="button" disabled={!hasLimits} onClick={() => (open.value = "override")}>
        Override …
      </button>
      <button type="button" disabled={!hasLimits} onClick={() => (open.value = "reset")}>
        Reset …
      </button>
      {isFrozen ? undefined : (
        <button type="button" disabled={!hasLimits} onClick={() => (open.value = "freeze")}>
          Freeze …
        </button>
      )}
      {override === undefined ? undefined : (
        <button type="button" onClick={() => (removed.value = override)}>
          {isFrozen ? "Unfreeze …" : "Remove override …"}
        </button>
      )}
      {open.value === "override" ? <OverrideAction target={target} onClose={close} /> : undefined}
      {open.value === "reset" ? <ResetAction target={target} onClose={close} /> : undefined}
      {open.value === "freeze" ? <FreezeAction target={target} onClose={close} /> : undefined}
      {removed.value === undefined ? undefined : (
        <RemoveOverrideAction
          override={removed.value}
          onClose={() => {
            removed.value = undefined;
          }}
        />
      )}
    </div>
  );
}
