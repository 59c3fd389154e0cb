import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Service, ServiceSignal } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatNumber, formatProtoDuration } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "./data-table.jsx";
import { Badge } from "./status.jsx";
import { TitledPanel } from "./titled-panel.jsx";

interface SignalRow {
  readonly replica: string;
  readonly signal: ServiceSignal;
}

const signalColumns: readonly TableColumn<SignalRow>[] = [
  textColumn("Key", ({ signal }) => showText(signal.key) || "all requests"),
  textColumn("Reads", ({ signal: { reading } }) => reading ?? "none", {
    render: ({ signal: { reading } }) => (reading === undefined ? "none" : formatNumber(reading)),
  }),
  textColumn("State", ({ signal }) => stateText(signal), {
    render: ({ signal }) => <SignalState signal={signal} />,
  }),
  numberColumn("Answered", ({ signal: { age } }) => (age === undefined ? -1 : durationMs(age)), {
    render: ({ signal: { age } }) => (age === undefined ? "-" : `${formatProtoDuration(age)} ago`),
    isWideOnly: true,
  }),
  textColumn("Source", ({ signal }) => signal.source, { isWideOnly: true }),
  textColumn("Replica", ({ replica }) => showText(replica), { isWideOnly: true }),
];

/** The state, and the code of the last failure beside or below it. */
function SignalState({ signal }: { readonly signal: ServiceSignal }) {
  const word = stateText(signal);
  const tone = word === "missing" ? "bad" : word === "ok" ? "good" : "warn";
  return (
    <>
      <Badge tone={tone}>{word}</Badge> <span class="muted">{showText(signal.error)}</span>
    </>
  );
}

function stateText({ error, isMissing }: ServiceSignal): string {
  if (isMissing) return "missing";
  return error === "" ? "ok" : "failing";
}

/** The load signals of a service; nothing if it has none. */
export function Signals({ replicas }: { readonly replicas: readonly Service[] }) {
  const rows = replicas.flatMap(({ replica, signals }) =>
    signals.map((signal): SignalRow => ({ replica, signal })),
  );
  if (rows.length === 0) return undefined;
  return (
    <TitledPanel title="Load signals">
      <DataTable
        label="Load signals"
        name="s."
        columns={signalColumns}
        rows={rows}
        rowId={({ replica, signal }) => JSON.stringify([replica, signal.key])}
        isPlain={rows.length < 20}
        empty=""
      />
    </TitledPanel>
  );
}
