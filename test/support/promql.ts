import { parser } from "@prometheus-io/lezer-promql";

/** One metric that a query names, and the labels that it wants of it. */
export interface QuerySelector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** A query, taken apart by Prometheus's own grammar. */
export interface ReadQuery {
  readonly isRight: boolean;
  readonly selectors: readonly QuerySelector[];
  /** Labels of `by`, `without`, `on` and `ignoring`, at any depth. */
  readonly grouping: readonly string[];
}

type Node = ReturnType<typeof parser.parse>["topNode"];

/** Reads a query of a rule or a panel; Grafana's interval stands for five minutes. */
export function readQuery(expr: string): ReadQuery {
  const text = expr.replaceAll("$__rate_interval", "5m");
  const selectors: QuerySelector[] = [];
  const grouping: string[] = [];
  let isRight = true;
  const visit = (node: Node): void => {
    if (node.type.isError) isRight = false;
    if (node.name === "VectorSelector") {
      selectors.push({
        metric: textOf(text, node.getChild("Identifier")),
        labels: below(node, "LabelName").map((label) => textOf(text, label)),
      });
      return;
    }
    if (node.name === "GroupingLabels") {
      grouping.push(...below(node, "LabelName").map((label) => textOf(text, label)));
    }
    for (const child of childrenOf(node)) visit(child);
  };
  visit(parser.parse(text).topNode);
  return { isRight, selectors, grouping };
}

function textOf(text: string, node: Node | null): string {
  return node === null ? "" : text.slice(node.from, node.to);
}

function childrenOf(node: Node): readonly Node[] {
  const children: Node[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

function below(node: Node, name: string): readonly Node[] {
  return childrenOf(node).flatMap((child) => {
    return child.name === name ? [child] : below(child, name);
  });
}

/** Labels of each metric in a page of Prometheus's text format; a metric may have no series. */
export function readPage(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of text.split("\n")) {
    const type = /^# TYPE (\S+) (\S+)/.exec(line);
    if (type?.[1] !== undefined) found.set(type[1], found.get(type[1]) ?? new Set());
    const series = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+/.exec(line);
    if (series?.[1] === undefined) continue;
    const labels = found.get(series[1]) ?? new Set<string>();
    for (const [, label = ""] of (series[2] ?? "").matchAll(/(?:^|,)([a-zA-Z_]\w*)="/g)) {
      labels.add(label);
    }
    found.set(series[1], labels);
  }
  return found;
}
