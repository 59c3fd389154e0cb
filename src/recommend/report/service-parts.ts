import { escapeHtml, htmlTable } from "../../simulate/report/svg-plot.js";
import type { Recommendation } from "../recommendation.js";
import { rounded } from "../services/knee-words.js";
import type { ServiceRecommendation, ServiceSetting } from "../services/service-recommendation.js";
import { type LinePlot, linePlotFigure } from "./line-plot.js";

/** Points of a fitted curve that are drawn. */
const curvePoints = 80;

/** What is recommended for services, with the measured latencies and the curve through them. */
export function serviceParts({
  services,
  overload,
}: Pick<Recommendation, "services" | "overload">): readonly string[] {
  const parts = services.flatMap((one) => [
    `<h2>${escapeHtml(one.observations.service)}</h2>`,
    `<p>${escapeHtml(summary(one))}</p>`,
    ...sentences(one.reasons),
    ...settingsTable(one.settings),
    ...(one.missing.length === 0 ? [] : ["<h3>What cannot be told</h3>"]),
    ...sentences(one.missing),
    ...(one.observations.curve.length === 0
      ? []
      : ['<div class="plots">', linePlotFigure(latencyPlot(one)), "</div>"]),
  ]);
  return overload.length === 0 ? parts : [...parts, "<h2>proxies</h2>", ...settingsTable(overload)];
}

function summary({ observations }: ServiceRecommendation): string {
  const { requestCount, source, perSecondMax, inFlightMax } = observations;
  return (
    `${requestCount.toLocaleString("en")} requests of ${source}, at most ` +
    `${rounded(perSecondMax)} per second and ${rounded(inFlightMax)} in flight.`
  );
}

function sentences(texts: readonly string[]): readonly string[] {
  if (texts.length === 0) return [];
  return [`<ul>${texts.map((text) => `<li>${escapeHtml(text)}</li>`).join("")}</ul>`];
}

function settingsTable(settings: readonly ServiceSetting[]): readonly string[] {
  if (settings.length === 0) return [];
  const rows = settings.map(({ path, value, was, use, why }) => [
    path,
    String(value),
    String(was ?? "–"),
    use === "optional" ? "only with --fixed" : "yes",
    why,
  ]);
  return [htmlTable(["setting", "proposed", "now", "written", "where it comes from"], rows)];
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
