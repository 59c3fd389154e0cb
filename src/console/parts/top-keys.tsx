import { formatEntries } from "../../core/limits/descriptor-text.js";
import { type KeyCount, TopOrder } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatCount, formatTime, millisOf } from "../data/format.js";
import { keyRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { api } from "../state/api.js";
import { usePoll } from "../state/poll.js";
import { DataTable, type TableColumn } from "./data-table.jsx";
import { KeyName } from "./key-name.jsx";
import { PolledAnswer, SilentNotice } from "./status.jsx";
import { TitledPanel } from "./titled-panel.jsx";

/** Which keys are shown. */
export interface TopKeysProps {
  readonly title: string;
  readonly order: "hits" | "denials";
  readonly count: number;
  readonly domain?: string;
  readonly ruleLabel?: string;
}

interface TopRow {
  readonly id: string;
  readonly domain: string;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly ruleLabel: string;
  readonly count: number;
}

/** The keys that ask, or are denied, most often; what several replicas have seen is added up. */
export function TopKeys({ title, order, count, domain = "", ruleLabel = "" }: TopKeysProps) {
  const polled = usePoll(
    (signal) => {
      const by = order === "hits" ? TopOrder.HITS : TopOrder.DENIALS;
      return api.limits.topKeys({ domain, ruleLabel, order: by, count }, { signal });
    },
    { everyMs: 5_000, about: `${domain}/${ruleLabel}` },
  );
  const columns: readonly TableColumn<TopRow>[] = [
    {
      id: "key",
      title: "Key",
      value: (row) => formatEntries(row.entries),
      render: (row) => <KeyName entries={row.entries} />,
    },
    ...(ruleLabel === ""
      ? [
          {
            id: "rule",
            title: "Rule",
            value: (row: TopRow) => showText(`${row.domain}/${row.ruleLabel}`),
            isWideOnly: true,
          },
        ]
      : []),
    {
      id: "count",
      title: order === "hits" ? "Hits" : "Denied",
      align: "right",
      value: (row) => row.count,
      render: (row) => formatCount(row.count),
    },
  ];
  return (
    <TitledPanel
      title={title}
      aside={<span class="muted">since {formatTime(millisOf(polled.value.data?.since))}</span>}
    >
      <PolledAnswer polled={polled.value}>
        {({ keys, silentReplicas }) => (
          <>
            <SilentNotice count={silentReplicas} />
            <DataTable
              label={title}
              columns={columns}
              rows={sumRows(keys).slice(0, count)}
              rowId={({ id }) => id}
              href={({ domain: of, entries }) => keyRoute(of, entries)}
              isPlain={true}
              empty={order === "hits" ? "No requests yet." : "Nobody was denied."}
            />
          </>
        )}
      </PolledAnswer>
    </TitledPanel>
  );
}

function sumRows(keys: readonly KeyCount[]): readonly TopRow[] {
  const rows = new Map<string, TopRow>();
  for (const { key, ruleLabel, count } of keys) {
    const { domain = "", entries = [] } = key ?? {};
    const id = JSON.stringify([domain, ruleLabel, formatEntries(entries)]);
    const before = rows.get(id)?.count ?? 0;
    rows.set(id, { id, domain, entries, ruleLabel, count: before + Number(count) });
  }
  return [...rows.values()].sort((a, b) => b.count - a.count);
}
