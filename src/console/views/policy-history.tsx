import { useSignal } from "@preact/signals";
import type { PolicyVersion } from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatTime, millisOf } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { ActionDialog } from "../parts/action-dialog.jsx";
import { DataTable, type TableColumn } from "../parts/data-table.jsx";
import { Badge, PolledAnswer } from "../parts/status.jsx";
import { api } from "../state/api.js";
import { filesOf, shortVersion } from "../state/draft.js";
import { paramOf, setParams } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";
import { FileDiffs } from "./policy-edit.jsx";

/** Earlier policies, what each changed, and the way back to one. */
export function PolicyHistory({ active }: { readonly active: PolicyVersion | undefined }) {
  const chosen = paramOf("version");
  const polled = usePoll((signal) => api.policies.listPolicies({ pageSize: 100 }, { signal }), {
    everyMs: 5_000,
  });
  const columns: readonly TableColumn<PolicyVersion>[] = [
    {
      id: "version",
      title: "Version",
      value: ({ version }) => version,
      render: ({ version }) => (
        <button
          type="button"
          aria-pressed={version === chosen}
          onClick={() => setParams({ version: version === chosen ? "" : version })}
        >
          <span class="mono">{shortVersion(version)}</span>
        </button>
      ),
    },
    {
      id: "state",
      title: "",
      value: ({ version }) => (version === active?.version ? "active" : ""),
      render: ({ version }) =>
        version === active?.version ? <Badge tone="good">active</Badge> : undefined,
    },
    {
      id: "at",
      title: "Applied",
      value: ({ appliedAt }) => formatTime(millisOf(appliedAt)),
      render: ({ appliedAt }) => <span class="whole">{formatTime(millisOf(appliedAt))}</span>,
    },
    { id: "by", title: "By", value: ({ author }) => showText(author) },
    { id: "why", title: "Why", value: ({ reason }) => showText(reason) },
  ];
  return (
    <>
      <section class="panel">
        <PolledAnswer polled={polled.value}>
          {({ policies }) => (
            <DataTable
              label="Policies"
              columns={columns}
              rows={policies}
              rowId={({ version, appliedAt }) => `${version} ${appliedAt?.seconds ?? ""}`}
              isPlain={policies.length < 20}
              empty="No policy was applied here. Files and control planes keep their own history."
            />
          )}
        </PolledAnswer>
      </section>
      {chosen === "" ? undefined : <Chosen version={chosen} active={active} />}
    </>
  );
}

function Chosen({
  version,
  active,
}: {
  readonly version: string;
  readonly active: PolicyVersion | undefined;
}) {
  const isOpen = useSignal(false);
  const polled = usePoll((signal) => api.policies.getPolicy({ version }, { signal }), {
    everyMs: 60_000,
    about: version,
  });
  const isActive = version === active?.version;
  return (
    <section class="panel">
      <header>
        <h2>
          Back to <span class="mono">{shortVersion(version)}</span> would change
        </h2>
        {mayChange() && !isActive ? (
          <button type="button" onClick={() => (isOpen.value = true)}>
            Roll back …
          </button>
        ) : undefined}
      </header>
      <PolledAnswer polled={polled.value}>
        {({ policy }) => (
          <>
            <FileDiffs before={filesOf(active)} after={filesOf(policy)} />
            {isOpen.value ? (
              <ActionDialog
                title={`Roll back to ${shortVersion(version)}`}
                verb="Roll back"
                isDangerous={true}
                changes={[
                  {
                    what: "Active policy",
                    before: shortVersion(active?.version ?? ""),
                    after: `${shortVersion(version)}, on all replicas within a second`,
                  },
                ]}
                command={(reason) =>
                  writeCommand(["headgate", "rollback", version, ...reasonFlags(reason)])
                }
                run={async (reason) => {
                  const expectedVersion = active?.version ?? "";
                  await api.policies.rollBackPolicy({ version, expectedVersion, reason });
                  return `Active: policy ${shortVersion(version)}.`;
                }}
                onClose={() => {
                  isOpen.value = false;
                }}
              >
                <FileDiffs before={filesOf(active)} after={filesOf(policy)} />
              </ActionDialog>
            ) : undefined}
          </>
        )}
      </PolledAnswer>
    </section>
  );
}
