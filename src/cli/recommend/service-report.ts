import type { Style } from "../../app/base/style.js";
import { formatDuration } from "../../policy/text/duration.js";
import { rounded } from "../../recommend/services/knee-words.js";
import type {
  ServiceRecommendation,
  ServiceSetting,
} from "../../recommend/services/service-recommendation.js";
import { countText, safeText } from "../terminal/quantity.js";
import { sparkline } from "../terminal/sparkline.js";
import { drawTable } from "../terminal/text-table.js";

/** Maximum number of columns for the curve of latency over requests in flight. */
const curveColumnsMax = 40;

/** Draws the recommendations for services and for the overload manager as text. */
export function serviceLines(
  {
    services,
    overload,
  }: {
    readonly services: readonly ServiceRecommendation[];
    readonly overload: readonly ServiceSetting[];
  },
  style: Style,
): readonly string[] {
  const lines = services.flatMap((one) => ["", ...linesOf(one, style)]);
  if (overload.length === 0) return lines;
  return [...lines, "", style.bold("proxies"), ...settingLines(overload)];
}

function linesOf(recommendation: ServiceRecommendation, style: Style): readonly string[] {
  const { observations, settings, reasons, missing } = recommendation;
  const { service, source, requestCount, durationSeconds } = observations;
  const { perSecondMax, inFlightMax, curve, errorRatio } = observations;
  const time = formatDuration(1_000 * Math.round(durationSeconds));
  const errors = errorRatio === undefined ? "" : `, ${rounded(100 * errorRatio)} % errors`;
  const [first, last] = [curve[0], curve.at(-1)];
  const drawn =
    first === undefined || last === undefined
      ? []
      : [
          `latency ${rounded(first.latencyMs)} to ${rounded(last.latencyMs)} ms  ` +
            `${sparkline(
              curve.map(({ latencyMs }) => latencyMs),
              Math.min(curveColumnsMax, curve.length),
            )}  from ${rounded(first.level)} to ${rounded(last.level)} in flight`,
        ];
  return [
    style.bold(safeText(service)),
    `${countText(requestCount)} requests in ${time} of ${source}, at most ` +
      `${rounded(perSecondMax)} per second and ${rounded(inFlightMax)} in flight${errors}`,
    ...drawn,
    ...reasons.map((text) => `  ${text}`),
    ...settingLines(settings),
    ...(missing.length === 0 ? [] : [style.bad("What cannot be told:")]),
    ...missing.map((text) => `  ${safeText(text)}`),
  ];
}

function settingLines(settings: readonly ServiceSetting[]): readonly string[] {
  if (settings.length === 0) return [];
  return drawTable(
    [
      { title: "setting" },
      { title: "now", align: "right" },
      { title: "proposed", align: "right" },
      { title: "" },
      { title: "where it comes from" },
    ],
    settings.map(({ path, was, value, use, why }) => [
      path,
      String(was ?? "–"),
      String(value),
      use === "optional" ? "optional" : "",
      why,
    ]),
  );
}
