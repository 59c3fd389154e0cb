import { durationMs } from "@bufbuild/protobuf/wkt";
import type { NodeShare, Service } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  formatCount,
  formatMillis,
  formatNumber,
  formatPercent,
  formatProtoDuration,
  formatRate,
} from "../data/format.js";
import type { ServicePoint, ServiceSecond } from "../data/history.js";
import { type FleetService, judgeService, shedRatioNoticed } from "../data/services.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Plot, type PlotLine } from "../parts/plot.jsx";
import { Signals } from "../parts/signals.jsx";
import { Badge, Meter, PolledAnswer, SilentNotice, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { useHistory } from "../state/history-poll.js";
import { route } from "../state/location.js";
import { useServices } from "../state/services-poll.js";
import { GatePanel } from "./gate.jsx";

/** One service: its limit and what moves it, who holds what of it, and its gate. */
export function ServicePage() {
  const [, name = ""] = route.value.path;
  const polled = useServices();
  return (
    <>
      <p class="crumbs">
        <a href="#/services">Services</a>
      </p>
      <PolledAnswer polled={polled.value}>
        {({ services, silentReplicas }) => {
          const service = services.find((one) => one.name === name);
          if (service === undefined) {
            return (
              <>
                <h1>{showText(name)}</h1>
                <p class="empty">The active policy has no service of this name with admission.</p>
              </>
            );
          }
          const { tone, word } = judgeService(service);
          return (
            <>
              <div class="view-head">
                <h1>
                  {showText(name)} <Badge tone={tone}>{word}</Badge>
                </h1>
              </div>
              <SilentNotice count={silentReplicas} />
              <ServiceTiles service={service} />
              <ServicePlots service={service} />
              <GatePanel
                name={service.name}
                state={service.gate}
                none="This service has none. The policy's admission.gate gives it one."
              />
              <Signals replicas={service.replicas} />
              <Shares service={service} />
              <Replicas replicas={service.replicas} />
            </>
          );
        }}
      </PolledAnswer>
    </>
  );
}

function ServiceTiles({ service }: { readonly service: FleetService }) {
  const { algorithm, limit, inFlight, waiting, rttMs, minRttMs, gradient } = service;
  const { shedRatio, admitted, refused, overflowPerSecond } = service;
  return (
    <div class="tiles">
      <Tile
        label="In flight"
        value={
          limit === 0 ? formatCount(inFlight) : `${formatCount(inFlight)} of ${formatCount(limit)}`
        }
        detail={
          limit === 0 ? "no limit" : algorithm === "none" ? "maxInFlight" : `law: ${algorithm}`
        }
      />
      <Tile
        label="Shed"
        value={formatPercent(shedRatio)}
        detail={`${formatCount(refused)} refused, ${formatCount(admitted)} admitted`}
        tone={shedRatio >= shedRatioNoticed ? "bad" : "good"}
      />
      <Tile
        label="Waiting"
        value={formatCount(waiting)}
        detail="in the queue"
        tone={waiting > 0 ? "warn" : "good"}
      />
      <Tile
        label="Round trip"
        value={rttMs === 0 ? "-" : formatMillis(rttMs)}
        detail={
          rttMs === 0
            ? "not measured"
            : minRttMs === 0
              ? "no minimum yet"
              : `minimum ${formatMillis(minRttMs)}`
        }
      />
      <Tile
        label="Gradient"
        value={gradient === 0 ? "-" : formatNumber(gradient)}
        detail={gradient === 0 ? "not measured" : "below 1: slower than at its best"}
      />
      <Tile
        label="Breaker overflow"
        value={formatRate(overflowPerSecond)}
        detail="refused by Envoys"
        tone={overflowPerSecond > 0 ? "bad" : "good"}
      />
    </div>
  );
}

const classInks = [1, 5, 3, 4] as const;
const classDashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]] as const;
const classNames = ["critical", "high", "normal", "low"] as const;

function ServicePlots({ service: { name, isShared } }: { readonly service: FleetService }) {
  const polled = useHistory({ service: name });
  return (
    <PolledAnswer polled={polled.value}>
      {({ history }) => {
        const seconds = history.serviceTimeline(name, isShared);
        const times = seconds.map(({ second }) => second);
        const common = { seconds: times, format: formatNumber };
        return (
          <div class="plots">
            <Plot
              title="Concurrency"
              {...common}
              lines={[
                lineOf(seconds, ({ inFlight }) => inFlight, {
                  label: "in flight",
                  ink: 1,
                  isFilled: true,
                }),
                lineOf(seconds, ({ limit }) => limit, { label: "limit", ink: 2, dash: [8, 4] }),
                lineOf(seconds, ({ waiting }) => waiting, {
                  label: "waiting",
                  ink: 4,
                  dash: [2, 3],
                }),
              ]}
            />
            <Plot
              title="Admitted per second, by class"
              {...common}
              lines={classLines(seconds, "admitted")}
            />
            <Plot
              title="Refused per second, by class"
              {...common}
              lines={classLines(seconds, "refused")}
            />
            <LatencyPlots seconds={seconds} times={times} />
          </div>
        );
      }}
    </PolledAnswer>
  );
}

/** Plots of what the law learns from; nothing where it measures no latency. */
function LatencyPlots({
  seconds,
  times,
}: {
  readonly seconds: readonly ServiceSecond[];
  readonly times: readonly number[];
}) {
  if (!seconds.some(({ point }) => point !== undefined && point.rttMs > 0)) return undefined;
  const rtt = lineOf(seconds, ({ rttMs }) => measured(rttMs), { label: "rtt", ink: 1 });
  const minimum = lineOf(seconds, ({ minRttMs }) => measured(minRttMs), {
    label: "minimum",
    ink: 5,
    dash: [8, 4],
  });
  const gradient = lineOf(seconds, (point) => measured(point.gradient), {
    label: "gradient",
    ink: 4,
  });
  return (
    <>
      <Plot title="Round trip" seconds={times} format={formatMillis} lines={[rtt, minimum]} />
      {gradient.values.every((value) => value === undefined) ? undefined : (
        <Plot title="Gradient" seconds={times} format={formatNumber} lines={[gradient]} />
      )}
    </>
  );
}

function lineOf(
  seconds: readonly ServiceSecond[],
  of: (point: ServicePoint) => number | undefined,
  look: Omit<PlotLine, "values">,
): PlotLine {
  return {
    ...look,
    values: seconds.map(({ point }) => (point === undefined ? undefined : of(point))),
  };
}

/** What no law measures is 0: it is left out of plots. */
function measured(value: number): number | undefined {
  return value === 0 ? undefined : value;
}

function classLines(
  seconds: readonly ServiceSecond[],
  side: "admitted" | "refused",
): readonly PlotLine[] {
  return classNames.map((priority, i) => {
    const dash = classDashes[i] ?? [];
    return {
      label: priority,
      ink: classInks[i] ?? 1,
      ...(dash.length === 0 ? {} : { dash }),
      values: seconds.map(({ point }) => point && (point[side][priority] ?? 0)),
    };
  });
}

function Shares({ service: { replicas, limit } }: { readonly service: FleetService }) {
  const shares = new Map<string, NodeShare>();
  for (const { shares: own } of replicas) {
    for (const share of own) {
      const known = shares.get(share.node);
      if (known === undefined || known.age === undefined) shares.set(share.node, share);
    }
  }
  const columns: readonly TableColumn<NodeShare>[] = [
    textColumn("Envoy", ({ node }) => showText(node)),
    numberColumn("Share", ({ share }) => share),
    textColumn("Of the limit", ({ share }) => Number(share), {
      render: ({ share }) => <Meter ratio={limit === 0 ? 0 : Number(share) / limit} />,
    }),
    numberColumn("In flight", ({ inFlight }) => inFlight),
    textColumn("Acknowledged", (one) => showText(one.acknowledgedVersion) || "-", {
      isWideOnly: true,
    }),
    numberColumn("Heard", ({ age }) => (age === undefined ? -1 : durationMs(age)), {
      render: ({ age }) => (age === undefined ? "elsewhere" : `${formatProtoDuration(age)} ago`),
    }),
  ];
  return (
    <TitledPanel title="Share of the limit by Envoy">
      <DataTable
        label="Shares of Envoys"
        name="n."
        columns={columns}
        rows={[...shares.values()]}
        rowId={({ node }) => node}
        isPlain={shares.size < 20}
        empty="No Envoy has a share. It gets one when it reports its first request for the service."
      />
    </TitledPanel>
  );
}

const replicaColumns: readonly TableColumn<Service>[] = [
  textColumn("Replica", ({ replica }) => showText(replica)),
  numberColumn("In flight", ({ inFlight }) => inFlight),
  numberColumn("Waiting", ({ waiting }) => waiting, { isWideOnly: true }),
  numberColumn("Admitted", ({ admitted }) => admitted),
  numberColumn("Refused", ({ refused }) => refused),
  textColumn("Gate", ({ gate }) => gate || "none", { isWideOnly: true }),
];

function Replicas({ replicas }: { readonly replicas: readonly Service[] }) {
  return (
    <TitledPanel title="By replica">
      <DataTable
        label="Replicas"
        columns={replicaColumns}
        rows={replicas}
        rowId={({ replica }) => replica}
        isPlain={true}
        empty="No replica reports it."
      />
    </TitledPanel>
  );
}
