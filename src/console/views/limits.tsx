import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Rule } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatCount, formatLimit, formatMany, formatPercent } from "../data/format.js";
import type { RuleStep } from "../data/history.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Badge, PolledAnswer, SilentNotice } from "../parts/status.jsx";
import { later } from "../state/browser.js";
import { useHistory } from "../state/history-poll.js";
import { type FleetRule, useRules } from "../state/rules.js";

/** The server tells the past of so many rules at once. */
const sparklinesMax = 200;

const rule = textColumn<FleetRule>("Rule", ({ rule: one }) => nameOf(one), {
  render: ({ rule: { domain, label } }) => (
    <>
      <span class="muted">{showText(domain)}/</span>
      <b>{showText(label)}</b>
    </>
  ),
});

const counts: readonly TableColumn<FleetRule>[] = [
  numberColumn("Hits", ({ hits }) => hits),
  numberColumn("Over limit", ({ over }) => over, { isWideOnly: true }),
  numberColumn("Share", shareOf, { render: (one) => formatPercent(shareOf(one)) }),
  numberColumn("Near", ({ near }) => near, { isWideOnly: true }),
  textColumn("Mode", ({ rule: one }) => modeOf(one), {
    render: ({ rule: one }) => <Mode rule={one} />,
  }),
];

function shareOf({ hits, over }: FleetRule): number {
  return hits === 0 ? 0 : over / hits;
}

function nameOf({ domain, label }: Rule): string {
  return showText(`${domain} ${label}`);
}

/** All rules of the active policy, with what they do. */
export function Limits() {
  const rules = useRules();
  const visible = useVisible();
  const history = useHistory({ rules: visible.rules, everyMs: 5_000 });
  const past = history.value.data?.history;
  const columns = [
    rule,
    textColumn<FleetRule>("Limits", ({ rule: one }) => limitsText(one), { isWideOnly: true }),
    textColumn<FleetRule>("15 minutes", () => "", {
      render: ({ rule: one }) => <Sparkline steps={past?.ruleTimeline(one) ?? []} />,
      isWideOnly: true,
    }),
    ...counts,
  ];
  return (
    <>
      <h1>Limits</h1>
      <section class="panel">
        <PolledAnswer polled={rules.value}>
          {({ rules: rows, silentReplicas, policyVersion }) => (
            <>
              <SilentNotice count={silentReplicas} />
              <DataTable
                label="Rules"
                columns={columns}
                rows={rows}
                rowId={({ id }) => id}
                href={({ rule: one }) => formatRoute(["rule", one.domain, one.label])}
                onVisible={visible.note}
                empty={
                  <>
                    The active policy has no limits. <a href="#/policy">Write some</a>
                  </>
                }
              />
              <p class="muted">
                {formatMany(rows.length, "rule")} of policy {showText(policyVersion)}. Counts are
                since the replicas started.
              </p>
            </>
          )}
        </PolledAnswer>
      </section>
    </>
  );
}

/** Which rules can be seen, once the reader has stopped to scroll. */
function useVisible() {
  const seen = useSignal<readonly { readonly domain: string; readonly label: string }[]>([]);
  const cancel = useRef<(() => void) | undefined>(undefined);
  useEffect(() => () => cancel.current?.(), []);
  return {
    rules: seen.value,
    note: (rows: readonly FleetRule[]): void => {
      cancel.current?.();
      cancel.current = later(300, () => {
        seen.value = rows
          .slice(0, sparklinesMax)
          .map(({ rule: { domain, label } }) => ({ domain, label }));
      });
    },
  };
}

function limitsText({ isUnlimited, limits }: Rule): string {
  if (isUnlimited) return "unlimited";
  return limits
    .map((limit) => {
      const name = limit.name === "" ? "" : `${showText(limit.name)}: `;
      return `${name}${formatLimit(limit)}`;
    })
    .join("; ");
}

function modeOf({ isUnlimited, limits }: Rule): string {
  if (isUnlimited) return "unlimited";
  const roles = [...new Set(limits.map(({ role }) => role))];
  return roles.join(", ");
}

function Mode({ rule }: { readonly rule: Rule }) {
  const mode = modeOf(rule);
  if (mode.includes("shadow")) return <Badge tone="notice">shadow</Badge>;
  return <span class="muted">{mode}</span>;
}

/** The last 15 minutes of a rule in a table's cell: calls, and those over the limit dashed. */
function Sparkline({ steps }: { readonly steps: readonly RuleStep[] }) {
  const most = Math.max(1, ...steps.map(({ hits }) => hits));
  const pathOf = (of: (step: RuleStep) => number): string =>
    steps
      .map((step, i) => {
        const x = (100 * i) / Math.max(1, steps.length - 1);
        return `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${(19 - (18 * of(step)) / most).toFixed(1)}`;
      })
      .join("");
  if (steps.length < 2) return <span class="muted">-</span>;
  const label = `at most ${formatCount(most)} hits in 10 s`;
  return (
    <svg
      class="sparkline"
      viewBox="0 0 100 20"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="all" d={pathOf(({ hits }) => hits)} />
      <path class="over" d={pathOf(({ overLimit }) => overLimit)} />
    </svg>
  );
}
