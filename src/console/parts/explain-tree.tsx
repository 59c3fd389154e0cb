import type { ComponentChildren } from "preact";
import type {
  DescriptorExplanation,
  Explanation,
  KeyState,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  formatCount,
  formatEffect,
  formatLimit,
  formatMany,
  formatNumber,
  formatProtoDuration,
  formatRate,
} from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { KeyName } from "./key-name.jsx";
import { Badge, type Tone, ToneIcon } from "./status.jsx";

/** Why a request passes or is refused: each rule that was looked at, and why it did not match. */
export function ExplainTree({ explanation }: { readonly explanation: Explanation }) {
  const { isDenied, descriptors, leftOut, quotas, isDomainKnown, nearestDomain } = explanation;
  return (
    <div class="explain">
      <p>
        <Badge tone={isDenied ? "bad" : "good"}>{isDenied ? "denied" : "allowed"}</Badge>{" "}
        <span class="muted">
          policy {showText(explanation.policyVersion)}
          {explanation.service === "" ? "" : `, service ${showText(explanation.service)}`}
        </span>
      </p>
      <ul>
        {isDomainKnown ? (
          descriptors.map((one, i) => <Descriptor key={String(i)} descriptor={one} />)
        ) : (
          <Line tone="warn">
            The policy does not have this domain, so the request is allowed.
            {nearestDomain === "" ? "" : ` Did you mean ${showText(nearestDomain)}?`}
          </Line>
        )}
        {leftOut.map(({ index, key, why }) => (
          <Line key={`left${index}`} tone="plain">
            Not asked: the descriptor with {showText(key)}: {showText(why)}
          </Line>
        ))}
        {quotas.map(({ quota, descriptor, condition, demandRate, heldRate, bucketCount }) => (
          <Line key={quota} tone="notice">
            Quota {showText(quota)}: Envoys decide by their assignments (
            {formatMany(Number(bucketCount), "bucket")}, {formatRate(demandRate)} asked,{" "}
            {formatRate(heldRate)} assigned)
            {condition === "" ? "" : `, only where ${showText(condition)}`}
            {descriptor === undefined ? undefined : (
              <ul>
                <Descriptor descriptor={descriptor} />
              </ul>
            )}
          </Line>
        ))}
      </ul>
    </div>
  );
}

function Line({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <li>
      <ToneIcon tone={tone} /> <span>{children}</span>
    </li>
  );
}

function Descriptor({ descriptor }: { readonly descriptor: DescriptorExplanation }) {
  const { entries, hits, matchedLabel, tried, isOver, states } = descriptor;
  const others = tried.filter(({ isMatch }) => !isMatch);
  const tone: Tone = isOver ? "bad" : matchedLabel === "" ? "plain" : "good";
  return (
    <li>
      <ToneIcon tone={tone} />
      <div>
        <b>
          <KeyName entries={entries} />
        </b>
        {hits > 1n ? `, ${formatCount(hits)} hits` : ""}
        <ul>
          <Line tone={tone}>
            {matchedLabel === "" ? "No rule matches" : <b>Rule {showText(matchedLabel)}</b>}:{" "}
            {effectText(descriptor)}
            {states.length === 0 ? undefined : (
              <ul>
                {states.map((state, i) => (
                  <StateLine key={String(i)} state={state} />
                ))}
              </ul>
            )}
          </Line>
          {others.length === 0 ? undefined : (
            <li>
              <details open={others.length <= 6}>
                <summary>{formatMany(others.length, "rule")} that did not match</summary>
                <ul>
                  {others.map(({ label, why }) => (
                    <Line key={label + why} tone="plain">
                      {showText(label)}: {showText(why)}
                    </Line>
                  ))}
                </ul>
              </details>
            </li>
          )}
        </ul>
      </div>
    </li>
  );
}

function StateLine({ state }: { readonly state: KeyState }) {
  const { limit, burst, usedHits, remainingHits, retryAfter, override } = state;
  const isFull = remainingHits === 0n;
  const wait =
    retryAfter === undefined
      ? "never fits"
      : isFull
        ? `fits in ${formatProtoDuration(retryAfter)}`
        : "fits now";
  return (
    <Line tone={isFull ? "bad" : "good"}>
      {limit === undefined || limit.name === "" ? "" : `${showText(limit.name)}: `}
      {limit === undefined ? "" : formatLimit(limit)}:{" "}
      {formatNumber(Math.round(usedHits * 10) / 10)} of {formatCount(burst)} used; {wait}
      {override === undefined
        ? ""
        : `; override ${showText(override.id)}: ${formatEffect(override)}`}
    </Line>
  );
}

function effectText({ effect, isOver, changesAfter, states }: DescriptorExplanation): string {
  if (effect === "unlimited") return "unlimited";
  if (effect === "replaced") return "left out, since another rule of this request replaces it";
  if (effect === "unmatched") return "it passes";
  if (!isOver) return "within its limits";
  if (states.some(({ override }) => override?.effect.case === "isFrozen")) {
    return "frozen by an operator";
  }
  return changesAfter === undefined
    ? "over its limit, and stays so"
    : `over its limit, fits again in ${formatProtoDuration(changesAfter)}`;
}
