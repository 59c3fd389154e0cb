import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { readEntries } from "../../core/limits/descriptor-text.js";
import { formatRoute, keyRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { api } from "../state/api.js";
import { useElement } from "../state/element.js";
import { goTo } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { openBox } from "./keyboard.js";
import { navigation } from "./navigation.js";

interface Hit {
  readonly kind: string;
  readonly title: string;
  readonly href: string;
}

const hitsMax = 12;

function useRoomHits(): readonly Hit[] {
  const polled = usePoll((signal) => api.rooms.listRooms({ thisReplica: true }, { signal }), {
    everyMs: 30_000,
  });
  return (polled.value.data?.rooms ?? []).map(({ name }) => {
    return { kind: "room", title: name, href: formatRoute(["room", name]) };
  });
}

function useBudgetHits(): readonly Hit[] {
  const polled = usePoll((signal) => api.budgets.listBudgets({ withoutSums: true }, { signal }), {
    everyMs: 30_000,
  });
  return (polled.value.data?.budgets ?? []).map(({ name }) => {
    return { kind: "budget", title: name, href: formatRoute(["budget", name]) };
  });
}

/** Finds views, rules and services as one types, and opens keys by what they are called. */
export function SearchBox() {
  const dialog = useElement<HTMLDialogElement>();
  const query = useSignal("");
  const rules = usePoll((signal) => api.limits.listRules({ pageSize: 1_000 }, { signal }), {
    everyMs: 30_000,
  });
  const services = usePoll((signal) => api.fleet.listServices({}, { signal }), { everyMs: 30_000 });
  const rooms = useRoomHits();
  const budgets = useBudgetHits();
  useEffect(() => dialog.current?.showModal(), []);
  const domains = [...new Set(rules.value.data?.rules.map(({ domain }) => domain))];
  const all: readonly Hit[] = [
    ...navigation.map(({ name, title }) => {
      return { kind: "view", title, href: formatRoute([name]) };
    }),
    ...unique(services.value.data?.services.map(({ name }) => name) ?? []).map((name) => {
      return { kind: "service", title: name, href: formatRoute(["service", name]) };
    }),
    ...rooms,
    ...budgets,
    ...unique(
      rules.value.data?.rules.map(({ domain, label }) => formatRoute(["rule", domain, label])) ??
        [],
    ).map((href) => {
      const [, domain = "", label = ""] = href.slice(2).split("/").map(decodeURIComponent);
      return { kind: "rule", title: `${domain} ${label}`, href };
    }),
  ];
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(({ title, kind }) => {
    const text = `${kind} ${title}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const hits = [...keyHits(query.value, domains), ...found].slice(0, hitsMax);
  const open = (hit: Hit | undefined): void => {
    if (hit === undefined) return;
    dialog.current?.close();
    goTo(hit.href);
  };
  return (
    <dialog
      ref={dialog}
      class="search-box"
      aria-label="Search"
      onClose={close}
      onKeyDown={(event) => walkFields(event, dialog.current ?? undefined)}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          open(hits[0]);
        }}
      >
        <input
          type="search"
          aria-label="Search for a view, a rule or a service, or enter a key"
          placeholder="A rule, a service, a view; or a key: shop plan=free,user=ann"
          value={query.value}
          onInput={(event) => {
            query.value = event.currentTarget.value;
          }}
        />
        <Hits hits={hits} onOpen={() => dialog.current?.close()} />
        {hits.length === 0 ? <p class="empty">Nothing is called so.</p> : undefined}
      </form>
    </dialog>
  );
}

function Hits({ hits, onOpen }: { readonly hits: readonly Hit[]; readonly onOpen: () => void }) {
  return (
    <ul aria-label="Found">
      {hits.map(({ kind, title, href }) => (
        <li key={kind + href}>
          <a href={href} onClick={onOpen}>
            <span>{showText(title)}</span>
            <span class="muted">{kind}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function close(): void {
  openBox.value = "none";
}

/** Arrow keys go between the field and what was found. */
function walkFields(event: KeyboardEvent, box: HTMLElement | undefined): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0 || box === undefined) return;
  event.preventDefault();
  const stops = [...box.querySelectorAll<HTMLElement>("input, a")];
  const at = stops.findIndex((stop) => stop.matches(":focus"));
  stops[Math.max(0, Math.min(stops.length - 1, at + step))]?.focus();
}

/** `shop plan=free,user=ann` is a key; without a domain it may be one of each. */
function keyHits(query: string, domains: readonly string[]): readonly Hit[] {
  if (!query.includes("=")) return [];
  const [first = "", ...others] = query.trim().split(/\s+(.*)/s);
  const named = !first.includes("=") && others.length > 0;
  const entries = readEntries(named ? (others[0] ?? "") : query.trim());
  if (entries === undefined) return [];
  return (named ? [first] : domains).map((domain) => ({
    kind: "key",
    title: `${domain} ${named ? (others[0] ?? "") : query.trim()}`,
    href: keyRoute(domain, entries),
  }));
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
