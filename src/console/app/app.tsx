import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { formatClock, formatSpan } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { lazyView } from "../parts/lazy-view.jsx";
import { ToneIcon } from "../parts/status.jsx";
import { connection } from "../state/api.js";
import { later, nowMs } from "../state/browser.js";
import { useElement } from "../state/element.js";
import { route } from "../state/location.js";
import { refreshSession, session, signOut, type User, user } from "../state/session.js";
import { nextTheme, theme } from "../state/theme.js";
import { Audit } from "../views/audit.jsx";
import { FleetPage } from "../views/fleet.jsx";
import { KeyPage } from "../views/key.jsx";
import { Limits } from "../views/limits.jsx";
import { Overrides } from "../views/overrides.jsx";
import { Overview } from "../views/overview.jsx";
import { PolicyView } from "../views/policy.jsx";
import { Quotas } from "../views/quotas.jsx";
import { WaitingRoomPage } from "../views/room.jsx";
import { Rooms } from "../views/rooms.jsx";
import { RulePage } from "../views/rule.jsx";
import { ServicePage } from "../views/service.jsx";
import { Services } from "../views/services.jsx";
import { LiveTail } from "../views/tail.jsx";
import { openBox } from "./keyboard.js";
import { navigation } from "./navigation.js";
import { SearchBox } from "./search-box.jsx";
import { SignIn, SignInAgain } from "./sign-in.jsx";

const budgetViews = async () => (await import("../budgets/budget-views.js")).budgetViews;

const views: ReadonlyMap<string, ComponentType> = new Map<string, ComponentType>([
  ["overview", Overview],
  ["audit", Audit],
  ["account", lazyView(async () => (await budgetViews()).BudgetAccountPage, "Account")],
  ["budget", lazyView(async () => (await budgetViews()).BudgetPage, "Budget")],
  ["budgets", lazyView(async () => (await budgetViews()).BudgetCards, "Budgets")],
  ["fleet", FleetPage],
  ["key", KeyPage],
  ["limits", Limits],
  ["overrides", Overrides],
  ["policy", PolicyView],
  ["quotas", Quotas],
  ["room", WaitingRoomPage],
  ["rooms", Rooms],
  ["rule", RulePage],
  ["service", ServicePage],
  ["services", Services],
  [
    "simulate",
    lazyView(
      async () => (await import("../views/simulator-views.js")).simulatorViews.Simulate,
      "Simulate",
    ),
  ],
  ["tail", LiveTail],
]);

/** The whole console. */
export function ConsoleApp() {
  const { value } = session;
  if (value.kind === "unknown") {
    return (
      <main class="alone">
        <p class="empty" role="status">
          Checking your session …
        </p>
      </main>
    );
  }
  if (value.kind === "out" && value.before === undefined) {
    return (
      <main class="alone">
        <SignIn ways={value.ways} />
      </main>
    );
  }
  return (
    <>
      <Frame />
      {value.kind === "out" ? <SignInAgain ways={value.ways} /> : undefined}
    </>
  );
}

function Frame() {
  const { path } = route.value;
  const [name = "overview"] = path;
  const main = useElement<HTMLElement>();
  const place = path.join("/");
  useEffect(() => {
    // The title is the view's; a screen reader begins there.
    document.title = `${main.current?.querySelector("h1")?.textContent ?? "Console"} · Headgate`;
    if (place !== "") main.current?.focus({ preventScroll: true });
    // A narrow window shows some of the navigation at a time.
    document
      .querySelector("nav [aria-current=page]")
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
    scrollTo(0, 0);
  }, [place]);
  const View = views.get(name) ?? NoSuchView;
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the view
      </button>
      <nav aria-label="Views">
        <a class="brand" href="#/">
          <Mark /> <span>Headgate</span>
        </a>
        <ul>
          {navigation
            .filter((entry) => views.has(entry.name))
            .map((entry) => (
              <li key={entry.name}>
                <a
                  href={formatRoute([entry.name])}
                  aria-current={isWithin(name, entry.name) ? "page" : undefined}
                  title={`g ${entry.key}`}
                >
                  <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
                    <path d={entry.path} />
                  </svg>
                  <span>{entry.title}</span>
                </a>
              </li>
            ))}
        </ul>
      </nav>
      <div class="page">
        <TopBar />
        <main id="main" ref={main} tabIndex={-1}>
          <View key={place} />
        </main>
      </div>
      {openBox.value === "search" ? <SearchBox /> : undefined}
      {openBox.value === "help" ? <KeyHelp /> : undefined}
    </div>
  );
}

/** Pages of one rule, key or service belong to the list that leads there. */
function isWithin(name: string, entry: string): boolean {
  const homes: Readonly<Record<string, string>> = {
    rule: "limits",
    key: "limits",
    service: "services",
    room: "rooms",
    budget: "budgets",
    account: "budgets",
  };
  return (homes[name] ?? name) === entry;
}

function NoSuchView() {
  return (
    <>
      <h1>There is no such view</h1>
      <p class="empty">
        The link may be cut off. <a href="#/">Go to the overview</a>
      </p>
    </>
  );
}

/** A gate that lets some through. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <path d="M4 3v18M20 3v18M4 8h16M8 8v5M12 8v9M16 8v5" />
    </svg>
  );
}

/** What keys do. */
function KeyHelp() {
  const dialog = useElement<HTMLDialogElement>();
  useEffect(() => dialog.current?.showModal(), []);
  const rows = [
    ["/", "search for rules, keys, services, rooms and views"],
    ...navigation.map(({ key, title }) => [`g ${key}`, title]),
    ["↑ ↓", "from row to row of a table"],
    ["Enter", "open the row"],
    ["Esc", "close a box"],
    ["?", "this list"],
  ];
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => (openBox.value = "none")}>
      <h2>Keys</h2>
      <dl class="keys">
        {rows.map(([key = "", what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <footer>
        <button type="button" class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  );
}

/** What stands above each view: search, who is signed in, and whether the server answers. */
function TopBar() {
  const known = user.value;
  const role = known?.isReadOnly === true ? "read-only" : (known?.role ?? "");
  return (
    <header class="top-bar">
      <button type="button" class="search" onClick={() => (openBox.value = "search")}>
        Search <kbd>/</kbd>
      </button>
      <LostConnection />
      <span class="spring" />
      <button type="button" onClick={nextTheme} aria-label={`Colors: ${theme.value}`}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <path
            fill="currentColor"
            d="M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.5v11a5.5 5.5 0 0 1 0-11Z"
          />
        </svg>
        <span class="wide-only">{theme.value}</span>
      </button>
      {known === undefined ? undefined : (
        <span class="who" title={whoText(known)}>
          <b>{showText(known.shownName)}</b> <span class="muted">{role}</span>
        </span>
      )}
      {known !== undefined && known.csrf !== "" && known.ways.length > 0 ? (
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      ) : undefined}
    </header>
  );
}

/** What there is no room for. */
function whoText({ name, replica, version }: User): string {
  return `${showText(name)} in the audit log. Signed in to ${replica}, version ${version}`;
}

/** A lost connection, and for how long. */
function LostConnection() {
  const { lostAtMs } = connection.value;
  const tick = useSignal(0);
  useEffect(() => {
    if (lostAtMs === undefined) {
      // The other replica of the address may know another session.
      if (tick.peek() > 0) void refreshSession();
      return undefined;
    }
    return later(1_000, () => {
      tick.value += 1;
    });
  }, [lostAtMs, tick.value]);
  if (lostAtMs === undefined) return undefined;
  return (
    <span class="badge bad" role="alert">
      <ToneIcon tone="bad" />
      No answer since {formatClock(lostAtMs)} UTC ({formatSpan(Math.max(1_000, nowMs() - lostAtMs))}
      )
    </span>
  );
}
