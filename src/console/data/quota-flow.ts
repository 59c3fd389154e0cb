import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { QuotaPool } from "../../gen/headgate/admin/v1/admin_pb.js";

/** A box of the diagram. */
export interface FlowNode {
  readonly id: string;
  readonly column: 0 | 1 | 2;
  readonly label: string;
  /** Requested hits per second through it. */
  readonly rate: number;
  readonly top: number;
  readonly height: number;
}

/** A flow between two boxes. */
export interface FlowLink {
  readonly from: string;
  readonly to: string;
  readonly fromY: number;
  readonly toY: number;
  readonly width: number;
}

/** Diagram of demand: quotas on the left, their buckets, and Envoys on the right. */
export interface QuotaFlow {
  readonly nodes: readonly FlowNode[];
  readonly links: readonly FlowLink[];
  readonly height: number;
}

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly rate: number;
}

/** Maximum number of boxes of each column; the rest is one box. */
const boxesMax = 8;
const gap = 14;
const boxMin = 22;
const rateHeight = 260;

/** Computes the layout. Heights are parts of the whole demand. */
export function layOutQuotas(pools: readonly QuotaPool[]): QuotaFlow {
  const labels = new Map<string, { readonly column: 0 | 1 | 2; readonly label: string }>();
  const edges: Edge[] = [];
  const nodeOf = (column: 0 | 1 | 2, label: string): string => {
    const id = `${column} ${label}`;
    labels.set(id, { column, label });
    return id;
  };
  for (const pool of pools.slice(0, boxesMax)) {
    const bucket = nodeOf(1, formatEntries(pool.entries) || pool.domain);
    // Several quotas may use one bucket. Each is drawn with an even part of it.
    for (const quota of pool.quotas) {
      const rate = pool.demandRate / Math.max(1, pool.quotas.length);
      edges.push({ from: nodeOf(0, quota), to: bucket, rate });
    }
    const shown = pool.shares.slice(0, boxesMax);
    for (const share of shown) {
      edges.push({ from: bucket, to: nodeOf(2, share.node), rate: share.demandRate });
    }
    const others = pool.bucketCount - BigInt(shown.length);
    if (others > 0n) {
      const rate = shown.reduce((left, share) => left - share.demandRate, pool.demandRate);
      edges.push({ from: bucket, to: nodeOf(2, "others"), rate: Math.max(0, rate) });
    }
  }
  const total = Math.max(
    0.001,
    pools.reduce((sum, { demandRate }) => sum + demandRate, 0),
  );
  const rateOf = (id: string): number => {
    const into = edges.filter(({ to }) => to === id);
    const own = into.length > 0 ? into : edges.filter(({ from }) => from === id);
    return own.reduce((sum, { rate }) => sum + rate, 0);
  };
  const ends = [0, 0, 0];
  const nodes = [...labels].map(([id, { column, label }]): FlowNode => {
    const rate = rateOf(id);
    const height = Math.max(boxMin, (rateHeight * rate) / total);
    const top = ends[column] ?? 0;
    ends[column] = top + height + gap;
    return { id, column, label, rate, top, height };
  });
  return { nodes, links: linksOf(nodes, edges, total), height: Math.max(...ends) };
}

function linksOf(
  nodes: readonly FlowNode[],
  edges: readonly Edge[],
  total: number,
): readonly FlowLink[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const used = new Map<string, number>();
  const place = (id: string, side: string, width: number): number => {
    const node = byId.get(id);
    const at = used.get(side + id) ?? 0;
    used.set(side + id, at + width);
    return (node?.top ?? 0) + at + width / 2;
  };
  return edges.map(({ from, to, rate }) => {
    const width = Math.max(1.5, (rateHeight * rate) / total);
    return { from, to, fromY: place(from, "out", width), toY: place(to, "in", width), width };
  });
}
