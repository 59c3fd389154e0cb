import { durationMs } from "@bufbuild/protobuf/wkt";
import type { KeyState } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  formatCount,
  formatEffect,
  formatLimit,
  formatNumber,
  formatProtoDuration,
  formatRate,
  formatTime,
  millisOf,
} from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { Badge, type Tone } from "./status.jsx";

/** One bucket of a key as a picture: how full it is, how fast it drains, and when a hit fits. */
export function BucketPanel({ state }: { readonly state: KeyState }) {
  const { ruleLabel, limit, override, usedHits, remainingHits, key } = state;
  const burst = Number(state.burst);
  const ratio = burst === 0 ? 1 : Math.max(0, Math.min(1, usedHits / burst));
  const tone: Tone = remainingHits === 0n ? "bad" : ratio >= 0.8 ? "warn" : "good";
  const name = limit === undefined || limit.name === "" ? ruleLabel : limit.name;
  return (
    <section class={`panel bucket ${tone}`} aria-label={`Bucket ${showText(name)}`}>
      <header>
        <h2>{showText(name)}</h2>
        <Badge tone={tone}>{tone === "bad" ? "full" : tone === "warn" ? "near" : "fits"}</Badge>
      </header>
      <div class="bucket-body">
        <BucketPicture ratio={ratio} drains={drainText(state)} />
        <dl class="facts">
          <dt>Level</dt>
          <dd>
            <b>{formatNumber(Math.round(usedHits * 10) / 10)}</b> of {formatCount(burst)}
          </dd>
          <dt>Left</dt>
          <dd>
            <b>{formatCount(remainingHits)}</b>
          </dd>
          <dt>Next hit</dt>
          <dd>{fitsText(state)}</dd>
          <dt>Empty</dt>
          <dd>{emptyText(state)}</dd>
          <dt>Limit</dt>
          <dd>{limit === undefined ? "?" : formatLimit(limit)}</dd>
          <dt>Store away</dt>
          <dd>{limit?.onStoreFailure || "-"}</dd>
          {override === undefined ? undefined : (
            <>
              <dt>Override</dt>
              <dd>
                {formatEffect(override)}
                {override.expiresAt === undefined
                  ? ", until it is removed"
                  : `, until ${formatTime(millisOf(override.expiresAt))}`}
                <br />
                <span class="muted">
                  {showText(override.author)}: {showText(override.reason)}
                </span>
              </dd>
            </>
          )}
          {key === "" ? undefined : (
            <>
              <dt>Stored as</dt>
              <dd class="mono">{showText(key.slice(0, 300))}</dd>
            </>
          )}
        </dl>
      </div>
    </section>
  );
}

/** A vessel with its level; what it says stands beside it as text. */
function BucketPicture({ ratio, drains }: { readonly ratio: number; readonly drains: string }) {
  const top = 20;
  const height = 130;
  const level = height * ratio;
  return (
    <svg class="bucket-picture" viewBox="0 0 150 190" aria-hidden="true">
      <clipPath id="vessel">
        <path d={`M20 ${top}H130V${top + height - 12}a12 12 0 0 1-12 12H32a12 12 0 0 1-12-12Z`} />
      </clipPath>
      <g clip-path="url(#vessel)">
        <rect class="bucket-ground" x="20" y={top} width="110" height={height} />
        <rect class="bucket-level" x="20" y={top + height - level} width="110" height={level} />
      </g>
      <path
        class="bucket-wall"
        d={`M20 ${top}V${top + height - 12}a12 12 0 0 0 12 12H118a12 12 0 0 0 12-12V${top}`}
      />
      <path class="bucket-burst" d={`M12 ${top}H138`} />
      <text x="75" y="14" text-anchor="middle">
        burst
      </text>
      <text class="bucket-ratio" x="75" y={top + height / 2 + 8} text-anchor="middle">
        {Math.round(100 * ratio)} %
      </text>
      <path class="bucket-drain" d={`M75 ${top + height + 2}v12m-4-5 4 5 4-5`} />
      <text x="75" y="184" text-anchor="middle">
        {drains}
      </text>
    </svg>
  );
}

function drainText({ limit }: KeyState): string {
  if (limit?.period === undefined) return "";
  if (limit.algorithm === "fixed_window")
    return `empties every ${formatProtoDuration(limit.period)}`;
  const ms = durationMs(limit.period);
  return ms === 0
    ? ""
    : `drains ${formatRate((1_000 * Number(limit.hits)) / (ms * Math.max(1, limit.regionCount)))}`;
}

function fitsText({ retryAfter }: KeyState) {
  if (retryAfter === undefined) return <b>never fits</b>;
  if (durationMs(retryAfter) === 0) return <b>fits now</b>;
  return (
    <>
      fits in <b>{formatProtoDuration(retryAfter)}</b>
    </>
  );
}

function emptyText({ fullAfter, usedHits }: KeyState): string {
  if (usedHits === 0) return "now";
  return fullAfter === undefined ? "never" : `in ${formatProtoDuration(fullAfter)}`;
}
