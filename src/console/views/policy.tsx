import { formatTime, millisOf } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { lazyView } from "../parts/lazy-view.jsx";
import { Badge, PolledAnswer, ToneIcon } from "../parts/status.jsx";
import { api } from "../state/api.js";
import { draft, shortVersion } from "../state/draft.js";
import { paramOf } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { PolicyEdit } from "./policy-edit.jsx";
import { PolicyHistory } from "./policy-history.jsx";
import { PolicyReplay } from "./policy-replay.jsx";
import { ShadowPanel } from "./policy-shadow.jsx";

const PolicyRecommend = lazyView(
  async () => (await import("./simulator-views.js")).simulatorViews.PolicyRecommend,
);

const tabs = [
  { id: "", title: "Edit" },
  { id: "replay", title: "Replay a log" },
  { id: "recommend", title: "Recommend limits" },
  { id: "shadow", title: "Shadow" },
  { id: "history", title: "History" },
] as const;

/** The policy: edit, compare, test, replay, shadow, enforce, and go back. */
export function PolicyView() {
  const tab = paramOf("tab");
  const polled = usePoll((signal) => api.policies.getPolicy({}, { signal }), { everyMs: 2_000 });
  return (
    <>
      <div class="view-head">
        <h1>Policy</h1>
        <nav class="tabs" aria-label="Parts of the policy view">
          {tabs.map(({ id, title }) => (
            <a
              key={id}
              href={formatRoute(["policy"], { tab: id })}
              aria-current={id === tab ? "page" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
      </div>
      <PolledAnswer polled={polled.value}>
        {({ policy, shadow }) => (
          <>
            <p class="policy-state">
              <Badge tone="good">active</Badge>{" "}
              <span class="mono">{shortVersion(policy?.version ?? "")}</span>
              <span class="muted">
                {policy?.appliedAt === undefined
                  ? ""
                  : ` since ${formatTime(millisOf(policy.appliedAt))}`}
                {policy === undefined || policy.author === ""
                  ? ""
                  : `, by ${showText(policy.author)}`}
                {policy === undefined ? "" : `, from ${sourceText(policy.source)}`}
              </span>
              {shadow === undefined ? undefined : (
                <>
                  <Badge tone="notice">shadow</Badge>{" "}
                  <span class="mono">{shortVersion(shadow.version)}</span>
                </>
              )}
            </p>
            {draft.value !== undefined && draft.value.base !== policy?.version ? (
              <p class="notice warn" role="status">
                <ToneIcon tone="warn" /> The active policy has changed since you began your draft.
                The comparison is with the active policy.
              </p>
            ) : undefined}
            {tab === "" ? <PolicyEdit active={policy} shadow={shadow} /> : undefined}
            {tab === "replay" ? <PolicyReplay active={policy} /> : undefined}
            {tab === "recommend" ? <PolicyRecommend active={policy} /> : undefined}
            {tab === "shadow" ? <ShadowPanel active={policy} shadow={shadow} /> : undefined}
            {tab === "history" ? <PolicyHistory active={policy} /> : undefined}
          </>
        )}
      </PolledAnswer>
    </>
  );
}

function sourceText(source: string): string {
  if (source === "admin") return "the admin API";
  return source === "xds" ? "a control plane" : "files";
}
