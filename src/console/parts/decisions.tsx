import { formatEntries } from "../../core/limits/descriptor-text.js";
import { formatClock, millisOf } from "../data/format.js";
import { keyRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import type { Tail } from "../state/tail.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "./data-table.jsx";
import { KeyName } from "./key-name.jsx";
import { Badge } from "./status.jsx";

type Row = Tail["decisions"][number];

const time = textColumn<Row>("Time (UTC)", ({ sample }) => {
  return formatClock(millisOf(sample.time) ?? 0);
});

const verdict = textColumn<Row>("Verdict", ({ sample }) => verdictOf(sample), {
  render: ({ sample }) => (
    <Badge tone={sample.isDenied ? "bad" : "good"}>{verdictOf(sample)}</Badge>
  ),
});

const key = textColumn<Row>("Key", ({ sample }) => formatEntries(sample.entries), {
  render: ({ sample: { domain, entries } }) =>
    entries.length === 0 ? (
      "none"
    ) : (
      <a href={keyRoute(domain, entries)}>
        <KeyName entries={entries} />
      </a>
    ),
});

const others: readonly TableColumn<Row>[] = [
  textColumn("Rule", ({ sample: { domain, ruleLabel } }) => {
    return showText(ruleLabel === "" ? "no rule" : `${domain}/${ruleLabel}`);
  }),
  numberColumn("Hits", ({ sample }) => sample.hits, { isWideOnly: true }),
  numberColumn("Left", ({ sample }) => sample.remainingHits, { isWideOnly: true }),
  textColumn("Decided by", ({ sample }) => sample.decidedBy, { isWideOnly: true }),
  textColumn("Replica", ({ sample }) => showText(sample.replica.slice(0, 8)), {
    isWideOnly: true,
  }),
];

function verdictOf({ isDenied }: Row["sample"]): string {
  return isDenied ? "denied" : "allowed";
}

/** Decisions in a table, the newest first. */
export function DecisionTable({
  rows,
  isOfOneKey = false,
}: {
  readonly rows: readonly Row[];
  readonly isOfOneKey?: boolean;
}) {
  return (
    <DataTable
      label="Decisions"
      columns={[time, verdict, ...(isOfOneKey ? [] : [key]), ...others]}
      rows={rows}
      rowId={({ id }) => String(id)}
      isPlain={isOfOneKey}
      empty="No decisions yet. They appear here as they are made."
    />
  );
}
