import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "../../gen/headgate/admin/v1/admin_pb.js";
import { auditSubject } from "../data/audit-subject.js";
import {
  formatClock,
  formatCount,
  formatMillis,
  formatNumber,
  formatPercent,
  millisOf,
} from "../data/format.js";
import { bandsOf, type FleetSecond, type HistoryPoint, historySeconds } from "../data/history.js";
import { formatRoute } from "../data/route.js";
import { judgeService } from "../data/services.js";
import { clipText, showText } from "../data/shown-text.js";
import { type FleetRates, judgeFleet, ratesOf } from "../data/verdict.js";
import { Plot, type PlotLine, type PlotMark } from "../parts/plot.jsx";
import { PolledAnswer, Tile, ToneIcon } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { TopKeys } from "../parts/top-keys.jsx";
import { api } from "../state/api.js";
import { nowMs } from "../state/browser.js";
import { useHistory } from "../state/history-poll.js";
import { usePoll } from "../state/poll.js";
import { useServices } from "../state/services-poll.js";

/** Is it us? The fleet at a glance, and the last 15 minutes. */
export function Overview() {
  const history = useHistory({});
  const fleet = usePoll((signal) => api.fleet.getFleet({}, { signal }), { everyMs: 15_000 });
  const services = useServices({ everyMs: 3_000 });
  const changes = useChanges();
  return (
    <>
      <h1 class="unseen">Overview</h1>
      <PolledAnswer polled={history.value}>
        {({ history: known, silentReplicas }) => {
          const seconds = known.timeline();
          const state = fleet.value.data;
          // Of all replicas, and a second old at most.
          const isDegraded = seconds.at(-1)?.point?.degraded === 1;
          const overloaded = (services.value.data?.services ?? []).filter((service) => {
            return judgeService(service).tone === "bad";
          });
          const verdict = judgeFleet({ seconds, silentReplicas, isDegraded, overloaded });
          return (
            <>
              <section class={`verdict ${verdict.tone}`} aria-live="polite">
                <ToneIcon tone={verdict.tone} />
                <div>
                  <p class="headline">{showText(verdict.headline)}</p>
                  <p>{verdict.detail}</p>
                </div>
              </section>
              <Tiles
                seconds={seconds}
                silentReplicas={silentReplicas}
                replicaCount={
                  silentReplicas === 0
                    ? known.replicas.length
                    : Math.max(state?.replicaCount ?? 0, known.replicas.length)
                }
                store={state?.store ?? ""}
                isDegraded={isDegraded}
              />
              <Plots seconds={seconds} marks={marksOf(changes.value.data?.entries ?? [])} />
            </>
          );
        }}
      </PolledAnswer>
      <div class="columns">
        <TopKeys title="Denied most" order="denials" count={8} />
        <TitledPanel title="Changed in the last 15 minutes" aside={<a href="#/audit">Audit log</a>}>
          <PolledAnswer polled={changes.value}>
            {({ entries }) => <ChangeList entries={entries} />}
          </PolledAnswer>
        </TitledPanel>
      </div>
    </>
  );
}

function useChanges() {
  return usePoll(
    (signal) => {
      // To the minute, so that all who look ask the same and are answered together.
      const minute = Math.floor(nowMs() / 60_000) * 60_000;
      const since = timestampFromMs(minute - historySeconds * 1_000);
      return api.fleet.listAudit({ since, pageSize: 50 }, { signal });
    },
    { everyMs: 5_000 },
  );
}

function marksOf(entries: readonly AuditEntry[]): readonly PlotMark[] {
  return entries.map((entry) => ({
    at: (millisOf(entry.time) ?? 0) / 1_000,
    label: showText(clipText(`${entry.author}: ${entry.action} ${auditSubject(entry)}`, 60)),
  }));
}

interface TilesProps {
  readonly seconds: readonly FleetSecond[];
  readonly silentReplicas: number;
  readonly replicaCount: number;
  readonly store: string;
  readonly isDegraded: boolean;
}

function Tiles({ seconds, silentReplicas, replicaCount, store, isDegraded }: TilesProps) {
  const rates = ratesOf(seconds);
  const last = seconds.at(-1)?.point;
  const near = `${formatNumber(rates.nearLimit)}/s`;
  return (
    <div class="tiles">
      <Tile
        label="Admitted"
        value={`${formatNumber(rates.passed)}/s`}
        detail="limits and admission"
      />
      <Tile
        label="Refused"
        value={`${formatNumber(rates.refused)}/s`}
        detail={causesText(rates)}
        tone={rates.failed + rates.failureRefused > 0 ? "bad" : "plain"}
        href={formatRoute(["limits"], { sort: "-over limit" })}
      />
      <Tile
        label="Refused share"
        value={formatPercent(rates.refusedRatio)}
        detail={`shadow ${formatNumber(rates.shadow)}/s`}
      />
      <Tile label="Near limit" value={near} detail="above 80 %" />
      <Tile
        label="Latency p99"
        value={
          last === undefined || last.latencyMsP99 === 0 ? "-" : formatMillis(last.latencyMsP99)
        }
        detail={
          last === undefined || last.latencyMsP99 === 0
            ? ""
            : `p50 ${formatMillis(last.latencyMsP50)}`
        }
      />
      <Tile
        label="Store"
        value={isDegraded ? "unreachable" : "up"}
        detail={isDegraded ? `${formatNumber(rates.failurePassed)}/s allowed uncounted` : store}
        tone={isDegraded ? "bad" : "good"}
        href="#/fleet"
      />
      <ReplicaTile count={replicaCount} silent={silentReplicas} />
      <Tile
        label="Envoys"
        value={formatCount(last?.envoys ?? 0)}
        detail="on the control port"
        href="#/fleet"
      />
    </div>
  );
}

function causesText(rates: FleetRates): string {
  const causes = [
    ["over limit", rates.overLimit],
    ["admission", rates.admissionRefused],
    ["store failure", rates.failureRefused],
    ["failed", rates.failed],
  ] as const;
  const found = causes.filter(([, rate]) => rate > 0);
  if (found.length === 0) return "none";
  return found.map(([cause, rate]) => `${cause} ${formatNumber(rate)}`).join(", ");
}

function ReplicaTile({ count, silent }: { readonly count: number; readonly silent: number }) {
  const whole = formatCount(count);
  return (
    <Tile
      label="Replicas"
      value={silent === 0 ? whole : `${formatCount(Math.max(0, count - silent))} of ${whole}`}
      detail={silent === 0 ? "all answer" : `${silent} not answering`}
      tone={silent === 0 ? "good" : "warn"}
      href="#/fleet"
    />
  );
}

interface PlotsProps {
  readonly seconds: readonly FleetSecond[];
  readonly marks: readonly PlotMark[];
}

/** What a plot of the fleet shows: its lines, each a number of a second. */
interface FleetPlot {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly lines: readonly (Omit<PlotLine, "values"> & {
    readonly of: (point: HistoryPoint) => number;
  })[];
}

const decisionsPlot: FleetPlot = {
  title: "Decisions per second",
  format: formatNumber,
  lines: [
    { label: "admitted", ink: 1, isFilled: true, of: ({ admitted }) => admitted },
    { label: "over limit", ink: 2, dash: [8, 4], of: ({ overLimit }) => overLimit },
    { label: "near limit", ink: 3, dash: [2, 3], of: ({ nearLimit }) => nearLimit },
    { label: "shadow", ink: 4, dash: [10, 3, 2, 3], of: ({ shadow }) => shadow },
  ],
};

const latencyPlot: FleetPlot = {
  title: "Latency of decisions",
  format: formatMillis,
  lines: [
    { label: "p50", ink: 1, of: ({ latencyMsP50 }) => latencyMsP50 },
    { label: "p99", ink: 2, dash: [8, 4], of: ({ latencyMsP99 }) => latencyMsP99 },
  ],
};

const failuresPlot: FleetPlot = {
  title: "Answered without the store, per second",
  format: formatNumber,
  lines: [
    { label: "passed uncounted", ink: 3, isFilled: true, of: ({ failurePassed }) => failurePassed },
    {
      label: "counted by one replica",
      ink: 1,
      dash: [2, 3],
      of: ({ failureLocal }) => failureLocal,
    },
    { label: "refused", ink: 2, dash: [8, 4], of: ({ failureRefused }) => failureRefused },
    { label: "failed", ink: 4, dash: [10, 3, 2, 3], of: ({ failed }) => failed },
  ],
};

const admissionPlot: FleetPlot = {
  title: "Admission, requests per second",
  format: formatNumber,
  lines: [
    { label: "admitted", ink: 1, isFilled: true, of: ({ admissionAdmitted }) => admissionAdmitted },
    { label: "refused", ink: 2, dash: [8, 4], of: ({ admissionRefused }) => admissionRefused },
  ],
};

function Plots({ seconds, marks }: PlotsProps) {
  const times = seconds.map(({ second }) => second);
  const bands = bandsOf(seconds);
  const hasAdmission = seconds.some(({ point }) => {
    return point !== undefined && point.admissionAdmitted + point.admissionRefused > 0;
  });
  const shown = [
    decisionsPlot,
    latencyPlot,
    failuresPlot,
    ...(hasAdmission ? [admissionPlot] : []),
  ];
  return (
    <div class="plots">
      {shown.map(({ title, format, lines }) => (
        <Plot
          key={title}
          title={title}
          seconds={times}
          bands={bands}
          marks={marks}
          format={format}
          lines={lines.map(({ of, ...look }) => ({
            ...look,
            values: seconds.map(({ point }) => point && of(point)),
          }))}
        />
      ))}
    </div>
  );
}

function ChangeList({ entries }: { readonly entries: readonly AuditEntry[] }) {
  if (entries.length === 0) return <p class="empty">Nobody has changed anything.</p>;
  return (
    <ul class="changes-list">
      {entries.slice(0, 8).map((entry) => (
        <li key={String(entry.number)}>
          <time>{formatClock(millisOf(entry.time) ?? 0)}</time>
          <span>
            <b>{showText(entry.author)}</b> {entry.action}{" "}
            <bdi>{showText(clipText(auditSubject(entry), 80))}</bdi>
            <span class="muted"> {showText(clipText(entry.reason, 120))}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
