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
  numberColumn("Answered", ({ signal: { age } }) => (age === undefined ? -1 : durationMs(age)), {
    render: ({ signal: { age } }) => (age === undefined ? "-" : `${formatProtoDuration(age)} ago`),
  }),
  textColumn("State", ({ signal }) => signalState(signal).word, {
    render: ({ signal }) => {
      const { tone, word } = signalState(signal);
      return <Badge tone={tone}>{word}</Badge>;
    },
  }),
  textColumn("Source", ({ signal }) => signal.source, { isWideOnly: true }),
  textColumn("Replica", ({ replica }) => showText(replica), { isWideOnly: true }),
];

function signalState({ error, isMissing }: ServiceSignal) {
  if (isMissing) return { tone: "bad", word: `missing ${error}`.trim() } as const;
  if (error !== "") return { tone: "warn", word: `failing: ${error}` } as const;
  return { tone: "good", word: "ok" } as const;
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
