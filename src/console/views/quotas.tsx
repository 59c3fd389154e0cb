import { durationMs } from "@bufbuild/protobuf/wkt";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { Quota, QuotaPool, QuotaShare } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatCount, formatMany, formatProtoDuration, formatRate } from "../data/format.js";
import { layOutQuotas } from "../data/quota-flow.js";
import { clipText, showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { KeyName } from "../parts/key-name.jsx";
import { Badge, PolledAnswer } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { paramOf, setParams } from "../state/location.js";
import { usePoll } from "../state/poll.js";

/** What Envoys may let pass by themselves: from quota to bucket to Envoy. */
export function Quotas() {
  const quota = paramOf("quota");
  const quotas = usePoll((signal) => api.quotas.listQuotas({ pageSize: 1_000 }, { signal }), {
    everyMs: 2_000,
  });
  const pools = usePoll(
    (signal) => api.quotas.listQuotaPools({ quota, count: 20, sharesPerPool: 50 }, { signal }),
    { everyMs: 2_000, about: quota },
  );
  return (
    <>
      <h1>Quotas</h1>
      <p class="muted">
        Assignments of the replica that serves this page. Envoys decide by their assignments and
        report what they need.
      </p>
      <PolledAnswer polled={quotas.value}>
        {({ quotas: all }) =>
          all.length === 0 ? (
            <p class="empty">
              The active policy has no quotas. <a href="#/policy">Add one</a> under spec.quotas to
              let Envoys decide by themselves.
            </p>
          ) : (
            <>
              <TitledPanel title="Quotas">
                <QuotaTable quotas={all} />
              </TitledPanel>
              <PolledAnswer polled={pools.value}>
                {({ pools: own, poolCount }) => (
                  <>
                    <section class="panel">
                      <header>
                        <h2>Quotas, buckets and Envoys</h2>
                        {quota === "" ? undefined : (
                          <button type="button" onClick={() => setParams({ quota: "" })}>
                            All quotas
                          </button>
                        )}
                      </header>
                      <FlowPicture pools={own} />
                      {poolCount > BigInt(own.length) ? (
                        <p class="muted">
                          The {own.length} with the most demand of {formatCount(poolCount)} buckets.
                        </p>
                      ) : undefined}
                    </section>
                    {own.map((pool) => (
                      <Pool key={formatEntries(pool.entries) + pool.domain} pool={pool} />
                    ))}
                  </>
                )}
              </PolledAnswer>
            </>
          )
        }
      </PolledAnswer>
    </>
  );
}

const quotaColumns: readonly TableColumn<Quota>[] = [
  textColumn("Quota", ({ name }) => showText(name), {
    render: ({ name }) => (
      <button type="button" onClick={() => setParams({ quota: name })}>
        {showText(name)}
      </button>
    ),
  }),
  textColumn("Bucket keys", ({ bucketKeys }) => showText(bucketKeys.join(", ")), {
    isWideOnly: true,
  }),
  numberColumn("Buckets", ({ bucketCount }) => bucketCount),
  numberColumn("Demand", ({ demandRate }) => demandRate, {
    render: ({ demandRate }) => formatRate(demandRate),
  }),
  numberColumn("Assigned", ({ heldRate }) => heldRate ?? -1, {
    render: ({ heldRate }) => formatRate(heldRate),
  }),
  textColumn("Holds for", ({ ttl }) => formatProtoDuration(ttl), { isWideOnly: true }),
  textColumn("Before assignment", ({ beforeAssignment }) => beforeAssignment, { isWideOnly: true }),
];

function QuotaTable({ quotas }: { readonly quotas: readonly Quota[] }) {
  return (
    <DataTable
      label="Quotas"
      columns={quotaColumns}
      rows={quotas}
      rowId={({ name, domain }) => `${domain} ${name}`}
      isPlain={quotas.length < 20}
      empty="No quotas."
    />
  );
}

const lefts = [0, 330, 660] as const;
const boxWidth = 240;

/** Streams as wide as their demand. The tables below hold the same numbers. */
function FlowPicture({ pools }: { readonly pools: readonly QuotaPool[] }) {
  const { nodes, links, height } = layOutQuotas(pools);
  if (nodes.length === 0) {
    return <p class="empty">No Envoy has asked this replica for a bucket yet.</p>;
  }
  return (
    <div class="flow-box" tabIndex={0} role="region" aria-label="Quotas, buckets and Envoys">
      <svg
        class="flow"
        viewBox={`0 0 900 ${height + 20}`}
        role="img"
        aria-label="Demand by quota, bucket and Envoy"
      >
        {links.map(({ from, to, fromY, toY, width }) => {
          const start = lefts[from.startsWith("0") ? 0 : 1] + boxWidth;
          const end = lefts[to.startsWith("1") ? 1 : 2];
          const middle = (start + end) / 2;
          const path = `M${start} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${end} ${toY}`;
          return <path key={from + to} class="flow-link" d={path} stroke-width={width} />;
        })}
        {nodes.map(({ id, column, label, rate, top, height: tall }) => (
          <g key={id}>
            <rect
              class={`flow-node column-${column}`}
              x={lefts[column]}
              y={top}
              width={boxWidth}
              height={tall}
              rx="4"
            />
            <text x={lefts[column] + 8} y={top + Math.min(tall / 2, 20) + 4}>
              {clipText(showText(label), 21)}
            </text>
            <text
              class="flow-rate"
              x={lefts[column] + boxWidth - 8}
              y={top + Math.min(tall / 2, 20) + 4}
              text-anchor="end"
            >
              {formatRate(rate)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

const shareColumns: readonly TableColumn<QuotaShare>[] = [
  textColumn("Envoy", ({ node }) => showText(node), {
    render: ({ node, isLeft }) => (
      <>
        {showText(node)} {isLeft ? <Badge tone="warn">left</Badge> : undefined}
      </>
    ),
  }),
  numberColumn("Demand", ({ demandRate }) => demandRate, {
    render: ({ demandRate }) => formatRate(demandRate),
  }),
  numberColumn("Assigned", (share) => assignedOf(share) ?? -1, { render: assignmentText }),
  numberColumn("Holds at most", ({ heldRate }) => heldRate ?? -1, {
    render: ({ heldRate }) => formatRate(heldRate),
    isWideOnly: true,
  }),
  numberColumn("Unused", (share) => unusedOf(share) ?? -1, {
    render: (share) => {
      const unused = unusedOf(share);
      return unused === undefined ? "-" : formatRate(unused);
    },
    isWideOnly: true,
  }),
  numberColumn("Reported", ({ age }) => (age === undefined ? -1 : durationMs(age)), {
    render: ({ age }) => `${formatProtoDuration(age)} ago`,
  }),
];

function assignedOf({ assignment }: QuotaShare): number | undefined {
  return assignment.case === "tokens" ? assignment.value.rate : undefined;
}

function assignmentText({ assignment }: QuotaShare): string {
  if (assignment.case === "tokens") return formatRate(assignment.value.rate);
  return assignment.case === "blanket" ? `${assignment.value} all` : "not yet";
}

function Pool({ pool }: { readonly pool: QuotaPool }) {
  const { domain, entries, mode, demandRate, heldRate, bucketCount, lease, shares } = pool;
  const leased = lease === undefined ? "" : `, lease ${lease.state} ${formatRate(lease.rate)}`;
  return (
    <section class="panel">
      <header>
        <h2>
          <span class="muted">{showText(domain)} </span>
          <KeyName entries={entries} />
        </h2>
        <span class="muted">
          {mode}, {formatMany(Number(bucketCount), "bucket")}, {formatRate(demandRate)} asked,{" "}
          {formatRate(heldRate)} assigned{leased}
        </span>
      </header>
      <DataTable
        label={`Envoys of ${showText(formatEntries(entries))}`}
        columns={shareColumns}
        rows={shares}
        rowId={({ node }) => node}
        isPlain={true}
        empty="No Envoy holds a share."
      />
    </section>
  );
}

function unusedOf(share: QuotaShare): number | undefined {
  const assigned = assignedOf(share);
  return assigned === undefined ? undefined : Math.max(0, assigned - share.demandRate);
}
