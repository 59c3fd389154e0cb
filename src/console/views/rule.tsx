import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { NearLimitKey, Rule } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  formatCount,
  formatNumber,
  formatPercent,
  formatProtoDuration,
  formatTime,
  millisOf,
} from "../data/format.js";
import { formatRoute, keyRoute } from "../data/route.js";
import { findRuleLines } from "../data/rule-lines.js";
import { showText } from "../data/shown-text.js";
import { DataTable, type TableColumn } from "../parts/data-table.jsx";
import { KeyName } from "../parts/key-name.jsx";
import { OverrideList } from "../parts/override-table.jsx";
import { Plot } from "../parts/plot.jsx";
import { Badge, Meter, PolledAnswer, SilentNotice, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { TopKeys } from "../parts/top-keys.jsx";
import { api } from "../state/api.js";
import { useHistory } from "../state/history-poll.js";
import { route } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { type FleetRule, useRules } from "../state/rules.js";

/** One rule: what it did, for whom, and where it stands in the policy. */
export function RulePage() {
  const [, domain = "", label = ""] = route.value.path;
  const rules = useRules();
  return (
    <>
      <p class="crumbs">
        <a href="#/limits">Limits</a> / {showText(domain)}
      </p>
      <h1>{showText(label)}</h1>
      <PolledAnswer polled={rules.value}>
        {({ rules: all, silentReplicas }) => {
          const found = all.find(({ rule }) => rule.domain === domain && rule.label === label);
          if (found === undefined) {
            return (
              <p class="empty">
                The active policy has no such rule. It may have been renamed: see the{" "}
                <a href="#/limits">rules</a> and the <a href="#/policy?tab=history">history</a>.
              </p>
            );
          }
          return (
            <>
              <SilentNotice count={silentReplicas} />
              <RuleTiles found={found} />
            </>
          );
        }}
      </PolledAnswer>
      <RulePlot domain={domain} label={label} />
      <div class="columns">
        <TopKeys title="Denied most" order="denials" count={20} domain={domain} ruleLabel={label} />
        <NearKeys domain={domain} ruleLabel={label} />
      </div>
      <TitledPanel title="Overrides of this rule" aside={<a href="#/overrides">All overrides</a>}>
        <OverrideList domain={domain} ruleLabel={label} />
      </TitledPanel>
      <PolicyText
        rule={
          rules.value.data?.rules.find(({ rule }) => {
            return rule.domain === domain && rule.label === label;
          })?.rule
        }
      />
    </>
  );
}

function RuleTiles({ found: { rule, hits, over, near } }: { readonly found: FleetRule }) {
  return (
    <div class="tiles">
      {rule.limits.map((limit, i) => (
        <Tile
          key={String(i)}
          label={limit.name === "" ? "Limit" : showText(limit.name)}
          value={`${formatCount(limit.hits)} / ${formatProtoDuration(limit.period)}`}
          detail={`burst ${formatCount(limit.burst)}, ${limit.role}`}
        />
      ))}
      {rule.isUnlimited ? <Tile label="Limit" value="unlimited" /> : undefined}
      <Tile label="Hits" value={formatCount(hits)} detail="since the replicas started" />
      <Tile
        label="Over limit"
        value={formatCount(over)}
        detail={formatPercent(hits === 0 ? 0 : over / hits)}
        tone={rule.limits.some(({ role }) => role === "shadow") ? "notice" : "plain"}
      />
      <Tile label="Near limit" value={formatCount(near)} detail="above 80 %" />
    </div>
  );
}

function RulePlot({ domain, label }: { readonly domain: string; readonly label: string }) {
  const history = useHistory({ rules: [{ domain, label }], everyMs: 2_000 });
  return (
    <PolledAnswer polled={history.value}>
      {({ history: past }) => {
        const steps = past.ruleTimeline({ domain, label });
        return (
          <Plot
            title="Hits per second, in steps of 10 s"
            seconds={steps.map(({ second }) => second)}
            format={formatNumber}
            lines={[
              { label: "hits", ink: 1, isFilled: true, values: steps.map(({ hits }) => hits / 10) },
              {
                label: "over limit",
                ink: 2,
                dash: [8, 4],
                values: steps.map(({ overLimit }) => overLimit / 10),
              },
            ]}
          />
        );
      }}
    </PolledAnswer>
  );
}

function NearKeys({ domain, ruleLabel }: { readonly domain: string; readonly ruleLabel: string }) {
  const polled = usePoll(
    (signal) => api.limits.nearLimitKeys({ domain, ruleLabel, count: 20 }, { signal }),
    { everyMs: 2_000, about: `${domain}/${ruleLabel}` },
  );
  const columns: readonly TableColumn<NearLimitKey>[] = [
    {
      id: "key",
      title: "Key",
      value: ({ key }) => formatEntries(key?.entries ?? []),
      render: ({ key }) => <KeyName entries={key?.entries ?? []} />,
    },
    {
      id: "level",
      title: "Level",
      value: ({ usedRatio }) => usedRatio,
      render: ({ usedRatio, isOver }) => <Meter ratio={usedRatio} tone={isOver ? "bad" : "warn"} />,
      isWideOnly: true,
    },
    {
      id: "used",
      title: "Used",
      align: "right",
      value: ({ usedRatio }) => usedRatio,
      render: ({ usedRatio, isOver }) => (
        <>
          {isOver ? <Badge tone="bad">over</Badge> : undefined} {formatPercent(usedRatio)}
        </>
      ),
    },
    {
      id: "seen",
      title: "Seen",
      value: ({ seenAt }) => formatTime(millisOf(seenAt)).slice(11),
      isWideOnly: true,
    },
  ];
  return (
    <TitledPanel title="Nearest to the limit">
      <PolledAnswer polled={polled.value}>
        {({ keys, silentReplicas }) => (
          <>
            <SilentNotice count={silentReplicas} />
            <DataTable
              label="Nearest to the limit"
              columns={columns}
              rows={keys}
              rowId={({ key, replica, ruleLabel: of }) => {
                return `${replica} ${of} ${formatEntries(key?.entries ?? [])}`;
              }}
              href={({ key }) => keyRoute(key?.domain ?? domain, key?.entries ?? [])}
              isPlain={true}
              empty="No key is above 80 % of its limit."
            />
          </>
        )}
      </PolledAnswer>
    </TitledPanel>
  );
}

/** The lines of the policy that the rule stands in. */
function PolicyText({ rule }: { readonly rule: Rule | undefined }) {
  const policy = usePoll((signal) => api.policies.getPolicy({}, { signal }), { everyMs: 15_000 });
  return (
    <TitledPanel
      title="In the policy"
      aside={<a href={formatRoute(["policy"])}>Edit the policy</a>}
    >
      <PolledAnswer polled={policy.value}>
        {({ policy: active }) => {
          const found = (active?.files ?? []).flatMap(({ file, text }) => {
            const range = rule && findRuleLines(text, rule.domain, rule.path);
            return range === undefined ? [] : [{ file, text, range }];
          });
          const [place] = found;
          if (place === undefined) {
            return <p class="empty">The rule's lines were not found in the policy's text.</p>;
          }
          const { first, last } = place.range;
          const lines = place.text.split("\n").slice(first - 1, last);
          return (
            <>
              <p class="muted">
                {showText(place.file.replace(/.*\//, ""))}, lines {first} to {last}
              </p>
              <pre class="listing" tabIndex={0}>
                {lines.map((line, i) => (
                  <span key={String(i)} class="listing-line">
                    <span class="line-number">{first + i}</span>
                    {showText(line)}
                    {"\n"}
                  </span>
                ))}
              </pre>
            </>
          );
        }}
      </PolledAnswer>
    </TitledPanel>
  );
}
