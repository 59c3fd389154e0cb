import { durationMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import type {
  PolicyVersion,
  ReplayedRule,
  ReplayLogResponse,
  ReplayOutcome,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { LogFormat } from "../../simulate/log-reader.js";
import { formatCount, formatMany, formatNumber, formatPercent, millisOf } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { clipText, showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { DropPlace } from "../parts/drop-place.jsx";
import { LogFormatField } from "../parts/log-format-field.jsx";
import { Plot } from "../parts/plot.jsx";
import { Tile, ToneIcon } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api, errorText } from "../state/api.js";
import { draft, isTestFile, shortVersion } from "../state/draft.js";

/** The server takes no more. */
const logBytesMax = 4 * 1024 * 1024;

/** An access log through the active policy and the draft: who would be treated differently. */
export function PolicyReplay({ active }: { readonly active: PolicyVersion | undefined }) {
  const result = useSignal<ReplayLogResponse | undefined>(undefined);
  const failure = useSignal<string | undefined>(undefined);
  const busyWith = useSignal<string | undefined>(undefined);
  const format = useSignal<LogFormat>("auto");
  const replay = async (file: File): Promise<void> => {
    busyWith.value = file.name;
    failure.value = undefined;
    try {
      result.value = await replayFile(file, format.value);
    } catch (error) {
      failure.value = errorText(error);
    }
    busyWith.value = undefined;
  };
  return (
    <>
      <section class="panel">
        <p>
          {draft.value === undefined
            ? "The log is replayed against the active policy " +
              `${shortVersion(active?.version ?? "")}. ` +
              "If you have a draft, it is compared with that."
            : "The log is replayed against the active policy and your draft. Nothing is charged."}
        </p>
        <div class="fields">
          <LogFormatField value={format.value} onChange={(value) => (format.value = value)} />
        </div>
        <DropPlace
          text="Drop an access log here, of at most 4 MiB, or"
          label="Access log"
          onFile={(file) => void replay(file)}
        />
        {busyWith.value === undefined ? undefined : (
          <p role="status">Replaying {showText(busyWith.value)} …</p>
        )}
        {failure.value === undefined ? undefined : (
          <p class="notice bad" role="alert">
            <ToneIcon tone="bad" /> {showText(failure.value)}
          </p>
        )}
      </section>
      {result.value === undefined ? undefined : <Outcome result={result.value} />}
    </>
  );
}

async function replayFile(file: File, format: string): Promise<ReplayLogResponse> {
  if (file.size > logBytesMax) {
    const size = formatCount(Math.ceil(file.size / 1_048_576));
    throw new Error(`${file.name} has ${size} MiB, and at most 4 are taken: use headgate replay.`);
  }
  const files = draft.peek()?.files.filter((one) => !isTestFile(one)) ?? [];
  return api.policies.replayLog({
    files: files.map(({ file: name, text }) => ({ file: name, text })),
    log: new Uint8Array(await file.arrayBuffer()),
    format,
  });
}

function Outcome({ result }: { readonly result: ReplayLogResponse }) {
  const { active, candidate, lineCount, unreadableCount, firstUnreadable, problems } = result;
  if (problems.length > 0) {
    return (
      <p class="notice bad" role="alert">
        <ToneIcon tone="bad" /> The draft has {formatMany(problems.length, "problem")}: nothing was
        replayed.
      </p>
    );
  }
  return (
    <div role="status">
      {unreadableCount > 0n ? (
        <p class="notice warn">
          <ToneIcon tone="warn" /> {formatCount(unreadableCount)} of {formatCount(lineCount)} lines
          cannot be read. The first: {showText(clipText(firstUnreadable, 300))}
        </p>
      ) : undefined}
      <div class="tiles">
        <Tile label="Lines" value={formatCount(lineCount)} />
        <OutcomeTile label="Denied, active" outcome={active} />
        {candidate === undefined ? undefined : (
          <>
            <OutcomeTile label="Denied, draft" outcome={candidate} />
            <Tile
              label="Newly denied"
              value={formatCount(result.newlyDeniedCount)}
              tone={result.newlyDeniedCount > 0n ? "warn" : "good"}
            />
            <Tile label="Newly allowed" value={formatCount(result.newlyAllowedCount)} />
          </>
        )}
      </div>
      {active === undefined ? undefined : <OutcomePlot active={active} candidate={candidate} />}
      <RuleTable rules={result.rules} hasCandidate={candidate !== undefined} />
    </div>
  );
}

function OutcomeTile({
  label,
  outcome,
}: {
  readonly label: string;
  readonly outcome: ReplayOutcome | undefined;
}) {
  const { deniedCount = 0n, callCount = 0n, unmatchedCount = 0n } = outcome ?? {};
  const share = callCount === 0n ? 0 : Number(deniedCount) / Number(callCount);
  return (
    <Tile
      label={label}
      value={formatCount(deniedCount)}
      detail={
        `${formatPercent(share)} of ${formatCount(callCount)}; ` +
        `${formatCount(unmatchedCount)} belong to no service with limits`
      }
    />
  );
}

function OutcomePlot({
  active,
  candidate,
}: {
  readonly active: ReplayOutcome;
  readonly candidate: ReplayOutcome | undefined;
}) {
  const start = (millisOf(active.start) ?? 0) / 1_000;
  const step = active.step === undefined ? 1 : durationMs(active.step) / 1_000;
  return (
    <Plot
      title="Over the duration of the log"
      seconds={active.calls.map((_, i) => start + i * step)}
      format={formatNumber}
      lines={[
        { label: "requests", ink: 1, isFilled: true, values: active.calls },
        { label: "denied, active", ink: 2, dash: [8, 4], values: active.denied },
        ...(candidate === undefined
          ? []
          : [{ label: "denied, draft", ink: 4, dash: [2, 3], values: candidate.denied } as const]),
      ]}
    />
  );
}

function RuleTable({
  rules,
  hasCandidate,
}: {
  readonly rules: readonly ReplayedRule[];
  readonly hasCandidate: boolean;
}) {
  const columns: readonly TableColumn<ReplayedRule>[] = [
    textColumn("Rule", ({ domain, label }) => showText(`${domain}/${label}`)),
    numberColumn("Asked", ({ activeCallCount }) => activeCallCount),
    numberColumn("Over, active", ({ activeOverCount }) => activeOverCount),
    ...(hasCandidate
      ? [numberColumn<ReplayedRule>("Over, draft", (rule) => rule.candidateOverCount)]
      : []),
    textColumn("Most often", ({ keys }) => keysText(keys), { isWideOnly: true }),
  ];
  return (
    <TitledPanel title="By rule">
      <DataTable
        label="Replayed rules"
        columns={columns}
        rows={rules}
        rowId={({ domain, label }) => `${domain} ${label}`}
        href={({ domain, label }) => formatRoute(["rule", domain, label])}
        isPlain={rules.length < 20}
        empty="No request of the log matched a rule. Services are matched by their hosts."
      />
    </TitledPanel>
  );
}

function keysText(keys: ReplayedRule["keys"]): string {
  return keys
    .slice(0, 3)
    .map(({ text, count }) => `${showText(clipText(text, 60))} (${formatCount(count)})`)
    .join(", ");
}
