import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import type { AuditEntry } from "../../gen/headgate/admin/v1/admin_pb.js";
import { auditSubject } from "../data/audit-subject.js";
import { writeCommand } from "../data/cli-command.js";
import { formatMany, formatTime, millisOf } from "../data/format.js";
import { clipText, showText } from "../data/shown-text.js";
import { readSpan } from "../data/span.js";
import { CopyButton } from "../parts/copy-button.jsx";
import { DataTable, type TableColumn } from "../parts/data-table.jsx";
import { PolledAnswer } from "../parts/status.jsx";
import { api } from "../state/api.js";
import { nowMs } from "../state/browser.js";
import { paramOf, setParams } from "../state/location.js";
import { usePoll } from "../state/poll.js";

const entriesMax = 2_000;

/** Who changed what, when and why. */
export function Audit() {
  const since = paramOf("since");
  const author = paramOf("by");
  const action = paramOf("action");
  const about = JSON.stringify([since, author, action]);
  const polled = usePoll((signal) => listEntries({ since, author, action }, signal), {
    everyMs: 3_000,
    about,
  });
  return (
    <>
      <div class="view-head">
        <h1>Audit log</h1>
        <CopyButton
          text={writeCommand([
            ...["headgate", "audit"],
            ...(since === "" ? [] : ["--since", since]),
            ...(author === "" ? [] : ["--by", author]),
            ...(action === "" ? [] : ["--action", action]),
          ])}
          label="Copy as CLI command"
        />
      </div>
      <section class="panel">
        <AuditForm />
        <PolledAnswer polled={polled.value}>
          {(entries) => <Entries entries={entries} />}
        </PolledAnswer>
      </section>
    </>
  );
}

async function listEntries(
  filter: { readonly since: string; readonly author: string; readonly action: string },
  signal: AbortSignal,
): Promise<readonly AuditEntry[]> {
  const spanMs = readSpan(filter.since);
  const since = spanMs === undefined ? {} : { since: timestampFromMs(nowMs() - spanMs) };
  const { author, action } = filter;
  const entries: AuditEntry[] = [];
  let pageToken = "";
  do {
    const question = { ...since, author, action, pageSize: 500, pageToken };
    const page = await api.fleet.listAudit(question, { signal });
    entries.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && entries.length < entriesMax);
  return entries;
}

function AuditForm() {
  const field = (label: string, name: string, placeholder: string) => (
    <label class="field">
      <span>{label}</span>
      <input
        placeholder={placeholder}
        value={paramOf(name)}
        onInput={(event) => setParams({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="fields">
      {field("Of the last", "since", "all; 2h, 3d")}
      {field("By", "by", "everybody")}
      {field("Action", "action", "all; SetOverride")}
    </div>
  );
}

function Entries({ entries }: { readonly entries: readonly AuditEntry[] }) {
  const open = useSignal("");
  const shown = entries.find(({ number }) => String(number) === open.value);
  const columns: readonly TableColumn<AuditEntry>[] = [
    {
      id: "time",
      title: "Time",
      value: ({ time }) => formatTime(millisOf(time)),
      render: ({ time }) => <span class="whole">{formatTime(millisOf(time))}</span>,
    },
    { id: "by", title: "By", value: ({ author }) => showText(author) },
    { id: "action", title: "Action", value: ({ action }) => action },
    {
      id: "subject",
      title: "Of",
      value: (entry) => showText(clipText(auditSubject(entry), 300)),
      render: (entry) => <bdi class="key-name">{showText(clipText(auditSubject(entry), 60))}</bdi>,
    },
    {
      id: "reason",
      title: "Why",
      value: ({ reason }) => showText(clipText(reason, 300)),
      render: ({ reason }) => showText(clipText(reason, 80)),
    },
    {
      id: "change",
      title: "",
      value: ({ before, after }) => clipText(`${before} ${after}`, 2_000),
      render: ({ number, before, after }) =>
        before === "" && after === "" ? undefined : (
          <button
            type="button"
            aria-expanded={open.value === String(number)}
            onClick={() => {
              open.value = open.value === String(number) ? "" : String(number);
            }}
          >
            Change
          </button>
        ),
    },
  ];
  return (
    <>
      {shown === undefined ? undefined : <Change entry={shown} />}
      <DataTable
        label="Audit log"
        columns={columns}
        rows={entries}
        rowId={({ number }) => String(number)}
        empty="No changes, or none that match the filter."
      />
      {entries.length >= entriesMax ? (
        <p class="muted">
          {formatMany(entriesMax, "entry").replace("entrys", "entries")} are shown.
        </p>
      ) : undefined}
    </>
  );
}

function Change({ entry }: { readonly entry: AuditEntry }) {
  const { number, action, before, after, role, replica } = entry;
  return (
    <div class="change" role="status">
      <p>
        <b>{action}</b>, entry {String(number)}, as {role}, at replica {showText(replica)}
      </p>
      <div class="columns">
        <Value title="Before" text={before} />
        <Value title="After" text={after} />
      </div>
    </div>
  );
}

function Value({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <div>
      <h3>{title}</h3>
      <pre class="listing" tabIndex={0}>
        {text === "" ? "nothing" : showText(prettyOf(text)).replaceAll("\\u{a}", "\n")}
      </pre>
    </div>
  );
}

/** JSON in lines; a text that was cut is none, and stays as it is. */
function prettyOf(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
