import { element, listOf, type Markup, tableOf } from "../../simulate/report/markup.js";
import type { Recommendation } from "../recommendation.js";
import { rounded } from "../services/knee-words.js";
import type { ServiceRecommendation, ServiceSetting } from "../services/service-recommendation.js";
import { type LinePlot, linePlotFigure } from "./line-plot.js";

/** Number of points drawn of a fitted curve. */
const curvePoints = 80;

/** Returns the recommendations for services, with measured latencies and their fitted curve. */
export function serviceParts({
  services,
  overload,
}: Pick<Recommendation, "services" | "overload">): readonly Markup[] {
  const parts = services.flatMap((one) => [
    element("h2", {}, [one.observations.service]),
    element("p", {}, [summary(one)]),
    ...sentences(one.reasons),
    ...settingsTable(one.settings),
    ...(one.missing.length === 0 ? [] : [element("h3", {}, ["What cannot be told"])]),
    ...sentences(one.missing),
    ...(one.observations.curve.length === 0
      ? []
      : [element("div", { class: "figures" }, [linePlotFigure(latencyPlot(one))])]),
  ]);
  if (overload.length === 0) return parts;
  return [...parts, element("h2", {}, ["proxies"]), ...settingsTable(overload)];
}

function summary({ observations }: ServiceRecommendation): string {
  const { requestCount, source, perSecondMax, inFlightMax } = observations;
  return (
    `${requestCount.toLocaleString("en")} requests of ${source}, at most ` +
    `${rounded(perSecondMax)} per second and ${rounded(inFlightMax)} in flight.`
  );
}

function sentences(texts: readonly string[]): readonly Markup[] {
  return texts.length === 0 ? [] : [listOf(texts)];
}

function settingsTable(settings: readonly ServiceSetting[]): readonly Markup[] {
  if (settings.length === 0) return [];
  const rows = settings.map(({ path, value, was, use, why }) => [
    path,
    String(value),
    String(was ?? "–"),
    use === "optional" ? "only with --fixed" : "yes",
    why,
  ]);
  const titles = ["setting", "proposed", "now", "written", "where it comes from"];
  return [tableOf({ label: "Settings", titles, rows })];
}

function latencyPlot({ observations, verdict }: ServiceRecommendation): LinePlot {
  const { curve } = observations;
  const [from, to] = [curve[0]?.level ?? 1, curve.at(-1)?.level ?? 1];
  const measured = curve.map(({ level, latencyMs }) => [level, latencyMs] as const);
  const fit = verdict.kind === "seen" ? verdict.fit : undefined;
  const fitted = Array.from({ length: curvePoints }, (_, i) => {
    const level = from * (to / from) ** (i / (curvePoints - 1));
    return [level, fit?.latencyMs(level) ?? 0] as const;
  });
  return {
    title: "Latency over requests in flight",
    note: "Mean latency of the requests that met so many in flight, and the curve fitted to it.",
    x: { title: "requests in flight", scale: "log", format: rounded },
    y: { title: "ms", scale: "log", format: rounded },
    lines: [
      { title: "measured", points: measured },
      ...(fit === undefined ? [] : [{ title: `fit (${fit.model})`, points: fitted }]),
    ],
    mark:
      fit === undefined
        ? undefined
        : { x: fit.knee, y: fit.latencyMs(fit.knee), label: `knee ${rounded(fit.knee)}` },
  };
}
