import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { formatRoute } from "../data/route.js";
import { useElement } from "../state/element.js";
import { route } from "../state/location.js";
import { session } from "../state/session.js";
import { Audit } from "../views/audit.jsx";
import { FleetPage } from "../views/fleet.jsx";
import { KeyPage } from "../views/key.jsx";
import { Limits } from "../views/limits.jsx";
import { Overrides } from "../views/overrides.jsx";
import { Overview } from "../views/overview.jsx";
import { PolicyView } from "../views/policy.jsx";
import { Quotas } from "../views/quotas.jsx";
import { RulePage } from "../views/rule.jsx";
import { ServicePage } from "../views/service.jsx";
import { Services } from "../views/services.jsx";
import { LiveTail } from "../views/tail.jsx";
import { KeyHelp } from "./key-help.jsx";
import { openBox } from "./keyboard.js";
import { navigation } from "./navigation.js";
import { SearchBox } from "./search-box.jsx";
import { SignIn, SignInAgain } from "./sign-in.jsx";
import { TopBar } from "./top-bar.jsx";

const views: Readonly<Record<string, () => JSX.Element>> = {
  overview: Overview,
  audit: Audit,
  fleet: FleetPage,
  key: KeyPage,
  limits: Limits,
  overrides: Overrides,
  policy: PolicyView,
  quotas: Quotas,
  rule: RulePage,
  service: ServicePage,
  services: Services,
  tail: LiveTail,
};

/** The whole console. */
export function ConsoleApp() {
  const { value } = session;
  if (value.kind === "unknown") {
    return (
      <main class="alone">
        <p class="empty" role="status">
          Asking Headgate who you are …
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
  const View = views[name] ?? NoSuchView;
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
            .filter((entry) => views[entry.name] !== undefined)
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
