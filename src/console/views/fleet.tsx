import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Finding, NodeShare } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatCount, formatMany, formatProtoDuration } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn } from "../parts/data-table.jsx";
import { Badge, PolledAnswer, SilentNotice, Tile, type Tone, ToneIcon } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { useHistory } from "../state/history-poll.js";
import { usePoll } from "../state/poll.js";

/** Who takes part, who leads, and what the doctor says. */
export function FleetPage() {
  const fleet = usePoll((signal) => api.fleet.getFleet({}, { signal }), { everyMs: 1_000 });
  const history = useHistory({ everyMs: 2_000 });
  const findings = usePoll((signal) => api.fleet.getFindings({}, { signal }), { everyMs: 10_000 });
  const silent = history.value.data?.silentReplicas ?? 0;
  const names = history.value.data?.history.replicas ?? [];
  return (
    <>
      <h1>Fleet</h1>
      <PolledAnswer polled={fleet.value}>
        {(state) => {
          const { replica, leader, isLeading, term, replicaCount, store, isDegraded } = state;
          const leads = isLeading ? replica : leader;
          return (
            <>
              <div class="tiles">
                <Tile
                  label="Replicas"
                  value={formatCount(replicaCount)}
                  detail={silent === 0 ? "all answer" : `${silent} not answering`}
                  tone={silent === 0 ? "good" : "warn"}
                />
                <Tile
                  label="Leader"
                  value={leads === "" ? "none" : showText(leads.slice(0, 8))}
                  detail={leads === "" ? "nobody leads" : `term ${formatCount(term)}`}
                  tone={leads === "" && replicaCount > 1 ? "warn" : "good"}
                />
                <Tile
                  label="Store"
                  value={isDegraded ? "away" : showText(store)}
                  detail={isDegraded ? "limits follow their failure modes" : "answers"}
                  tone={isDegraded ? "bad" : "good"}
                />
              </div>
              <TitledPanel title="Replicas">
                <SilentNotice count={silent} />
                <Replicas names={names} leader={leads} here={replica} />
              </TitledPanel>
              <TitledPanel
                title="Doctor"
                aside={<span class="muted">what each replica finds of its own state</span>}
              >
                <PolledAnswer polled={findings.value}>
                  {({ findings: all, silentReplicas }) => (
                    <>
                      <SilentNotice count={silentReplicas} />
                      <Findings findings={all} />
                    </>
                  )}
                </PolledAnswer>
              </TitledPanel>
              <Envoys services={state.services} />
            </>
          );
        }}
      </PolledAnswer>
    </>
  );
}

function Replicas({
  names,
  leader,
  here,
}: {
  readonly names: readonly string[];
  readonly leader: string;
  readonly here: string;
}) {
  return (
    <ul class="plain-list">
      {[...new Set([...names, here, ...(leader === "" ? [] : [leader])])].map((name) => (
        <li key={name}>
          {names.includes(name) ? (
            <Badge tone="good">answers</Badge>
          ) : (
            <Badge tone="plain">not heard yet</Badge>
          )}
          <span class="mono">{showText(name)}</span>
          {name === leader ? <Badge tone="notice">leads</Badge> : undefined}
          {name === here ? <span class="muted">serves this page</span> : undefined}
        </li>
      ))}
    </ul>
  );
}

const kinds: Readonly<Record<string, Tone>> = { error: "bad", warning: "warn" };

function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  const problems = findings.filter(({ kind }) => kind === "finding");
  const unseen = findings.filter(({ kind }) => kind === "unseen");
  const passed = findings.filter(({ kind }) => kind === "pass");
  const summary = [
    problems.length === 0 ? "Nothing is wrong" : formatMany(problems.length, "finding"),
    formatMany(passed.length, "check").replace(/$/, " passed"),
    ...(unseen.length === 0 ? [] : [`${formatCount(unseen.length)} could not be made`]),
  ].join(", ");
  return (
    <>
      <p>{summary}.</p>
      <ul class="findings">
        {[...problems, ...unseen].map(({ kind, id, severity, seen, title, remedy, replica }, i) => (
          <li key={`${id}${replica}${i}`} class={kinds[severity] ?? "plain"}>
            <ToneIcon tone={kind === "unseen" ? "plain" : (kinds[severity] ?? "notice")} />
            <div>
              <p>
                <b>{id}</b> {showText(seen)}
              </p>
              <p class="muted">{showText(title)}</p>
              {remedy === "" ? undefined : <p>{showText(remedy)}</p>}
              <p class="muted">
                replica {showText(replica)}; <code>headgate help {id}</code> says more
              </p>
            </div>
          </li>
        ))}
      </ul>
      {passed.length === 0 ? undefined : (
        <details>
          <summary>{formatMany(passed.length, "check")} that passed</summary>
          <ul class="findings">
            {passed.map(({ id, seen, replica }, i) => (
              <li key={`${id}${replica}${i}`} class="good">
                <ToneIcon tone="good" />
                <span>
                  <b>{id}</b> {showText(seen)}{" "}
                  <span class="muted">{showText(replica.slice(0, 8))}</span>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

interface EnvoyRow {
  readonly service: string;
  readonly share: NodeShare;
}

function Envoys({
  services,
}: {
  readonly services: readonly { readonly name: string; readonly shares: readonly NodeShare[] }[];
}) {
  const rows = services.flatMap(({ name, shares }) =>
    shares.map((share) => ({ service: name, share })),
  );
  const columns: readonly TableColumn<EnvoyRow>[] = [
    { id: "envoy", title: "Envoy", value: ({ share }) => showText(share.node) },
    { id: "service", title: "Service", value: ({ service }) => showText(service) },
    numberColumn("Share", ({ share }) => share.share),
    {
      id: "inflight",
      title: "In flight",
      align: "right",
      value: ({ share }) => Number(share.inFlight),
      render: ({ share }) => formatCount(share.inFlight),
      isWideOnly: true,
    },
    {
      id: "version",
      title: "Acknowledged",
      value: ({ share }) => showText(share.acknowledgedVersion) || "-",
    },
    {
      id: "age",
      title: "Heard",
      align: "right",
      value: ({ share: { age } }) => (age === undefined ? -1 : durationMs(age)),
      render: ({ share: { age } }) =>
        age === undefined ? "elsewhere" : `${formatProtoDuration(age)} ago`,
    },
  ];
  return (
    <TitledPanel title="Envoys">
      <DataTable
        label="Envoys"
        name="e."
        columns={columns}
        rows={rows}
        rowId={({ service, share }) => `${service} ${share.node}`}
        href={({ service }) => formatRoute(["service", service])}
        empty="No Envoy shares a limit. Envoys that report their load to Headgate appear here."
      />
    </TitledPanel>
  );
}
