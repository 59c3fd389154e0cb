import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type {
  GetShadowReportResponse,
  PolicyVersion,
  ShadowRule,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatCount, formatNumber, formatTime, millisOf } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { ActionDialog } from "../parts/action-dialog.jsx";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Plot } from "../parts/plot.jsx";
import { PolledAnswer, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { nowMs } from "../state/browser.js";
import { filesOf, shortVersion } from "../state/draft.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";
import { FileDiffs } from "./policy-edit.jsx";

interface ShadowPoint {
  readonly second: number;
  readonly denied: number;
  readonly allowed: number;
}

/** What the report said at each second, kept while other views are looked at. */
const seen = signal<{ readonly version: string; readonly points: readonly ShadowPoint[] }>({
  version: "",
  points: [],
});
const pointsMax = 900;

/** The shadow that is being ended: there is no report to be asked for any more. */
const ending = signal("");

/** Ends the shadow by a call; one that fails leaves it as it is. */
async function endBy<T>(version: string, call: () => Promise<T>): Promise<T> {
  ending.value = version;
  try {
    return await call();
  } catch (error) {
    ending.value = "";
    throw error;
  }
}

/** What the shadow policy would decide otherwise, live; and the ways on from there. */
export function ShadowPanel({
  active,
  shadow,
}: {
  readonly active: PolicyVersion | undefined;
  readonly shadow: PolicyVersion | undefined;
}) {
  const open = useSignal<OpenAction>("none");
  const kept = useRef(shadow);
  if (shadow !== undefined) kept.current = shadow;
  // What came of an action is read while there is no shadow any more.
  const shown = shadow ?? (open.value === "none" ? undefined : kept.current);
  if (shown === undefined) {
    return (
      <section class="panel">
        <p class="empty">
          No shadow policy runs. <a href="#/policy">Edit the policy</a> and start your draft as a
          shadow: this page then shows which calls it would decide differently.
        </p>
      </section>
    );
  }
  return <RunningShadow active={active} shadow={shown} open={open} />;
}

type OpenAction = "none" | "enforce" | "end";

interface RunningShadowProps {
  readonly active: PolicyVersion | undefined;
  readonly shadow: PolicyVersion;
  readonly open: Signal<OpenAction>;
}

function RunningShadow({ active, shadow, open }: RunningShadowProps) {
  const polled = usePoll((signal) => api.policies.getShadowReport({}, { signal }), {
    everyMs: 1_000,
    about: shadow.version,
    isOn: ending.value !== shadow.version,
  });
  const report = polled.value.data;
  useEffect(() => {
    if (report !== undefined) note(report);
  }, [report]);
  return (
    <>
      <PolledAnswer polled={polled.value}>{(data) => <Report report={data} />}</PolledAnswer>
      <Ways active={active} shadow={shadow} open={open} />
      <TitledPanel title="Shadow policy compared with the active policy">
        <FileDiffs before={filesOf(active)} after={filesOf(shadow)} />
      </TitledPanel>
    </>
  );
}

function note({ shadowVersion, rules }: GetShadowReportResponse): void {
  const sum = (of: (rule: ShadowRule) => bigint): number =>
    rules.reduce((total, rule) => total + Number(of(rule)), 0);
  const point = {
    second: Math.floor(nowMs() / 1_000),
    denied: sum(({ newlyDeniedCount }) => newlyDeniedCount),
    allowed: sum(({ newlyAllowedCount }) => newlyAllowedCount),
  };
  const { version, points } = seen.peek();
  const before = version === shadowVersion ? points : [];
  const others = before.filter(({ second }) => second !== point.second);
  seen.value = { version: shadowVersion, points: [...others, point].slice(-pointsMax) };
}

const columns: readonly TableColumn<ShadowRule>[] = [
  textColumn("Rule", ({ domain, label }) => showText(`${domain}/${label}`)),
  numberColumn("Newly denied", ({ newlyDeniedCount }) => newlyDeniedCount),
  numberColumn("Newly allowed", ({ newlyAllowedCount }) => newlyAllowedCount),
  numberColumn("Same", ({ sameCount }) => sameCount),
  numberColumn("Began empty", ({ beganEmptyCount }) => beganEmptyCount, { isWideOnly: true }),
];

function Report({ report }: { readonly report: GetShadowReportResponse }) {
  const { rules, callCount, unseenCallCount, since } = report;
  const { points } = seen.value;
  const last = points.at(-1);
  return (
    <>
      <div class="tiles">
        <Tile
          label="Newly denied"
          value={formatCount(last?.denied ?? 0)}
          detail="pass now, would be refused"
          tone={(last?.denied ?? 0) > 0 ? "warn" : "good"}
        />
        <Tile
          label="Newly allowed"
          value={formatCount(last?.allowed ?? 0)}
          detail="are refused now, would pass"
        />
        <Tile
          label="Compared"
          value={formatCount(callCount)}
          detail={`calls since ${formatTime(millisOf(since))}`}
        />
        <Tile
          label="Not compared"
          value={formatCount(unseenCallCount)}
          detail="they came too fast, or the store was slow"
        />
      </div>
      <Plot
        title="Decided differently, per second"
        seconds={points.slice(1).map(({ second }) => second)}
        format={formatNumber}
        lines={[
          { label: "newly denied", ink: 2, isFilled: true, values: deltas(points, "denied") },
          { label: "newly allowed", ink: 5, dash: [8, 4], values: deltas(points, "allowed") },
        ]}
      />
      <TitledPanel title="By rule">
        <DataTable
          label="Differences by rule"
          columns={columns}
          rows={rules}
          rowId={({ domain, label }) => `${domain} ${label}`}
          href={({ domain, label }) => formatRoute(["rule", domain, label])}
          isPlain={rules.length < 20}
          empty="No calls compared yet."
        />
      </TitledPanel>
    </>
  );
}

function deltas(points: readonly ShadowPoint[], of: "denied" | "allowed"): readonly number[] {
  return points.slice(1).map((point, i) => {
    const before = points[i] ?? point;
    const seconds = Math.max(1, point.second - before.second);
    return Math.max(0, point[of] - before[of]) / seconds;
  });
}

function Ways({ active, shadow, open }: RunningShadowProps) {
  const close = (): void => {
    open.value = "none";
  };
  if (!mayChange()) return undefined;
  const expectedVersion = active?.version ?? "";
  return (
    <div class="tools ways">
      <button type="button" class="primary" onClick={() => (open.value = "enforce")}>
        Enforce …
      </button>
      <button type="button" onClick={() => (open.value = "end")}>
        End the shadow …
      </button>
      {open.value === "enforce" ? (
        <ActionDialog
          title="Make the shadow policy the active one"
          verb="Enforce"
          isDangerous={true}
          changes={[
            {
              what: "Active policy",
              before: shortVersion(active?.version ?? ""),
              after: `${shortVersion(shadow.version)}, on all replicas within a second`,
            },
          ]}
          command={(reason) => writeCommand(["headgate", "enforce", ...reasonFlags(reason)])}
          run={async (reason) => {
            const { policy } = await endBy(shadow.version, () => {
              const { version: shadowVersion } = shadow;
              return api.policies.enforcePolicy({ expectedVersion, reason, shadowVersion });
            });
            return `Active: policy ${shortVersion(policy?.version ?? "")}.`;
          }}
          onClose={close}
        >
          <FileDiffs before={filesOf(active)} after={filesOf(shadow)} />
        </ActionDialog>
      ) : undefined}
      {open.value === "end" ? (
        <ActionDialog
          title="End the shadow policy"
          verb="End the shadow"
          changes={[{ what: "Shadow policy", before: shortVersion(shadow.version), after: "none" }]}
          command={(reason) => writeCommand(["headgate", "rollback", ...reasonFlags(reason)])}
          run={async (reason) => {
            await endBy(shadow.version, () => {
              return api.policies.rollBackPolicy({ expectedVersion, reason });
            });
            return "The shadow policy has ended. The active policy has not changed.";
          }}
          onClose={close}
        />
      ) : undefined}
    </div>
  );
}
